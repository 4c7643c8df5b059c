"""MLX: linear layers and embeddings in uint32 words, with a scale and an offset of each group.

A block without a method, ``quantization`` or ``quantization_config``: ``bits``, ``group_size``, ``mode``, and
other values, or false, under the names of single modules (mlx-lm 0.28). Rows that hold no whole number of
groups stay; so do vision and audio towers (mlx-vlm), and routers that are plain arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvgauge.readers.hf.schemes.block import Block
from kvgauge.readers.hf.schemes.names import Mode, NameSet
from kvgauge.readers.hf.schemes.rules import Reach, Rule, Scheme, labelled
from kvgauge.weight_formats import Tile, WeightFormat
from kvgauge.weights import TensorFamily

_BITS = (2, 3, 4, 5, 6, 8)
_REACH = Reach(head=True, router=True, embedding=True, fragile=True)
_LISTED = Reach(head=True, router=True, towers=True, embedding=True, mtp=True, fragile=True)
#: mode -> (bits of what a group has, of a scale and an offset in 16 bits each where affine).
_GROUP_BITS = {"affine": 32, "mxfp4": 8, "mxfp8": 8, "nvfp4": 8}
_NAMES = ("group_size", "bits", "mode", "quant_method", "linear_class", "quantize_activations")


def read_mlx(block: Block) -> Scheme:
    """Read an MLX block."""
    chosen, group = _format(block, block)
    rules = [*_layers(block), Rule(chosen, takes=_takes(_REACH, group))]
    return Scheme(labelled("mlx", chosen.name, f"g{group}"), tuple(rules))


def _format(values: Block, default: Block) -> tuple[WeightFormat, int]:
    mode = values.text("mode", default.text("mode", "affine"))
    if mode not in _GROUP_BITS:
        raise values.unsupported("mode", "mlx", mode)
    bits = values.bits("bits", _BITS, default.bits("bits", _BITS, 4))
    group = values.group_size(default=default.group_size(default=64))
    if group < 1:
        raise values.invalid("group_size", "a number of values")
    name = f"int{bits}" if mode == "affine" else mode
    return WeightFormat(name, bits, (Tile(1, group, _GROUP_BITS[mode]),), word_bits=32), group


def _takes(reach: Reach, group: int) -> Callable[[TensorFamily], bool]:
    return lambda family: reach.takes(family) and family.shape[-1] % group == 0


def _layers(block: Block) -> Iterator[Rule]:
    """Yield a rule for each value that single modules have."""
    by_format: dict[tuple[WeightFormat, int] | None, list[str]] = {}
    for name, values in block.values.items():
        if name in _NAMES or not isinstance(values, dict | bool):
            continue
        if values is not True:
            own = None if values is False else _format(block.of(values, name), block)
            by_format.setdefault(own, []).append(name)
    for own, names in by_format.items():
        listed = NameSet.of(names, Mode.PATH)
        if own is None:
            yield Rule(None, listed, _LISTED.takes)
        else:
            yield Rule(own[0], listed, _takes(_LISTED, own[1]))
