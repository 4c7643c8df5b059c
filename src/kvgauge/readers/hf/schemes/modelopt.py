"""NVIDIA ModelOpt: one algorithm for all linear layers, or one for each, and wildcards of what is left alone.

Formats and name rules of vLLM 0.33 (``modelopt.py``), which reads the published checkpoints. Listed names are
paths or wildcards, and may have another prefix than the tensors. Vision towers are never quantised. A file
without a list leaves alone what ModelOpt's own defaults do: the head and routers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvgauge.readers.hf.schemes.assumed import kept_layers
from kvgauge.readers.hf.schemes.block import Block
from kvgauge.readers.hf.schemes.formats import (
    SCALAR,
    fp8_blocks,
    fp8_channel,
    fp8_tensor,
    mxfp4,
    mxfp8,
    nvfp4,
)
from kvgauge.readers.hf.schemes.names import Mode, NameSet
from kvgauge.readers.hf.schemes.rules import EVERYTHING, Reach, Rule, Scheme, any_family, labelled
from kvgauge.weight_formats import Tile, WeightFormat

_BLOCK = 128


def _awq(group: int, scalars: int = 0) -> WeightFormat:
    """Two values a byte, fp32 scales of groups; W4A8 has a second scale and one of the inputs."""
    return WeightFormat("int4", 4, (Tile(1, group, 32),), per_tensor_bytes=SCALAR * scalars)


_FORMATS: Mapping[str, Callable[[int], WeightFormat]] = {
    "fp8": lambda _: fp8_tensor(input_scale=True),
    "fp8_per_channel_per_token": lambda _: fp8_channel(),
    "fp8_pb_wo": lambda _: fp8_blocks(_BLOCK, _BLOCK),
    "fp8_pb_real_quant": lambda _: fp8_blocks(_BLOCK, _BLOCK),
    "nvfp4": lambda group: nvfp4(group, input_scale=True),
    "w4a16_nvfp4": lambda group: nvfp4(group, input_scale=False),
    "mxfp8": lambda _: mxfp8(),
    "w4a8_nvfp4_fp8": lambda group: nvfp4(group, input_scale=True),
    "w4a8_mxfp4_fp8": lambda _: mxfp4(),
    "mxfp4": lambda _: mxfp4(),
    "w8a16": lambda _: WeightFormat("int8", 8, (Tile(1, 0, 32),)),
    "w4a16_awq": _awq,
    "w4a8_awq": lambda group: _awq(group, scalars=2),
}
_GROUP, _AWQ_GROUP = 16, 128
_REACH = Reach(head=True, mtp=True)


def read_modelopt(block: Block) -> Scheme:
    """Read a ModelOpt block, of the config or of ``hf_quant_config.json``."""
    inner = block.inner("quantization") or block
    algorithm = inner.text("quant_algo") or inner.text("moe_quant_algo")
    lists = ("exclude_modules", "ignore")
    kept = Rule(None, NameSet.of(inner.names(*lists), Mode.PATH), any_family)
    if algorithm == "mixed_precision":
        return _mixed(inner, kept)
    chosen = _format(inner, algorithm, inner.group_size(default=_default_group(algorithm)))
    label = labelled("modelopt", chosen.name)
    if any(inner.has(name) for name in lists):
        return Scheme(label, (kept, Rule(chosen, takes=_REACH.takes)))
    return Scheme(label, (Rule(chosen, takes=Reach(mtp=True).takes),), notes=(kept_layers(block),))


def _default_group(algorithm: str) -> int:
    return _AWQ_GROUP if algorithm.endswith("_awq") else _GROUP


def _format(block: Block, algorithm: str, group: int) -> WeightFormat:
    make = _FORMATS.get(algorithm)
    if make is None:
        raise block.unsupported("quant_algo", "modelopt", algorithm)
    return make(max(group, 1))


def _mixed(block: Block, kept: Rule) -> Scheme:
    """Each listed module has an algorithm; a listed parent speaks for what is below it."""
    by_format: dict[WeightFormat, list[str]] = {}
    known: dict[tuple[str, int], WeightFormat] = {}
    for name, values in block.table("quantized_layers").items():
        own = block.of(values, f"quantized_layers.{name}")
        algorithm = own.text("quant_algo")
        key = algorithm, own.group_size(default=_default_group(algorithm))
        if key not in known:
            known[key] = _format(own, *key)
        by_format.setdefault(known[key], []).append(name)
    if not by_format:
        raise block.unsupported("quantized_layers", "modelopt", "quantized_layers={}")
    rules = [
        Rule(chosen, NameSet.of(names, Mode.PATH), EVERYTHING.takes) for chosen, names in by_format.items()
    ]
    label = labelled("modelopt", ", ".join(dict.fromkeys(chosen.name for chosen in by_format)))
    return Scheme(label, (kept, *rules))
