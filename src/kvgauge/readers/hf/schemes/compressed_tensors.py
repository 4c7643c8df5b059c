"""compressed-tensors: groups of targets, each with its own arguments, and a list of what is left alone.

Tensors as compressed-tensors 0.20 writes them: ``weight`` or ``weight_packed``, ``weight_scale`` in the model
dtype (fp8 or e8m0 for four-bit floats), ``weight_zero_point`` where asymmetric, ``weight_shape``, global
scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvgauge.readers.hf.schemes.block import MAX_GROUP, Block
from kvgauge.readers.hf.schemes.formats import mxfp4, mxfp8, nvfp4
from kvgauge.readers.hf.schemes.names import Mode, NameSet
from kvgauge.readers.hf.schemes.rules import EVERYTHING, Reach, Rule, Scheme, any_family, labelled
from kvgauge.readers.values import as_count
from kvgauge.weight_formats import Tile, WeightFormat
from kvgauge.weights import Part, TensorFamily

_SCALE_BITS = 16
_SHAPE_BYTES = 16  #: ``weight_shape``, two int64
_GROUPS = 64
_LINEAR_CLASSES = ("linear",)
_REACH = Reach(head=True, towers=True)
_TOWERS = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})


def read_compressed_tensors(block: Block) -> Scheme:
    """Read a compressed-tensors block."""
    sparse = block.inner("sparsity_config")
    if sparse is not None and sparse.text("format", "dense") != "dense":
        raise block.unsupported("sparsity_config", "compressed-tensors", sparse.text("format"))
    groups = list(_groups(block))
    if not groups:
        raise block.unsupported("config_groups", "compressed-tensors", "config_groups={}")
    takes = _takes(block)
    rules = [Rule(None, NameSet.of(block.names("ignore"), Mode.EXACT), any_family)]
    for group, chosen in groups:
        named = [target for target in group.names("targets") if not _is_class(target)]
        if named:
            rules.append(Rule(chosen, NameSet.of(named, Mode.EXACT), EVERYTHING.takes))
    for group, chosen in groups:
        if any(target.lower() in _LINEAR_CLASSES for target in group.names("targets")):
            rules.append(Rule(chosen, takes=takes))
    return Scheme(_label(groups), tuple(rules))


def _takes(block: Block) -> Callable[[TensorFamily], bool]:
    """Take linear layers, those of towers only where the block speaks for the whole model."""

    def takes(family: TensorFamily) -> bool:
        return _REACH.takes(family) and not (block.text_only and family.part in _TOWERS)

    return takes


def _is_class(target: str) -> bool:
    return not target.startswith("re:") and "." not in target and target[:1].isupper()


def _label(groups: list[tuple[Block, WeightFormat]]) -> str:
    words = []
    for group, chosen in groups:
        size = _size(group.inner("weights") or group) if chosen.name.startswith("int") else 0
        words.append(chosen.name + (f" g{size}" if size > 0 else ""))
    return labelled("compressed-tensors", ", ".join(dict.fromkeys(words)))


def _groups(block: Block) -> Iterator[tuple[Block, WeightFormat]]:
    """Yield the groups that quantise weights, with their format."""
    table = block.table("config_groups")
    if len(table) > _GROUPS:
        raise block.invalid("config_groups", "a few groups")
    for name, values in table.items():
        group = block.of(values, f"config_groups.{name}")
        weights = group.inner("weights")
        if weights is not None:
            packing = group.text("format", block.text("format"))
            yield group, _format(weights, group.inner("input_activations"), packing)


_PACKINGS = {
    "pack-quantized": "packed", "nvfp4-pack-quantized": "nvfp4", "mxfp4-pack-quantized": "mxfp4",
    "marlin-24": "marlin", "mxfp8-quantized": "mxfp8", "float-quantized": "naive", "int-quantized": "naive",
    "naive-quantized": "naive",
}  # fmt: skip


def _format(weights: Block, inputs: Block | None, packing: str) -> WeightFormat:
    kind = _PACKINGS.get(packing)
    if kind is None:
        raise weights.unsupported("format", "compressed-tensors", packing)
    if kind == "nvfp4":
        return nvfp4(max(_size(weights), 1), input_scale=_is_static(inputs))
    if kind == "mxfp4":
        return mxfp4(max(_size(weights), 1))
    if kind == "mxfp8":
        return mxfp8()
    if kind == "marlin":
        return _marlin(weights)
    return _packed(weights) if kind == "packed" else _naive(weights, inputs)


def _is_static(inputs: Block | None) -> bool:
    return inputs is not None and inputs.values.get("dynamic") is not True and inputs.has("num_bits")


def _input_bytes(inputs: Block | None) -> int:
    """Bytes of a static scale of the inputs, and of its zero point where there is one."""
    if inputs is None or not _is_static(inputs):
        return 0
    return _SCALE_BITS // 8 + (not inputs.flag("symmetric", default=True))


def _naive(weights: Block, inputs: Block | None) -> WeightFormat:
    bits = weights.bits("num_bits", (8,))
    tile = _tile(weights)
    kind = weights.text("type", "int")
    zero = () if weights.flag("symmetric", default=True) or tile is None else (_with_bits(tile, 8),)
    tiles = (() if tile is None else (tile,)) + zero
    own = (tile is None) * _SCALE_BITS // 8 + _input_bytes(inputs)
    return WeightFormat("fp8" if kind == "float" else f"int{bits}", bits, tiles, per_tensor_bytes=own)


def _packed(weights: Block) -> WeightFormat:
    bits = weights.bits("num_bits", (1, 2, 3, 4, 5, 6, 7, 8))
    tile = _tile(weights) or Tile(0, 0, _SCALE_BITS)
    tiles: tuple[Tile, ...] = (tile,)
    if not weights.flag("symmetric", default=True):
        tiles += (Tile(tile.rows, tile.columns, bits, word_bits=32),)
    # Only an order by group needs an index of inputs; "weight" and "static" are baked in.
    index = 4 * (weights.values.get("actorder") in ("group", "dynamic", True))
    return WeightFormat(
        f"int{bits}", bits, tiles, word_bits=32, per_input_bytes=index, per_tensor_bytes=_SHAPE_BYTES
    )


def _marlin(weights: Block) -> WeightFormat:
    """2:4 sparse: half the values, and two bits that place each of them."""
    bits = weights.bits("num_bits", (4, 8))
    tile = _tile(weights) or Tile(1, 0, _SCALE_BITS)
    return WeightFormat(f"int{bits}", bits // 2 + 1, (tile,), per_tensor_bytes=_SHAPE_BYTES)


def _size(weights: Block) -> int:
    return weights.group_size(default=-1)


def _tile(weights: Block) -> Tile | None:
    """Return what shares a scale; None for the whole tensor."""
    strategy = weights.text("strategy")
    if not strategy:
        strategy = "group" if weights.has("group_size") else "tensor"
    if strategy == "tensor":
        return None
    if strategy == "channel":
        return Tile(1, 0, _SCALE_BITS)
    if strategy in ("group", "tensor_group"):
        return Tile(1, max(_size(weights), 0), _SCALE_BITS)
    if strategy == "block":
        return Tile(*_structure(weights), _SCALE_BITS)
    raise weights.unsupported("strategy", "compressed-tensors", strategy)


def _structure(weights: Block) -> tuple[int, int]:
    value = weights.values.get("block_structure")
    if isinstance(value, str):  # "128x128" in older files
        value = [int(n) if n.isdecimal() and len(n) < 10 else n for n in value[:40].split("x")]
    if not isinstance(value, list) or len(value) != 2:
        raise weights.invalid("block_structure", "two numbers")
    rows, columns = (as_count(n, weights.where("block_structure"), low=1, high=MAX_GROUP) for n in value)
    return rows, columns


def _with_bits(tile: Tile, bits: int) -> Tile:
    return Tile(tile.rows, tile.columns, bits)
