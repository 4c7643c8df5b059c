"""Turn option values into the library's keywords."""

from __future__ import annotations

import json
import re
from typing import Any

from kvgauge.cli.options import LOAD
from kvgauge.errors import InvalidRequestError

_PASSED_ON = tuple(row.name for row in LOAD if row.kind not in ("flag", "list"))
_FLAGS = (*(row.name for row in LOAD if row.kind == "flag"), "offline")

#: What may stand as a value of ``--override`` without quotes: bfloat16, Qwen3ForCausalLM, a/b.
_BARE_WORD = r"[A-Za-z_][\w./-]*"


def size_keywords(values: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of ``kvgauge.size`` that the options ask for; what was not given is left out."""
    keywords = {name: values[name] for name in _PASSED_ON if values.get(name) is not None}
    overrides = parse_overrides(values["override"])
    if overrides:
        keywords["overrides"] = overrides
    keywords |= {name: True for name in _FLAGS if values[name]}
    return keywords


def parse_overrides(pairs: tuple[str, ...]) -> dict[str, object]:
    """Read ``key=value`` pairs; values are JSON, or bare words.

    Raises:
        InvalidRequestError: a pair has no key, or its value is no JSON.

    >>> parse_overrides(("num_hidden_layers=2", "torch_dtype=float16", "text_config.head_dim=64"))
    {'num_hidden_layers': 2, 'torch_dtype': 'float16', 'text_config.head_dim': 64}
    """
    return dict(_parse_override(pair) for pair in pairs)


def _parse_override(pair: str) -> tuple[str, object]:
    key, equals, text = pair.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InvalidRequestError(
            f"--override {pair!r} is not KEY=VALUE", hint="for example num_hidden_layers=24", field="override"
        )
    try:
        return key, json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        if re.fullmatch(_BARE_WORD, text) and text not in ("NaN", "Infinity"):
            return key, text
    raise InvalidRequestError(
        f"--override {key}: {text[:80]!r} is not a JSON value",
        hint='numbers, true, false, null, "text", [1, 2] or a bare word',
        field="override",
    )


def _refuse_constant(word: str) -> object:
    raise ValueError(word)
