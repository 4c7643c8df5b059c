"""Bytes of weights on each rank: tensor, pipeline and expert parallelism, replication included.

A rank's share of a tensor is a smaller tensor, which the tensor's own format prices: scales follow the cut,
partial tiles are whole ones. Layers go to the stages that their caches go to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kvgauge.errors import FeatureUnsupportedError
from kvgauge.sharding import THEORY, TOWERS, Cut, RankTensor, ShardPolicy, rank_tensor
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weight_formats import WeightFormat
from kvgauge.weights import Part, TensorFamily, WeightShard
from kvgauge.workload import Parallelism, pipeline_stages

__all__ = ["THEORY", "RankTensor", "ShardPolicy", "rank_bytes", "rank_elements", "rank_tensors"]

#: Parts of the first stage where they are no layer's.
_FIRST = frozenset({Part.EMBEDDING, Part.PER_LAYER_EMBEDDING})
#: Parts of the last stage where they are no layer's; what is left is shared by layers, so on every stage.
_LAST = frozenset({Part.LM_HEAD, Part.NORM, Part.OTHER, Part.MTP})
#: Norms of what the first stage computes before the layers; any other norm that is no layer's is the last.
_FIRST_NORMS = ("word_embeddings_layernorm", "per_layer_projection_norm")
_MOST_EXPERT_RANKS = 4096
_CANDIDATES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64)


class _Share(NamedTuple):
    """What one rank holds of a family: tensors of ``tensor_size`` each, on each stage ``layers`` of them."""

    tensor_size: int
    layers: tuple[int, ...]
    experts: tuple[int, ...]


class _Expert(NamedTuple):
    """What the experts of some layers have in common: inner width, and format of their matrices."""

    width: int
    kernel: str


_Experts = Mapping[tuple[int, ...], _Expert]


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
        stored: the whole model. Where only a total is known, each rank has an even share of it, which is
            a little less than what it holds.
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


def rank_tensors(
    stored: StoredWeights,
    layout: Parallelism,
    *,
    num_layers: int,
    policy: ShardPolicy = THEORY,
    stage: int = 0,
    mtp: bool = False,
) -> tuple[RankTensor, ...]:
    """Return the tensors that the first rank of a pipeline stage holds; their bytes are its ``rank_bytes``.

    Raises:
        FeatureUnsupportedError: the model can't be divided this way.

    >>> from kvgauge.weight_formats import plain
    >>> up = TensorFamily("layers.{layer}.up", (8, 4), Part.MLP, WeightShard.COLUMN, layers=(0, 1))
    >>> stored = StoredWeights((StoredFamily(up, plain("bf16")),))
    >>> [(t.layers, t.num_bytes) for t in rank_tensors(stored, Parallelism(2), num_layers=2)]
    [((0, 1), 32)]
    """
    _check_layout(layout, num_layers)
    experts = _experts(stored)
    held = []
    for item, place in _placed(stored, layout, num_layers, policy, mtp=mtp):
        family = item.family
        on_all = sum(place) > max(1, len(family.layers))
        start = 0 if on_all else sum(place[:stage])
        layers = family.layers[start : start + place[stage]]
        if place[stage]:
            shape, form = rank_tensor(family, item.format, _cut(family, layout, experts), policy)
            copies = _experts_by_group(family.num_experts, layout)[0]
            held.append(RankTensor(family, layers, copies, shape, form))
    return tuple(held)


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
    if stored.source == "index":
        ranks = layout.tensor * layout.pipeline
        return (-(-stored.num_bytes // ranks),) * ranks
    experts = _experts(stored)
    try:
        shares = [
            _share(item, place, layout, experts, policy, bits)
            for item, place in _placed(stored, layout, num_layers, policy, mtp=mtp)
        ]
    except FeatureUnsupportedError as error:
        if error.hint or error.field != "tp":
            raise
        raise FeatureUnsupportedError(
            error.message, hint=_what_can(stored, layout, num_layers, policy, mtp=mtp), field="tp"
        ) from None
    each = _ranks_of_an_expert(layout)
    sizes: list[int] = []
    for stage in range(layout.pipeline):
        held = [(share.tensor_size * share.layers[stage], share.experts) for share in shares]
        for group in range(layout.tensor // each):
            sizes += [sum(size * experts[group] for size, experts in held)] * each
    return tuple(sizes)


def _check_layout(layout: Parallelism, num_layers: int) -> None:
    if layout.pipeline > max(1, num_layers):
        raise FeatureUnsupportedError(f"--pp {layout.pipeline} exceeds the {num_layers} layers", field="pp")
    ranks = layout.tensor * layout.data
    if layout.expert > 1 and (ranks % layout.expert or _uneven(layout.expert, layout.tensor)):
        sizes = range(2, min(ranks, _MOST_EXPERT_RANKS) + 1)
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
        experts = _experts(stored)
        try:
            for item, _ in placed:
                rank_tensor(item.family, item.format, _cut(item.family, other, experts), policy)
        except FeatureUnsupportedError:
            continue
        fits.append(ranks)
    return f"--tp {', '.join(map(str, fits))} can" if fits else ""


def _placed(
    stored: StoredWeights, layout: Parallelism, num_layers: int, policy: ShardPolicy, *, mtp: bool
) -> list[tuple[StoredFamily, tuple[int, ...]]]:
    """Return each family that is loaded, with its layers on each stage."""
    stages = (policy.split_layers or pipeline_stages)(num_layers, layout.pipeline)
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
    if family.part in TOWERS:
        return tuple(count if policy.towers_everywhere or not number else 0 for number in range(final + 1))
    if family.layers:
        held = [0] * len(stages)
        starts = [stage.start for stage in stages]
        for index in family.layers:
            held[bisect_right(starts, index) - 1] += 1
        return tuple(held)
    if _is_everywhere(family, policy):
        return (1,) * (final + 1)
    is_first = family.part in _FIRST or any(word in family.name for word in _FIRST_NORMS)
    place = 0 if is_first else final
    return tuple(int(number == place) for number in range(final + 1))


def _is_everywhere(family: TensorFamily, policy: ShardPolicy) -> bool:
    if family.part is Part.LM_HEAD:
        return policy.head_everywhere
    return family.part not in _FIRST | _LAST or (policy.embedding_everywhere and _is_embedding(family))


def _share(
    item: StoredFamily,
    layers: tuple[int, ...],
    layout: Parallelism,
    experts: _Experts,
    policy: ShardPolicy,
    bits: WeightFormat | None,
) -> _Share:
    family = item.family
    shape, form = rank_tensor(family, item.format, _cut(family, layout, experts), policy)
    size = (bits or form).stored_bytes(shape)
    return _Share(size, layers, _experts_by_group(family.num_experts, layout))


def _cut(family: TensorFamily, layout: Parallelism, experts: _Experts) -> Cut:
    own = experts.get(family.layers)
    each = _ranks_of_an_expert(layout)
    if own is None or not family.num_experts:
        return Cut(layout.tensor, each)
    width = 0 if family.shape[0] % own.width else own.width
    return Cut(layout.tensor, each, width, own.kernel)


def _ranks_of_an_expert(layout: Parallelism) -> int:
    """Return how many tensor ranks cut one expert; 1 where each holds whole ones."""
    return max(1, layout.tensor // layout.expert)


def _experts_by_group(count: int, layout: Parallelism) -> tuple[int, ...]:
    """Return how many experts each group of tensor ranks of the first replica holds, whole or cut.

    The first groups hold one more where they don't divide (vLLM ``determine_expert_map``, linear placement).
    Without expert parallelism there is one group.
    """
    groups = layout.tensor // _ranks_of_an_expert(layout)
    if not count:
        return (1,) * groups
    even, more = divmod(count, layout.expert)
    return tuple(even + (group < more) for group in range(groups))


def _experts(stored: StoredWeights) -> _Experts:
    """Return layers -> their experts, told by the projection back: its inputs are their inner width."""
    return {
        item.family.layers: _Expert(item.family.shape[1], item.format.name)
        for item in (*stored.families, *stored.mtp_families)
        if item.family.num_experts and item.family.shard is WeightShard.ROW and len(item.family.shape) > 1
    }
