"""The answer about the cache: bytes, terms, layers, ranks. Sums of an engine's demand, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.engines.base import Demand, GroupDemand, StreamDemand
from kvgauge.engines.ranks import refuse_ranks
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import STATE_KINDS, Axis, LayerCache, LayerKind, Mechanism, Rounding, Shard
from kvgauge.values import dataclass
from kvgauge.workload import Parallelism, Workload, pipeline_stages

_MAMBA = frozenset({Mechanism.MAMBA1, Mechanism.MAMBA2})


class Term(NamedTuple):
    """One growing part of one sequence: ``bytes_per_step x round((min(T, to) - from)+ / step)``."""

    group: str
    from_tokens: int
    to_tokens: int | None
    step_tokens: int
    rounding: Rounding
    bytes_per_step: int

    def bytes_at(self, tokens: int) -> int:
        """Return the bytes of this term at a context of ``tokens``."""
        end = tokens if self.to_tokens is None else min(tokens, self.to_tokens)
        span = max(0, end - self.from_tokens)
        steps = -(-span // self.step_tokens) if self.rounding is Rounding.CEIL else span // self.step_tokens
        return self.bytes_per_step * steps

    def slope_at(self, tokens: int) -> Fraction:
        """Return the bytes per token that the term grows by, just beyond ``tokens``."""
        growing = self.from_tokens <= tokens and (self.to_tokens is None or tokens < self.to_tokens)
        return Fraction(self.bytes_per_step, self.step_tokens) if growing else Fraction(0)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {
            "group": self.group,
            "from_tokens": self.from_tokens,
            "to_tokens": self.to_tokens,
            "step_tokens": self.step_tokens,
            "rounding": self.rounding.value,
            "bytes_per_step": self.bytes_per_step,
        }


class Stretch(NamedTuple):
    """Contexts over which one sequence grows by the same bytes a token; ``to_tokens`` None: no end."""

    from_tokens: int
    to_tokens: int | None
    bytes_per_token: Fraction


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """One cache of one layer: ``total_bytes`` for all sequences, the rest for one."""

    index: int
    kind: LayerKind
    total_bytes: int
    bytes_per_token: Fraction
    fixed_bytes: int
    window_tokens: int | None
    shares_cache_of: int | None


@dataclass(frozen=True)
class CacheAnswer:
    """Cache and state of a model under a load, as one engine keeps them.

    ``total_bytes`` counts the whole model once for all sequences; ``per_rank_bytes`` has
    one entry a rank (pipeline stage x tensor ranks + tensor rank), replication included.
    """

    architecture: ModelArchitecture
    workload: Workload
    parallelism: Parallelism
    demand: Demand

    @cached_property
    def family(self) -> str:
        """The ``cache.family`` word of the contract: the first that applies."""
        return cache_family(self.architecture)

    @cached_property
    def bytes_per_sequence(self) -> int:
        """One sequence at the context of the load."""
        return sum(g.group.num_layers * g.sequence_bytes(self.workload) for g in self.demand.groups)

    @cached_property
    def group_bytes(self) -> tuple[int, ...]:
        """Bytes of each group for all sequences, in the order of ``demand.groups``."""
        return tuple(g.group.num_layers * self._layer_total_bytes(g) for g in self.demand.groups)

    @cached_property
    def total_bytes(self) -> int:
        """All sequences, whole model counted once, a shared prefix kept once."""
        return sum(self.group_bytes)

    def _layer_total_bytes(self, group: GroupDemand) -> int:
        sequences = self.workload.sequences
        if group.pooled:
            return replace(group, streams=group.pooled).sequence_bytes(self.workload)
        one = group.sequence_bytes(self.workload)
        return sequences * one - (sequences - 1) * group.shared_bytes(self.workload)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The parts of one sequence that grow with its context."""
        merged: dict[tuple[str, int, int | None, int, Rounding], int] = {}
        for demand in self.demand.groups:
            for stream in demand.streams:
                counted = stream.counted
                if counted.axis is not Axis.DECODER:
                    continue
                key = (
                    demand.group.name,
                    counted.from_tokens,
                    counted.to_tokens,
                    counted.step_tokens,
                    counted.rounding,
                )
                merged[key] = merged.get(key, 0) + stream.row_bytes * demand.group.num_layers
        return tuple(Term(*key, size) for key, size in merged.items() if size)

    @cached_property
    def fixed_bytes_per_sequence(self) -> int:
        """What one sequence keeps whatever its context: state, convolution, cross-attention."""
        fixed = 0
        for demand in self.demand.groups:
            for stream in demand.streams:
                if stream.counted.axis is not Axis.DECODER:
                    rows = stream.counted.rows(self.workload.tokens_on(stream.counted.axis))
                    fixed += demand.group.num_layers * stream.row_bytes * rows
        return fixed

    def bytes_at(self, tokens: int) -> int:
        """Return the bytes of one sequence at a context of ``tokens``, exactly."""
        return self.fixed_bytes_per_sequence + sum(term.bytes_at(tokens) for term in self.terms)

    @cached_property
    def growth_bytes_per_token(self) -> Fraction:
        """The slope at the context of the load, for one sequence."""
        return sum((t.slope_at(self.workload.context_tokens) for t in self.terms), Fraction(0))

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The growth of one sequence from its first token on, neighbours of equal slope joined."""
        bends = {0} | {t for term in self.terms for t in (term.from_tokens, term.to_tokens) if t is not None}
        slopes: list[tuple[int, Fraction]] = []
        for start in sorted(bends):
            slope = sum((t.slope_at(start) for t in self.terms), Fraction(0))
            if not slopes or slopes[-1][1] != slope:
                slopes.append((start, slope))
        ends = [*(start for start, _ in slopes[1:]), None]
        return tuple(Stretch(start, end, slope) for (start, slope), end in zip(slopes, ends, strict=True))

    @cached_property
    def curve(self) -> tuple[tuple[int, int], ...]:
        """(tokens, bytes) of one sequence for plots: powers of two, every bend, the load and the limit."""
        end = max(self.workload.context_tokens, self.architecture.context_limit_tokens or 0, 1)
        points = {0, end, self.workload.context_tokens}
        points |= {1 << bit for bit in range(end.bit_length()) if 1 << bit <= end}
        for term in self.terms:
            points |= {p for p in (term.from_tokens, term.to_tokens) if p is not None and p <= end}
        return tuple((tokens, self.bytes_at(tokens)) for tokens in sorted(points))

    @cached_property
    def layers(self) -> tuple[LayerBytes, ...]:
        """One entry a cache, in layer order; then what an engine sets aside between the layers' pages."""
        figures = {}
        beside: list[LayerBytes] = []
        for demand in self.demand.groups:
            if demand.is_engines_own:
                beside.append(
                    LayerBytes(
                        demand.group.indices[0], demand.group.kind, *self._layer_figures(demand), None, None
                    )
                )
                continue
            # An engine may store layers of one shape in two ways, hence the index beside the shape.
            own = self._layer_figures(demand)
            figures.update({(_shape_of(demand.group), index): own for index in demand.group.indices})
        result: list[LayerBytes] = []
        for layer in (*self.architecture.layers, *self._mtp_layers):
            total, slope, fixed = figures[layer.shape, layer.index]
            result.append(
                LayerBytes(
                    layer.index, layer.kind, total, slope, fixed, layer.window_tokens, layer.shares_cache_of
                )
            )
        return (*result, *beside)

    @property
    def _mtp_layers(self) -> tuple[LayerCache, ...]:
        return self.architecture.mtp_layers if self.workload.mtp else ()

    def _layer_figures(self, group: GroupDemand) -> tuple[int, Fraction, int]:
        slope = Fraction(0)
        fixed = 0
        for stream in group.streams:
            counted = stream.counted
            if counted.axis is Axis.DECODER:
                tokens = self.workload.context_tokens
                within = counted.from_tokens <= tokens and (
                    counted.to_tokens is None or tokens < counted.to_tokens
                )
                slope += Fraction(stream.row_bytes, counted.step_tokens) if within else 0
            else:
                fixed += stream.row_bytes * counted.rows(self.workload.tokens_on(counted.axis))
        return self._layer_total_bytes(group), slope, fixed

    @cached_property
    def stages(self) -> tuple[range, ...]:
        """The layers of each pipeline stage."""
        own = self.demand.stages
        return own or pipeline_stages(self.architecture.num_layers, self.parallelism.pipeline)

    @cached_property
    def rank_group_bytes(self) -> tuple[tuple[int, ...], ...]:
        """For each rank, the bytes of each group for all sequences on that rank.

        Raises:
            FeatureUnsupportedError: the model can't be divided this way.
        """
        check_parallelism(self.architecture, self.parallelism)
        stages = self.stages
        last = len(stages) - 1
        ranks: list[tuple[int, ...]] = []
        counts = [
            [layers_in_stage(g.group, stage, is_last=number == last) for g in self.demand.groups]
            for number, stage in enumerate(stages)
        ]
        for stage_counts in counts:
            for tensor_rank in range(self.parallelism.tensor):
                ranks.append(
                    tuple(
                        count * self._rank_layer_bytes(group, tensor_rank) if count else 0
                        for group, count in zip(self.demand.groups, stage_counts, strict=True)
                    )
                )
        return tuple(ranks)

    @cached_property
    def per_rank_bytes(self) -> tuple[int, ...]:
        """All sequences of the fullest replica, one entry a rank, replication included."""
        return tuple(sum(groups) for groups in self.rank_group_bytes)

    @property
    def replicas_are_equal(self) -> bool:
        """Whether every data-parallel replica holds as many sequences as the fullest."""
        return self.workload.sequences % self.parallelism.data == 0

    def _rank_layer_bytes(self, group: GroupDemand, tensor_rank: int) -> int:
        if group.pooled:  # of engines that cut no layer
            return self._layer_total_bytes(group)
        load = self.workload
        sequences = -(-load.sequences // self.parallelism.data)
        total = 0
        for stream in group.streams:
            per_row = stream.rank_row_bytes(self.parallelism.tensor)
            rows, shared = self._rank_rows(stream, tensor_rank)
            total += per_row * (sequences * rows - (sequences - 1) * shared)
        return total

    def _rank_rows(self, stream: StreamDemand, tensor_rank: int) -> tuple[int, int]:
        load, counted = self.workload, stream.counted
        tokens = load.tokens_on(counted.axis)
        shared = counted.shared_rows(tokens, load.shared_prefix_tokens) if load.shared_prefix_tokens else 0
        rows = counted.rows(tokens)
        context_ranks = self.parallelism.context
        if context_ranks == 1 or counted.axis is not Axis.DECODER or counted.to_tokens is not None:
            return rows, shared
        _check_context_ranks(stream, self.parallelism)
        rank = 0 if self.demand.equal_context_ranks else tensor_rank % context_ranks
        return -(-max(0, rows - rank) // context_ranks), -(-max(0, shared - rank) // context_ranks)


def _check_context_ranks(stream: StreamDemand, parallelism: Parallelism) -> None:
    """Decode context parallelism uses up the replication of heads, no more."""
    if stream.shard is not Shard.HEADS:
        return
    replication = max(1, parallelism.tensor // max(1, stream.vectors))
    if replication % parallelism.context:
        raise FeatureUnsupportedError(
            f"--dcp {parallelism.context} needs each KV head on {parallelism.context} ranks, "
            f"--tp {parallelism.tensor} holds each on {replication}",
            hint=f"at most --dcp {replication} with --tp {parallelism.tensor}",
            field="dcp",
        )


def _shape_of(group: LayerGroup) -> tuple[object, ...]:
    return (group.kind, group.mechanism, group.streams, group.window_tokens)


def layers_in_stage(group: LayerGroup, stage: range, *, is_last: bool) -> int:
    """Return how many layers of a group a pipeline stage has; layers beyond the model's go to the last."""
    inside = sum(index in stage for index in group.indices)
    beyond = sum(index >= stage.stop for index in group.indices) if is_last else 0
    return inside + beyond


def check_parallelism(architecture: ModelArchitecture, parallelism: Parallelism) -> None:
    """Refuse a split that engines refuse.

    Raises:
        FeatureUnsupportedError: ranks don't divide the query heads, or stages exceed layers.
    """
    refuse_ranks(architecture, parallelism.tensor, parallelism.pipeline)


def cache_family(architecture: ModelArchitecture) -> str:
    """Return the family word of the contract: the first that applies."""
    if architecture.is_encoder_decoder:
        return "encoder_decoder"
    groups = [g for g in architecture.groups if g.kind not in (LayerKind.NONE, LayerKind.SHARED)]
    kinds = {g.kind for g in groups}
    state = kinds & STATE_KINDS
    if state and kinds - state:
        mechanisms = {g.mechanism for g in groups}
        return "hybrid_mamba" if mechanisms & _MAMBA else "hybrid_linear"
    for kind, family in (
        (LayerKind.RECURRENT, "recurrent"),
        (LayerKind.CONVOLUTION, "recurrent"),
        (LayerKind.COMPRESSED, "compressed"),
        (LayerKind.CHUNKED, "chunked"),
        (LayerKind.SLIDING, "sliding_window"),
        (LayerKind.LATENT, "mla"),
    ):
        if kind in kinds:
            return family
    return _attention_family(architecture, [g for g in groups if g.kind is LayerKind.FULL])


def _attention_family(architecture: ModelArchitecture, full: Sequence[LayerGroup]) -> str:
    heads = sorted({g.streams[0].vectors for g in full})
    if not heads:
        return "none"
    if len(heads) > 1:
        return "mixed"
    if heads[0] == architecture.num_attention_heads:
        return "mha"
    return "mqa" if heads[0] == 1 else "gqa"
