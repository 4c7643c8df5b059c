"""HQQ, Quark and torchao."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvgauge.readers.hf.schemes.block import Block
from kvgauge.readers.hf.schemes.formats import SCALAR, awq, fp8_channel, fp8_tensor, mxfp4, mxfp8
from kvgauge.readers.hf.schemes.names import Mode, NameSet
from kvgauge.readers.hf.schemes.rules import EVERYTHING, Reach, Rule, Scheme, any_family, labelled
from kvgauge.weight_formats import Tile, WeightFormat

_REACH = Reach(router=True, towers=True, fragile=True)
#: What hqq 0.2.8 keeps of a layer beside its numbers: sizes, names of dtypes and switches, a tensor each.
_HQQ_STATE = 69


def read_hqq(block: Block) -> Scheme:
    """Read an HQQ block: values packed into bytes, scale and zero point of a group in 16 bits."""
    inner = block.inner("quant_config") or block
    weights = inner.inner("weight_quant_params")
    if weights is None:
        raise block.unsupported("quant_config", "hqq", "dynamic_config")
    for name in ("scale_quant_params", "zero_quant_params"):
        if inner.has(name):
            raise inner.unsupported(name, "hqq", name)
    bits, group = weights.bits("nbits", (1, 2, 4, 8)), weights.group_size(default=64)
    tile = Tile(0, group, 32, flat=True) if group > 0 else Tile(1, 0, 32)
    skipped = block.names("skip_modules") or ["lm_head"]
    label = labelled("hqq", f"int{bits}", f"g{group}" if group > 0 else "")
    return Scheme(
        label,
        (
            Rule(None, NameSet.of(skipped, Mode.PATH), any_family),
            Rule(WeightFormat(f"int{bits}", bits, (tile,), per_tensor_bytes=_HQQ_STATE), takes=_REACH.takes),
        ),
    )


def read_quark(block: Block) -> Scheme:
    """Read a Quark block: one format for all, others for layers that wildcards name, and a list left out."""
    kept = Rule(None, NameSet.of(block.names("exclude"), Mode.PATH), any_family)
    rules = []
    for name, values in block.table("layer_quant_config").items():
        own = _quark(block.of(values, f"layer_quant_config.{name}"))
        rules.append(Rule(own, NameSet.of([name], Mode.PATH), EVERYTHING.takes))
    everywhere = block.inner("global_quant_config")
    if everywhere is None and not rules:
        raise block.unsupported("global_quant_config", "quark", "global_quant_config=null")
    chosen = None if everywhere is None else _quark(everywhere)
    if chosen is not None:
        rules.append(Rule(chosen, takes=Reach(head=True, towers=True).takes))
    label = chosen or next((rule.given for rule in rules if isinstance(rule.given, WeightFormat)), None)
    return Scheme(labelled("quark", label.name if label else ""), (kept, *rules))


def _quark(scheme: Block) -> WeightFormat | None:
    weight = scheme.inner("weight")
    if weight is None:
        return None
    inputs = scheme.inner("input_tensors")
    static = inputs is not None and not inputs.flag("is_dynamic")
    dtype, spread = weight.text("dtype"), weight.text("qscheme")
    if dtype in ("fp4", "fp8_e4m3") and spread == "per_group" and weight.group_size() == 32:
        return mxfp4() if dtype == "fp4" else mxfp8()
    tensor = {
        "fp8_e4m3": fp8_tensor(input_scale=static),
        "int8": WeightFormat("int8", 8, per_tensor_bytes=SCALAR * (1 + static) + 1),
    }
    channel = {
        "fp8_e4m3": fp8_channel(input_scale=static),
        "int8": WeightFormat("int8", 8, (Tile(1, 0, 32), Tile(1, 0, 8)), per_tensor_bytes=SCALAR * static),
    }
    if dtype in ("int4", "uint4") and spread in ("per_group", "per_channel"):
        return awq(4, weight.group_size(default=-1))  # words along the outputs, zero points always
    known = {"per_tensor": tensor, "per_channel": channel}.get(spread, {}).get(dtype)
    if known is None:
        raise weight.unsupported("dtype", "quark", dtype, spread)
    return known


_TORCHAO: Mapping[str, Callable[[int], WeightFormat]] = {
    "int4": lambda group: WeightFormat("int4", 4, (Tile(1, group, 32),)),
    "int8": lambda _: WeightFormat("int8", 8, (Tile(1, 0, 32), Tile(1, 0, 8))),
    "fp8": lambda _: fp8_channel(),
}
_TORCHAO_WORDS = {
    "int4_weight_only": "int4", "int4weightonlyconfig": "int4",
    "int8_weight_only": "int8", "int8weightonlyconfig": "int8",
    "int8_dynamic_activation_int8_weight": "int8", "int8dynamicactivationint8weightconfig": "int8",
    "float8_weight_only": "fp8", "float8weightonlyconfig": "fp8",
    "float8dynamicactivationfloat8weightconfig": "fp8",
}  # fmt: skip


def read_torchao(block: Block) -> Scheme:
    """Read a torchao block: one configuration for all linear layers."""
    word, values = _torchao_type(block)
    kind = _TORCHAO_WORDS.get(word)
    if kind is None:
        raise block.unsupported("quant_type", "torchao", word)
    group = values.group_size(default=128)
    chosen = _TORCHAO[kind](max(group, 0))
    kept = NameSet.of(block.names("modules_to_not_convert"), Mode.PATH)
    if block.flag("include_input_output_embeddings"):
        raise block.unsupported("include_input_output_embeddings", "torchao", "embeddings")
    label = labelled("torchao", kind, f"g{group}" if kind == "int4" else "")
    return Scheme(label, (Rule(None, kept, any_family), Rule(chosen, takes=_REACH.takes)))


def _torchao_type(block: Block) -> tuple[str, Block]:
    """Return the configuration's name and values: a word with keywords, or a class with its data."""
    if isinstance(block.values.get("quant_type"), str):
        return block.text("quant_type"), block.inner("quant_type_kwargs") or block.of({}, "quant_type_kwargs")
    inner = block.inner("quant_type")
    default = None if inner is None else inner.inner("default")
    if default is None:
        raise block.unsupported("quant_type", "torchao", "quant_type")
    return default.text("_type"), default.inner("_data") or default
