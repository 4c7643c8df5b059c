"""GPTQ, AWQ and AutoRound: integers of a few bits in int32 words, with scales and zero points of groups.

Tensors as AutoGPTQ, GPTQModel, AutoAWQ and auto-round write them: ``qweight``, ``qzeros``, ``scales`` and,
for GPTQ, ``g_idx``. They take the linear layers of the decoder's blocks; routers and the head stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvgauge.errors import InvalidFieldError
from kvgauge.readers.hf.schemes.block import Block
from kvgauge.readers.hf.schemes.formats import awq, gptq
from kvgauge.readers.hf.schemes.names import MAX_TEMPLATES, Allowance, Mode, NameSet
from kvgauge.readers.hf.schemes.rules import EVERYTHING, Reach, Rule, Scheme, any_family, is_head, labelled
from kvgauge.weight_formats import WeightFormat
from kvgauge.weights import TensorFamily

GPTQ_BITS = (2, 3, 4, 5, 6, 7, 8)
AWQ_BITS = (4,)
_GPTQ_FORMATS = ("gptq", "gptq_v2", "")
_AWQ_VERSIONS = ("gemm", "")
_PLAIN_BITS = 16


def _in_blocks(reach: Reach) -> Callable[[TensorFamily], bool]:
    """Take linear layers of the decoder's blocks, and the head where it is within reach."""
    return lambda family: reach.takes(family) and (bool(family.layers) or is_head(family))


def read_gptq(block: Block) -> Scheme:
    """Read a GPTQ block: ``bits``, ``group_size``, ``dynamic`` overrides, ``lm_head``."""
    if block.text("checkpoint_format", block.text("format")) not in _GPTQ_FORMATS:
        raise block.unsupported("checkpoint_format", "gptq", block.text("checkpoint_format"))
    bits, group = block.bits("bits", GPTQ_BITS), block.group_size(default=128)
    takes = _in_blocks(Reach(head=block.flag("lm_head")))
    rules = [Rule(None, NameSet.of(block.names("modules_to_not_convert"), Mode.CONTAINS), any_family)]
    rules += _overrides(block, bits, group)
    wanted = _flat(block)
    listed = NameSet.of(wanted, Mode.PATH) if wanted else None
    if listed is not None and block.flag("lm_head"):
        rules.append(Rule(gptq(bits, group), takes=is_head))
    rules.append(Rule(gptq(bits, group), listed, takes))
    return Scheme(_label("gptq", bits, group), tuple(rules))


def _label(method: str, bits: int, group: int) -> str:
    return labelled(method, f"int{bits}", f"g{group}" if group > 0 else "")


def _overrides(block: Block, bits: int, group: int) -> Iterator[Rule]:
    """Yield GPTQModel's ``dynamic``: regular expressions that skip modules, or give them other values."""
    allowance = Allowance()
    if len(block.table("dynamic")) > MAX_TEMPLATES:
        raise InvalidFieldError("the list of modules is too long", field=block.where("dynamic"))
    for pattern, values in block.table("dynamic").items():
        expression = pattern.removeprefix("-:").removeprefix("+:")
        names = NameSet.of([f"re:{expression}"], Mode.EXACT, allowance=allowance)
        if pattern.startswith("-:") or values is False:
            yield Rule(None, names)
            continue
        own = block.of(values, f"dynamic.{pattern}")
        yield Rule(
            gptq(own.bits("bits", GPTQ_BITS, bits), own.group_size(default=group)),
            names,
            _in_blocks(Reach(head=True)),
        )


def _flat(block: Block) -> list[str]:
    """Return ``modules_in_block_to_quantize``, a list of names or of lists of them."""
    value = block.values.get("modules_in_block_to_quantize")
    entries = value if isinstance(value, list) else []
    names = [name for entry in entries for name in (entry if isinstance(entry, list) else [entry])]
    if (value is not None and not isinstance(value, list)) or not all(isinstance(n, str) for n in names):
        raise block.invalid("modules_in_block_to_quantize", "a list of names")
    return names


def read_awq(block: Block) -> Scheme:
    """Read an AWQ block: ``bits``, ``group_size``, ``modules_to_not_convert``."""
    if block.text("version") not in _AWQ_VERSIONS:
        raise block.unsupported("version", "awq", block.text("version"))
    name = "w_bit" if block.has("w_bit") else "bits"
    bits = block.bits(name, AWQ_BITS)
    group = block.group_size("q_group_size" if block.has("q_group_size") else "group_size", 128)
    kept = NameSet.of(block.names("modules_to_not_convert"), Mode.CONTAINS)
    return Scheme(
        _label("awq", bits, group),
        (Rule(None, kept, any_family), Rule(awq(bits, group), takes=_in_blocks(Reach()))),
    )


_AUTO_ROUND_MULTIPLE = 32
_GPTQ_PACKINGS = (
    "auto_round:auto_gptq",
    "auto_round:gptqmodel",
    "auto_round:gptq",
    "auto_gptq",
    "auto_round",
    "",
)
_WITH_INDEX = ("auto_round:gptqmodel", "auto_gptq")
_AWQ_PACKINGS = ("auto_round:auto_awq", "auto_round:awq", "auto_awq")


def read_auto_round(block: Block) -> Scheme:
    """Read an AutoRound block: GPTQ or AWQ packing, ``extra_config`` for single layers, block names."""
    if block.text("data_type", "int") != "int":
        raise block.unsupported("data_type", "auto-round", block.text("data_type"))
    packing = block.text("packing_format")
    if packing not in (*_GPTQ_PACKINGS, *_AWQ_PACKINGS):
        raise block.unsupported("packing_format", "auto-round", packing)
    bits, group = block.bits("bits", GPTQ_BITS), block.group_size(default=128)

    def given(bits: int, group: int) -> WeightFormat:
        if packing in _AWQ_PACKINGS:
            return awq(bits, group)
        # Only the layers that GPTQModel and AutoGPTQ load themselves keep the order of inputs.
        return gptq(bits, group, index=packing in _WITH_INDEX)

    rules = list(_layer_config(block, bits, group, given))
    blocks = _block_names(block)
    names = NameSet.of(blocks, Mode.PATH) if blocks else None
    takes = _in_blocks(Reach(towers=bool(blocks)))
    rules.append(Rule(given(bits, group), names, lambda family: takes(family) and _divides(family)))
    if block.flag("lm_head"):
        rules.append(Rule(given(bits, group), takes=is_head))
    return Scheme(_label("auto-round", bits, group), tuple(rules))


def _divides(family: TensorFamily) -> bool:
    """auto-round leaves layers alone whose sizes are no multiples of 32."""
    return not any(size % _AUTO_ROUND_MULTIPLE for size in family.shape)


_EXPRESSION = frozenset("*+?^$()[]|\\")


def _layer_config(
    block: Block, bits: int, group: int, given: Callable[[int, int], WeightFormat]
) -> Iterator[Rule]:
    """Yield a rule for each value that ``extra_config`` gives to layers."""
    field = "extra_config" if block.has("extra_config") else "layer_config"
    allowance = Allowance()
    by_value: dict[tuple[int, int], tuple[list[str], list[str]]] = {}
    for name, values in block.table(field).items():
        own = block.of(values, f"{field}.{name}")
        if own.text("data_type", own.text("act_data_type", "int")) not in ("int", "float", "fp"):
            raise own.unsupported("data_type", "auto-round", own.text("data_type"))
        key = (own.number("bits", low=1, high=64, default=bits), own.group_size(default=group))
        exact, patterns = by_value.setdefault(key, ([], []))
        (patterns if _EXPRESSION & set(name) else exact).append(name)
    for searched in (False, True):
        for (own_bits, own_group), lists in by_value.items():
            names = [f"re:{name}" for name in lists[1]] if searched else lists[0]
            if not names:
                continue
            if own_bits < _PLAIN_BITS and own_bits not in GPTQ_BITS:
                raise block.unsupported(field, "auto-round", f"{own_bits}-bit")
            chosen = None if own_bits >= _PLAIN_BITS else given(own_bits, own_group)
            yield Rule(
                chosen, NameSet.of(names, Mode.PATH, anywhere=True, allowance=allowance), EVERYTHING.takes
            )


def _block_names(block: Block) -> list[str]:
    """Return which blocks are quantised: a list, or one text with commas."""
    for field in ("block_name_to_quantize", "to_quant_block_names"):
        value = block.values.get(field)
        if isinstance(value, str):
            return [name.strip() for name in value[: 1 << 16].split(",") if name.strip()]
        if isinstance(value, list):
            flat = [name for entry in value for name in (entry if isinstance(entry, list) else [entry])]
            if not all(isinstance(name, str) for name in flat):
                raise block.invalid(field, "a list of names")
            return flat
        if value is not None:
            raise block.invalid(field, "a list of names")
    return []
