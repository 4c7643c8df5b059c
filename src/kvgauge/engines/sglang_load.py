"""What SGLang finds gone of a device once a model is loaded: whole segments of its tensors and tables.

"Load weight end ... mem usage" is free memory before less free memory after, so what lies unused in the
allocator's segments is in it. Linear layers are joined as in vLLM. Sources (SGLang 0.5.23):
model_executor/model_runner.py, layers/rotary_embedding.py (tables of fp32 on CUDA, else in the model's type),
models/deepseek_v2.py (``post_load_weights``: latents' projection once more, as keys and as values).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from types import MappingProxyType

from kvgauge.engines.torch_memory import reserved_bytes
from kvgauge.engines.vllm_load import joined_sizes, rotary_bytes
from kvgauge.sharding import RankTensor
from kvgauge.weights import Rotary

_COPIED = "kv_b_proj.weight"
_SIXTEEN_BIT = ("bf16", "f16")
#: Rotary embeddings that a class computes as it goes, without a table (models/gemma3_causal.py).
_COMPUTED = MappingProxyType({"gemma3": ("linear",), "gemma3_text": ("linear",)})


def loaded_bytes(
    tensors: Iterable[RankTensor], rotary: Iterable[Rotary], *, model_type: str, wide_tables: bool = True
) -> int:
    """Return what loading takes of a rank's device.

    Args:
        tensors: of the rank.
        rotary: the model's rotary embeddings; each is a table on every rank.
        wide_tables: the device is CUDA's.
    """
    held = tuple(tensors)
    factor = 2 if wide_tables else 1
    tables = [
        factor * rotary_bytes(each, model_type=model_type)
        for each in rotary
        if each.kind not in _COMPUTED.get(model_type, ())
    ]
    return reserved_bytes((*tables, *joined_sizes(held), *_copies(held)))


def _copies(tensors: Iterable[RankTensor]) -> Iterator[int]:
    """Yield the copies that ``joined_sizes`` does not count: of projections that are in 16 bits already."""
    for tensor in tensors:
        if tensor.family.name.endswith(_COPIED) and tensor.form.name in _SIXTEEN_BIT:
            for _ in tensor.layers:
                yield prod(tensor.shape)
                yield prod(tensor.shape)


__all__ = ["loaded_bytes"]
