"""Bytes of weights on each rank: tensor, pipeline and expert parallelism, replication included.

A rank's share of a tensor is a smaller tensor, which the tensor's own format prices: scales follow the cut,
partial tiles are whole ones. Layers go to the stages that their caches go to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kvgauge.cache import pipeline_stages
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.sharding import THEORY, Cut, ShardPolicy, rank_tensor
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weight_formats import WeightFormat
from kvgauge.weights import Part, TensorFamily, WeightShard
from kvgauge.workload import Parallelism

__all__ = ["THEORY", "ShardPolicy", "rank_bytes", "rank_elements"]

#: Parts of the first stage whatever their layers: those layers are not the decoder's.
_TOWERS = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})
#: Parts of the first stage where they are no layer's.
_FIRST = frozenset({Part.EMBEDDING, Part.PER_LAYER_EMBEDDING})
#: Norms of what the first stage computes before the layers; any other norm that is no layer's is the last.
_FIRST_NORMS = ("word_embeddings_layernorm", "per_layer_projection_norm")
_CANDIDATES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64)


class _Share(NamedTuple):
    """What one rank holds of a family: tensors of ``tensor_size`` each, on each stage ``layers`` of them."""

    tensor_size: int
    layers: tuple[int, ...]
    experts: tuple[int, ...]


def rank_bytes(
    stored: StoredWeights,
    layout: Parallelism,
    *,
    num_layers: int,
    policy: ShardPolicy = THEORY,
    mtp: bool = False,
) -> tuple[int, ...]:
    """Return the bytes of each rank of the fullest replica (pipeline stage x tensor ranks + tensor rank).

    Args:
        stored: the whole model.
        layout: ranks. Expert parallelism spreads whole experts over ranks of all replicas, the first ones
            holding one more where they don't divide; fewer expert than tensor ranks cut each expert too.
        num_layers: layers of the decoder, which the pipeline is cut into.
        policy: what the engine does differently.
        mtp: the multi-token-prediction module is loaded, on the last stage.

    Raises:
        FeatureUnsupportedError: the model can't be divided this way; the hint says what can.
    """
    return _per_rank(stored, layout, num_layers, policy, mtp=mtp, bits=None)


def rank_elements(
    stored: StoredWeights,
    layout: Parallelism,
    *,
    num_layers: int,
    policy: ShardPolicy = THEORY,
    mtp: bool = False,
) -> tuple[int, ...]:
    """Return the values of each rank, in the order of ``rank_bytes``, scales not counted."""
    return _per_rank(stored, layout, num_layers, policy, mtp=mtp, bits=_VALUES)


#: One byte a value: bytes are then values.
_VALUES = WeightFormat("values", 8)


def _per_rank(
    stored: StoredWeights,
    layout: Parallelism,
    num_layers: int,
    policy: ShardPolicy,
    *,
    mtp: bool,
    bits: WeightFormat | None,
) -> tuple[int, ...]:
    _check_layout(layout, num_layers)
    widths = _intermediate_sizes((*stored.families, *stored.mtp_families))
    try:
        shares = [
            _share(item, place, layout, widths, policy, bits)
            for item, place in _placed(stored, layout, num_layers, policy, mtp=mtp)
        ]
    except FeatureUnsupportedError as error:
        if error.hint or error.field != "tp":
            raise
        raise FeatureUnsupportedError(
            error.message, hint=_what_can(stored, layout, num_layers, policy, mtp=mtp), field="tp"
        ) from None
    return tuple(
        sum(share.tensor_size * share.layers[stage] * share.experts[rank] for share in shares)
        for stage in range(layout.pipeline)
        for rank in range(layout.tensor)
    )


def _check_layout(layout: Parallelism, num_layers: int) -> None:
    if layout.pipeline > max(1, num_layers):
        raise FeatureUnsupportedError(f"--pp {layout.pipeline} exceeds the {num_layers} layers", field="pp")
    ranks = layout.tensor * layout.data
    if layout.expert > 1 and (ranks % layout.expert or _uneven(layout.expert, layout.tensor)):
        sizes = range(2, ranks + 1)
        can = [str(n) for n in sizes if not ranks % n and not _uneven(n, layout.tensor)][:12]
        raise FeatureUnsupportedError(
            f"--ep {layout.expert} can't be spread over --tp {layout.tensor} x --dp {layout.data} ranks",
            hint=f"--ep {', '.join(can)} can" if can else "expert parallelism needs --tp or --dp",
            field="ep",
        )


def _uneven(a: int, b: int) -> bool:
    return bool(a % b and b % a)


def _what_can(
    stored: StoredWeights, layout: Parallelism, num_layers: int, policy: ShardPolicy, *, mtp: bool
) -> str:
    """Return a hint: the tensor-parallel sizes that divide the whole model."""
    fits = []
    for ranks in _CANDIDATES:
        other = Parallelism(ranks, layout.pipeline)
        placed = _placed(stored, other, num_layers, policy, mtp=mtp)
        widths = _intermediate_sizes((*stored.families, *stored.mtp_families))
        try:
            for item, _ in placed:
                rank_tensor(item.family, item.format, _cut(item.family, other, widths), policy)
        except FeatureUnsupportedError:
            continue
        fits.append(ranks)
    return f"--tp {', '.join(map(str, fits))} can" if fits else ""


def _placed(
    stored: StoredWeights, layout: Parallelism, num_layers: int, policy: ShardPolicy, *, mtp: bool
) -> list[tuple[StoredFamily, tuple[int, ...]]]:
    """Return each family that is loaded, with its layers on each stage."""
    stages = pipeline_stages(num_layers, layout.pipeline)
    last = tuple(int(stage is stages[-1]) for stage in stages)
    placed = []
    for item in stored.families:
        if not _is_loaded(item, policy):
            continue
        placed.append((item, _layers_by_stage(item.family, stages, policy)))
    if layout.pipeline > 1 and _is_tied(stored.families) and not policy.embedding_everywhere:
        placed += [(item, last) for item, _ in placed if _is_embedding(item.family)]
    if mtp:
        placed += [
            (item, tuple(end * max(1, len(item.family.layers)) for end in last))
            for item in stored.mtp_families
            if _is_loaded(item, policy)
        ]
    return placed


def _is_loaded(item: StoredFamily, policy: ShardPolicy) -> bool:
    if item.is_duplicate:
        return False
    if not item.family.tied_to:
        return True
    return policy.loads_tied_projections and bool(item.family.layers)


def _is_embedding(family: TensorFamily) -> bool:
    return family.part is Part.EMBEDDING and family.shard is WeightShard.VOCABULARY


def _is_tied(families: Iterable[StoredFamily]) -> bool:
    """Whether the head is the embedding: no head has bytes of its own."""
    return not any(item.family.part is Part.LM_HEAD and item.num_bytes for item in families)


def _layers_by_stage(family: TensorFamily, stages: tuple[range, ...], policy: ShardPolicy) -> tuple[int, ...]:
    count = max(1, len(family.layers))
    final = len(stages) - 1
    if family.part in _TOWERS:
        return tuple(count if policy.towers_everywhere or not number else 0 for number in range(final + 1))
    if family.layers:
        beyond = sum(index >= stages[-1].stop for index in family.layers)
        inside = [sum(index in stage for index in family.layers) for stage in stages]
        return (*inside[:-1], inside[-1] + beyond)
    everywhere = (policy.embedding_everywhere and _is_embedding(family)) or (
        policy.head_everywhere and family.part is Part.LM_HEAD
    )
    is_first = family.part in _FIRST or any(word in family.name for word in _FIRST_NORMS)
    place = 0 if is_first else final
    return tuple(int(everywhere or number == place) for number in range(final + 1))


def _share(
    item: StoredFamily,
    layers: tuple[int, ...],
    layout: Parallelism,
    widths: Mapping[tuple[int, ...], int],
    policy: ShardPolicy,
    bits: WeightFormat | None,
) -> _Share:
    family = item.family
    shape, form = rank_tensor(family, item.format, _cut(family, layout, widths), policy)
    size = (bits or form).stored_bytes(shape)
    return _Share(size, layers, _experts_by_rank(family.num_experts, layout))


def _cut(family: TensorFamily, layout: Parallelism, widths: Mapping[tuple[int, ...], int]) -> Cut:
    width = widths.get(family.layers, 0)
    is_joined = width and not family.shape[0] % width
    return Cut(layout.tensor, max(1, layout.tensor // layout.expert), width if is_joined else 0)


def _experts_by_rank(count: int, layout: Parallelism) -> tuple[int, ...]:
    """Return how many experts each tensor rank of the first replica holds, whole or cut.

    The first ranks hold one more where they don't divide (vLLM ``determine_expert_map``, linear placement).
    """
    if not count:
        return (1,) * layout.tensor
    even, more = divmod(count, layout.expert)
    each = max(1, layout.tensor // layout.expert)
    return tuple(even + (rank // each < more) for rank in range(layout.tensor))


def _intermediate_sizes(families: Iterable[StoredFamily]) -> dict[tuple[int, ...], int]:
    """Return layers -> inner width of their experts: the inputs of the projection back."""
    return {
        item.family.layers: item.family.shape[1]
        for item in families
        if item.family.num_experts and item.family.shard is WeightShard.ROW and len(item.family.shape) > 1
    }
