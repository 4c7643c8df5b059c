"""Draft models for speculative decoding, which bear the name of the model type that they draft for.

A draft has a projection of its target's hidden states and often no embedding or head of its own, so the
tensors of its type are not what it holds.
"""

from __future__ import annotations

import re

from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.values import is_int

_CLASS = re.compile(
    r"eagle\w{0,40}ForCausalLM|ForCausalLM\w{0,40}eagle|DraftModel\b|Speculator", re.IGNORECASE
)
_FIELDS = ("draft_vocab_size", "eagle_config", "dflash_config", "speculators_model_type")
#: Types under whose name drafts of one layer are published.
_TYPES = frozenset({"llama", "mixtral"})
#: A model of one layer is a toy or a draft; toys are narrower.
_LEAST_WIDTH = 2048
#: First EAGLE: one Llama layer without its first norm, an embedding, a projection; field ``bias`` is the
#: projection's. SafeAILab/EAGLE, ``eagle/model/cnets1.py``.
_EAGLE = "eagle_llama"


def draft_type(view: ConfigView, model_type: str) -> str | None:
    """Return the type whose tensors a draft has, "" where its file does not tell, None if it is no draft."""
    classes = view.values.get("architectures")
    names = classes if isinstance(classes, list | tuple) else ()
    if any(isinstance(name, str) and _CLASS.search(name[:200]) for name in names):
        return ""
    if any(view.values.get(field) is not None for field in _FIELDS):
        return ""
    width = view.values.get("hidden_size")
    is_wide = is_int(width) and width >= _LEAST_WIDTH
    if model_type not in _TYPES or view.values.get("num_hidden_layers") != 1 or not is_wide:
        return None
    has_bias = isinstance(view.values.get("bias"), bool) and model_type == "llama"
    return _EAGLE if has_bias else ""
