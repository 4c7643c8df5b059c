"""What vLLM holds once a model is loaded: its tensors, joined as its layers join them, and rotary tables.

This is the figure of "Model loading took ... GiB" (``DeviceMemoryProfiler``: what PyTorch's allocator has).
Sources (package vllm==0.33.0): model_executor/layers/linear.py, layers/fused_moe/layer.py,
layers/rotary_embedding/*, models/gpt_oss.py, models/qwen3_vl.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from types import MappingProxyType

from kvgauge.engines.torch_memory import allocated_bytes
from kvgauge.engines.vllm_absorbed import absorbed_sizes, absorbs
from kvgauge.sharding import RankTensor
from kvgauge.weights import Part, Rotary, TensorFamily

#: Modules of a checkpoint that are one in vLLM (``packed_modules_mapping``), by last words of their names.
_JOINED = MappingProxyType(
    {
        "q_proj": "qkv", "k_proj": "qkv", "v_proj": "qkv",
        "query": "qkv", "key": "qkv", "value": "qkv",
        "gate_proj": "gate_up", "up_proj": "gate_up", "w1": "gate_up", "w3": "gate_up",
        "q_a_proj": "qkv_a", "kv_a_proj_with_mqa": "qkv_a",
        "in_proj_qkv": "in_proj_qkvz", "in_proj_z": "in_proj_qkvz",
        "in_proj_b": "in_proj_ba", "in_proj_a": "in_proj_ba",
    }
)  # fmt: skip
#: A quantised projection up from the latent is kept in 16 bits too (mla_attention.py: W_UK, W_UV).
_COPIED = "kv_b_proj.weight"
_SIXTEEN_BIT = ("bf16", "f16")
#: Types whose class keeps its tables in fp32 (gpt_oss.py, deepseek_scaling_rope.py).
_WIDE_TABLES = frozenset({"gpt_oss", "deepseek_v4"})
#: Positions with axes are kept four times over (mrope.py); in these types only to prune videos.
_AXES_FACTOR = 4
_PLAIN_AXES = ("qwen3_vl", "qwen3_5", "qwen3_next")


def loaded_bytes(
    tensors: Iterable[RankTensor], rotary: Iterable[Rotary], *, model_type: str, version: str | None = None
) -> int:
    """Return what a rank counts as allocated after loading.

    Args:
        tensors: of the rank.
        rotary: the model's rotary embeddings; each is a table on every rank.
        model_type: of the language model.
        version: of vLLM; None: the newest.
    """
    held = tuple(tensors)
    copies = absorbed_sizes(held) if absorbs(version) else ()
    tables = [rotary_bytes(each, model_type=model_type) for each in rotary]
    return allocated_bytes((*tables, *joined_sizes(held), *copies))


def rotary_bytes(rotary: Rotary, *, model_type: str) -> int:
    """Return the bytes of one table of cosines and sines, in 16 bits but for some classes.

    >>> rotary_bytes(Rotary(128, 131072), model_type="llama")  # Llama-3.1: 32 MiB
    33554432
    """
    is_wide = model_type in _WIDE_TABLES or (rotary.latent and "yarn" in rotary.kind)
    has_more = rotary.sections and not model_type.startswith(_PLAIN_AXES)
    rows = rotary.positions * (_AXES_FACTOR if has_more else 1) + rotary.short_positions
    return rows * rotary.width * (4 if is_wide else 2)


def joined_sizes(tensors: Iterable[RankTensor]) -> Iterator[int]:
    """Yield the bytes of each tensor as vLLM makes it, by layer: projections joined, experts stacked."""
    shared: dict[str, int] = {}
    by_layer: dict[tuple[bool, int], dict[str, int]] = {}
    head: dict[str, int] = {}
    for tensor in tensors:
        family = tensor.family
        name, size = _module(family), tensor.num_bytes * tensor.copies
        is_copied = family.name.endswith(_COPIED) and tensor.form.name not in _SIXTEEN_BIT
        if not family.layers:
            own = head if family.part is Part.LM_HEAD else shared
            own[name] = own.get(name, 0) + size
        for layer in tensor.layers:
            own = by_layer.setdefault((family.part is Part.MTP, layer), {})
            own[name] = own.get(name, 0) + size
            if is_copied:
                own[f"{name}*"] = 2 * prod(tensor.shape)
    for sizes in (shared, *(by_layer[key] for key in sorted(by_layer)), head):
        yield from sizes.values()


def _module(family: TensorFamily) -> str:
    """Return a name that tensors share which vLLM keeps in one, and experts of one projection."""
    path, _, kind = family.name.rpartition(".")
    parent, _, module = path.rpartition(".")
    if family.num_experts and "{expert}" not in family.name:
        return family.name
    return f"{parent}.{_JOINED.get(module, module)}.{kind}"
