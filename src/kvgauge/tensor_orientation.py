"""How a checkpoint's tensors lie, and how what lies there is cut over ranks.

``WeightShard`` speaks of a matrix as (outputs, inputs). Some layouts lie the other way; scales, zero points
and look-up tables have shapes of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kvgauge.packed_tensors import Raw, is_transposed
from kvgauge.readers.tensor_names import Kept, TensorPlace
from kvgauge.sources.safetensors import DTYPE_BITS
from kvgauge.weights import WeightShard

#: A cut of what goes with a matrix must divide for the usual ranks, else each holds it all: it is small.
_USUAL_RANKS = 8


def oriented(
    place: TensorPlace,
    kept: Kept,
    shape: tuple[int, ...],
    tensors: Mapping[str, Raw],
    wanted: tuple[int, ...] | None,
    hidden: int,
    *,
    stacked: bool,
) -> tuple[tuple[int, ...], WeightShard]:
    """Return a tensor's shape with outputs first, and how that shape is cut.

    Args:
        shape: of the tensor, or of one expert's slice where ``stacked``.
        tensors: all tensors of the module, by suffix.
        wanted: the shape that the config gives the matrix, or None.
        hidden: the hidden size, or 0.
    """
    shard = place.shard
    if kept in (Kept.ONCE, Kept.BUFFER):
        return shape, WeightShard.REPLICATED
    if kept is Kept.PER_INPUT:
        return shape, _divided(
            shape, WeightShard.COLUMN
        ) if shard is WeightShard.ROW else WeightShard.REPLICATED
    if "weight.absmax" in tensors and place.suffix != "bias":
        return shape, _divided(shape, WeightShard.COLUMN if shard is WeightShard.ROW else shard)  # flat
    if len(shape) == 2 and _lies_turned(shape, place, tensors, wanted, hidden, stacked=stacked):
        shape = shape[::-1]
    if len(shape) > 2 and place.suffix == "blocks":
        shape = (shape[0], shape[1] * shape[2], *shape[3:])
    return shape, shard if kept is Kept.VALUES else _divided(shape, shard)


def _lies_turned(
    shape: tuple[int, ...],
    place: TensorPlace,
    tensors: Mapping[str, Raw],
    wanted: tuple[int, ...] | None,
    hidden: int,
    *,
    stacked: bool,
) -> bool:
    """Whether a matrix lies inputs first."""
    if is_transposed(tensors) and place.suffix != "bias":
        return True
    if wanted is not None:
        return shape != wanted and shape[::-1] == wanted
    if not stacked or place.suffix or shape[0] == shape[1]:
        return False
    side = 0 if place.shard is WeightShard.COLUMN else 1
    return (
        bool(hidden) and shape[side] == hidden
    )  # hidden states come in on a column cut, go out of a row cut


def _divided(shape: tuple[int, ...], shard: WeightShard) -> WeightShard:
    """Return how what goes with a matrix is cut: as the matrix, or not at all."""
    side = 1 if shard is WeightShard.ROW else 0
    fits = len(shape) > side and shape[side] and shape[side] % _USUAL_RANKS == 0
    return shard if fits else WeightShard.REPLICATED


def whole_bytes(
    shape: tuple[int, ...], shard: WeightShard, dtype: str
) -> tuple[tuple[int, ...], WeightShard]:
    """Return a shape whose single matrices are whole bytes; narrow dtypes fill them over the whole tensor."""
    if 0 in shape:
        return (0,), WeightShard.REPLICATED
    bits = DTYPE_BITS[dtype]
    if len(shape) < 3 or prod(shape[-2:]) * bits % 8 == 0:
        return shape, shard
    return (prod(shape),), WeightShard.REPLICATED
