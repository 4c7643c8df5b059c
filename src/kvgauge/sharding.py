"""The share of a tensor that one tensor-parallel rank holds: a smaller shape, or a refusal.

The rules are those of Megatron-style layers, which all serving engines have in common; a ``ShardPolicy``
holds what an engine does differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from math import gcd
from types import MappingProxyType
from typing import NamedTuple

from kvgauge.errors import FeatureUnsupportedError
from kvgauge.values import dataclass
from kvgauge.weight_formats import WeightFormat, plain
from kvgauge.weights import Part, TensorFamily, WeightShard


@dataclass(frozen=True, slots=True)
class ExpertPadding:
    """Multiples that a kernel needs: of an expert's cut intermediate size, and of its hidden size."""

    intermediate: int = 1
    hidden: int = 1


_NO_PADDING = ExpertPadding()


@dataclass(frozen=True, slots=True)
class ShardPolicy:
    """What engines do differently when they cut weights.

    Args:
        vocabulary_multiple: rows of embedding and head are padded up to a multiple of it, at any split.
        pads_vocabulary: and up to the ranks where they do not divide that; else such a split is refused.
        whole_tiles: a cut through a two-dimensional tile of a quantised tensor is refused; not where heads
            are cut, whose projections are joined.
        held_as: end of a tensor's name -> dtype that it is loaded in, whatever the file has.
        whole: ends of names of tensors that no rank cuts.
        loaded_as: format name -> dtype that unquantised weights of it are cast to.
        wide_router: router matrices are loaded in fp32.
        whole_expert_groups: inputs of a cut expert that fill no quantisation group have no scale.
        expert_padding: format name -> what its expert kernels need.
        refines_expert_tiles: a cut expert whose tiles it divides gets smaller tiles, of a common divisor.
        loads_tied_projections: a projection that shares another one's memory is loaded once more.
        whole_towers: a tower's tensor that the ranks don't divide is whole on each; else refused.
        embedding_everywhere: every pipeline stage holds the embedding.
        head_everywhere: every pipeline stage holds the head.
        towers_everywhere: every pipeline stage holds the towers and projectors.
        split_layers: (layers, stages) -> layers of each pipeline stage; None: as vLLM deals them out.
    """

    vocabulary_multiple: int = 1
    pads_vocabulary: bool = True
    whole_tiles: bool = False
    held_as: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    whole: tuple[str, ...] = ()
    loaded_as: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    wide_router: bool = False
    expert_padding: Mapping[str, ExpertPadding] = field(default_factory=lambda: MappingProxyType({}))
    refines_expert_tiles: bool = False
    whole_expert_groups: bool = False
    loads_tied_projections: bool = False
    whole_towers: bool = True
    embedding_everywhere: bool = False
    head_everywhere: bool = False
    towers_everywhere: bool = False
    split_layers: Callable[[int, int], tuple[range, ...]] | None = None


#: Parts that encode what is no text; their layers are not the decoder's.
TOWERS = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})

#: What must be held: the even share of each tensor.
THEORY = ShardPolicy()


@dataclass(frozen=True, slots=True)
class Cut:
    """Ranks that share one tensor.

    Args:
        tensor: ranks that cut a layer.
        expert: ranks that cut one expert.
        intermediate: an expert's inner width, of which its joined projections hold several.
        kernel: name of the format of an expert's matrices; its biases are padded for the same kernel.
    """

    tensor: int
    expert: int = 1
    intermediate: int = 0
    kernel: str = ""


class RankTensor(NamedTuple):
    """What the first tensor rank of a stage holds of a family: for each of ``layers`` so many ``copies``.

    Args:
        layers: indices; empty where the tensor is no layer's.
        copies: tensors a layer: 1, or the experts that the rank holds.
        shape: of one tensor on the rank.
        form: the format that it has there.
    """

    family: TensorFamily
    layers: tuple[int, ...]
    copies: int
    shape: tuple[int, ...]
    form: WeightFormat

    @property
    def num_bytes(self) -> int:
        """Bytes of one tensor."""
        return self.form.stored_bytes(self.shape)


def rank_tensor(
    family: TensorFamily, form: WeightFormat, cut: Cut, policy: ShardPolicy
) -> tuple[tuple[int, ...], WeightFormat]:
    """Return the shape that the fullest rank holds of one tensor, and the format that it has there.

    Raises:
        FeatureUnsupportedError: the ranks divide a dimension, its heads or its tiles unevenly.

    >>> keys = TensorFamily("k", (1024, 4096), Part.ATTENTION, WeightShard.KV_HEADS, shard_units=8)
    >>> rank_tensor(keys, plain("bf16"), Cut(16), THEORY)[0]  # eight heads, each on two ranks
    (128, 4096)
    """
    form = _loaded(family, form, policy)
    if family.num_experts:
        if policy.refines_expert_tiles:
            form = _refined(family, form, cut)
        if policy.whole_expert_groups:
            form = replace(form, tiles=tuple(replace(t, whole_only=t.rows == 1) for t in form.tiles))
        return _expert_shape(family, cut, policy.expert_padding.get(cut.kernel, _NO_PADDING)), form
    if policy.whole and family.name.endswith(policy.whole):
        return family.shape, form
    try:
        shape = _SHARES[family.shard](family, cut.tensor, policy)
    except FeatureUnsupportedError:
        if not policy.whole_towers or family.part not in TOWERS:
            raise
        return family.shape, form
    if policy.whole_tiles and family.shard is not WeightShard.KV_HEADS:
        _check_tiles(family, form, shape, cut.tensor)
    return shape, form


def _loaded(family: TensorFamily, form: WeightFormat, policy: ShardPolicy) -> WeightFormat:
    if policy.wide_router and family.part is Part.ROUTER and len(family.shape) > 1:
        return plain("f32")
    dtype = next((dtype for end, dtype in policy.held_as.items() if family.name.endswith(end)), None)
    dtype = dtype or policy.loaded_as.get(form.name)
    return plain(dtype) if dtype else form


def _replicated(family: TensorFamily, ranks: int, policy: ShardPolicy) -> tuple[int, ...]:
    del ranks, policy
    return family.shape


def _column(family: TensorFamily, ranks: int, policy: ShardPolicy) -> tuple[int, ...]:
    del policy
    return (_share(family, family.shape[0], ranks, "outputs"), *family.shape[1:])


def _row(family: TensorFamily, ranks: int, policy: ShardPolicy) -> tuple[int, ...]:
    del policy
    if len(family.shape) < 2:
        return family.shape
    outputs, inputs, *rest = family.shape
    return (outputs, _share(family, inputs, ranks, "inputs"), *rest)


def _vocabulary(family: TensorFamily, ranks: int, policy: ShardPolicy) -> tuple[int, ...]:
    rows = round_up(family.shape[0], policy.vocabulary_multiple)
    if policy.pads_vocabulary:
        return (-(-rows // ranks), *family.shape[1:])
    return (_share(family, rows, ranks, "padded rows"), *family.shape[1:])


def _kv_heads(family: TensorFamily, ranks: int, policy: ShardPolicy) -> tuple[int, ...]:
    """Cut by heads (or groups), each on several ranks once there are more ranks than heads."""
    del policy
    rows, units = family.shape[0], family.shard_units
    own = family.unit_rows or rows
    if not units or own % units or (units % ranks and ranks % units):
        raise FeatureUnsupportedError(
            f"--tp {ranks} and the {units} key-value heads or groups of {family.name} "
            "don't divide one another",
            field="tp",
        )
    others = _share(family, rows - own, ranks, "outputs")
    return (others + own // units * max(1, units // ranks), *family.shape[1:])


_SHARES: Mapping[WeightShard, Callable[[TensorFamily, int, ShardPolicy], tuple[int, ...]]] = MappingProxyType(
    {
        WeightShard.REPLICATED: _replicated,
        WeightShard.COLUMN: _column,
        WeightShard.ROW: _row,
        WeightShard.VOCABULARY: _vocabulary,
        WeightShard.KV_HEADS: _kv_heads,
    }
)


def _share(family: TensorFamily, size: int, ranks: int, what: str) -> int:
    if size % ranks:
        raise FeatureUnsupportedError(
            f"--tp {ranks} does not divide the {size} {what} of {family.name}", field="tp"
        )
    return size // ranks


def _check_tiles(family: TensorFamily, form: WeightFormat, shape: tuple[int, ...], ranks: int) -> None:
    for tile in form.tiles:
        if tile.flat or tile.rows < 2 or len(shape) < 2:
            continue
        for dim, step in ((0, tile.rows), (1, tile.columns)):
            if shape[dim] != family.shape[dim] and step and shape[dim] % step:
                raise FeatureUnsupportedError(
                    f"--tp {ranks} leaves {shape[dim]} of {family.name} on a rank, "
                    f"which is no multiple of its {tile.rows}x{tile.columns} quantisation blocks",
                    field="tp",
                )


def _expert_shape(family: TensorFamily, cut: Cut, padding: ExpertPadding) -> tuple[int, ...]:
    step = padding.intermediate
    first, *rest = family.shape
    if family.shard is WeightShard.COLUMN:
        joined = first // cut.intermediate if cut.intermediate else 1
        width = _share(family, first // max(1, joined), cut.expert, "outputs")
        return (max(1, joined) * round_up(width, step), *_padded(rest, padding.hidden))
    if family.shard is WeightShard.ROW and rest:
        width = _share(family, rest[0], cut.expert, "inputs")
        return (round_up(first, padding.hidden), round_up(width, step), *rest[1:])
    return (round_up(first, padding.hidden), *rest)


#: Tiles get no smaller (vLLM ``refine_fp8_moe_block_shape``).
_SMALLEST_TILE = 32


def _refined(family: TensorFamily, form: WeightFormat, cut: Cut) -> WeightFormat:
    """Return the format with tiles that the share of an expert holds whole."""
    tiles = [tile for tile in form.tiles if tile.rows > 1 and tile.columns > 1 and not tile.flat]
    if not tiles or len(family.shape) < 2:
        return form
    width = _width(family, cut)
    hidden = family.shape[0] if family.shard is WeightShard.ROW else family.shape[1]
    for tile in tiles:
        if width % tile.rows or (cut.expert > 1 and width % tile.columns):
            side = gcd(tile.rows, tile.columns, width, hidden)
            if side < _SMALLEST_TILE:
                raise FeatureUnsupportedError(
                    f"--tp {cut.tensor} leaves an expert {width} wide on a rank, "
                    f"which its {tile.rows}x{tile.columns} quantisation blocks can't be cut to",
                    field="tp",
                )
            form = replace(
                form, tiles=tuple(replace(t, rows=side, columns=side) if t == tile else t for t in form.tiles)
            )
    return form


def _width(family: TensorFamily, cut: Cut) -> int:
    """Return the inner width of an expert that a rank holds."""
    full = family.shape[1] if family.shard is WeightShard.ROW else cut.intermediate or family.shape[0]
    return full // cut.expert


def _padded(dims: list[int], multiple: int) -> list[int]:
    return [round_up(dims[0], multiple), *dims[1:]] if dims else []


def round_up(size: int, multiple: int) -> int:
    """Return the next multiple.

    >>> round_up(151655, 64)
    151680
    """
    return -(-size // multiple) * multiple
