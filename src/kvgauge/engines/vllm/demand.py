"""What sequences of a context make vLLM set aside: the blocks of every layer, as streams of rows.

A block is so many rows of the layer's streams, and padding. Blocks are counted by the layer's group, so the
bytes hold at every length. Beside them stand what must be kept, and what is in use beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.engines.base import Beside, GroupDemand, StreamDemand, rank_vectors
from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind
from kvgauge.engines.vllm.notes import RESERVED
from kvgauge.engines.vllm.pool import VllmPlan
from kvgauge.engines.vllm.requests import RequestRules, counted_blocks, kept_of_window
from kvgauge.layers import STATE_KINDS, Counted, LayerKind, Mechanism, Role, Stream
from kvgauge.values import dataclass
from kvgauge.workload import pipeline_stages

_WINDOWS = frozenset({SpecKind.SLIDING, SpecKind.CHUNKED})

Streams = tuple[StreamDemand, ...]


@dataclass(frozen=True, slots=True)
class Demands:
    """The same groups three times: as set aside, as must be kept, as in use."""

    groups: tuple[GroupDemand, ...]
    kept: tuple[GroupDemand, ...]
    used: tuple[GroupDemand, ...]


@dataclass(frozen=True, slots=True)
class _Held:
    """What one cache of one layer takes, keeps and uses."""

    taken: Streams = ()
    kept: Streams = ()
    used: Streams = ()

    def __add__(self, other: _Held) -> _Held:
        return _Held(self.taken + other.taken, self.kept + other.kept, self.used + other.used)


def group_demands(plan: VllmPlan, architecture: ModelArchitecture, groups: Iterable[LayerGroup]) -> Demands:
    """Return the demand of a plan for these groups of the model's layers."""
    held: dict[tuple[object, ...], _Held] = {}
    for group in plan.spec_groups:
        for spec in group.specs:
            if spec.layer is not None:
                key = (spec.layer.shape, spec.layer.index)
                held[key] = held.get(key, _Held()) + _held(spec, group.sample, plan)
    rows: list[tuple[LayerGroup, _Held]] = []
    for layers in groups:
        rows += _by_storage(layers, held)
    rows += [(group, _Held(streams)) for group, streams in _short_groups(plan, architecture)]
    return Demands(
        tuple(GroupDemand(group, own.taken) for group, own in rows),
        tuple(GroupDemand(group, own.kept) for group, own in rows),
        tuple(GroupDemand(group, own.used) for group, own in rows),
    )


def _by_storage(group: LayerGroup, held: dict[tuple[object, ...], _Held]) -> list[tuple[LayerGroup, _Held]]:
    """Return the layers of a group, apart where the engine stores some of them in another way."""
    shape = (group.kind, group.mechanism, group.streams, group.window_tokens)
    parts: dict[_Held, list[int]] = {}
    for index in group.indices:
        own = held.get((shape, index)) or _beside_blocks(group)
        parts.setdefault(own, []).append(index)
    return [
        (
            replace(
                group, name=group.name if not number else f"{group.name}.{number + 1}", indices=tuple(indices)
            ),
            own,
        )
        for number, (own, indices) in enumerate(parts.items())
    ]


def _beside_blocks(group: LayerGroup) -> _Held:
    """Return what layers hold that have no blocks: state before version 0.8."""
    if group.kind not in STATE_KINDS:
        return _Held()
    streams = tuple(StreamDemand.of(stream, stream.declared_dtype or "f32") for stream in group.streams)
    return _Held(streams, streams, streams)


# -- one cache of one layer -----------------------------------------------------------------------


def _held(spec: CacheSpec, sample: CacheSpec, plan: VllmPlan) -> _Held:
    """Return the streams of one spec, whose blocks are those of its group's sample."""
    counts = counted_blocks(sample, plan.requests)
    taken: list[StreamDemand] = []
    kept: list[StreamDemand] = []
    used: list[StreamDemand] = []
    page = 0
    for row, stream, rows in _rows(spec, plan.tensor_ranks):
        page += rows * row.rank_row_bytes(plan.tensor_ranks)
        taken += [replace(row, counted=counted, factor=rows * times) for counted, times in counts]
        kept.append(_kept(row, stream, spec))
        used += _used(row, stream, spec, plan.requests, counts)
    if spec.page_bytes > page:
        pad = spec.page_bytes - page
        taken += [StreamDemand.padding(pad, plan.tensor_ranks, counted, times) for counted, times in counts]
    return _Held(tuple(taken), tuple(kept), tuple(used))


def _rows(spec: CacheSpec, tensor_ranks: int) -> Iterable[tuple[StreamDemand, Stream, int]]:
    """Yield (one row as it is stored, the stream that it is of, how many a block holds)."""
    assert spec.layer is not None  # noqa: S101 - only specs of the model's layers come here
    streams = spec.layer.streams
    if spec.shape[0] == "compressor":
        stream = next(s for s in streams if s.role is Role.COMPRESSOR and s.width == spec.shape[1])
        row = replace(StreamDemand.of(stream, stream.declared_dtype or "f32"), vectors=1)
        yield row, stream, spec.block_tokens
        return
    if spec.kind is SpecKind.RECURRENT:
        parts: tuple[tuple[str, int, str], ...] = spec.shape[1:]  # type: ignore[assignment]
        for stream, (_, elements, dtype) in zip(streams, parts, strict=True):
            each = rank_vectors(stream.vectors, stream.shard, tensor_ranks, stream.role) * stream.width
            yield StreamDemand.of(stream, dtype, columns=elements // max(1, each)), stream, 1
        return
    own = [stream for stream in streams if stream.role is not Role.COMPRESSOR]
    forms: tuple[str, ...] = spec.shape[1]  # type: ignore[assignment]
    for stream, dtype in zip(own, forms, strict=True):
        yield StreamDemand.of(stream, dtype), stream, spec.block_tokens // stream.counted.step_tokens


def _kept(row: StreamDemand, stream: Stream, spec: CacheSpec) -> StreamDemand:
    if stream.role is Role.COMPRESSOR:
        return replace(row, counted=Counted(to_tokens=stream.vectors))
    columns = stream.columns if spec.kind is SpecKind.RECURRENT else row.columns
    return replace(row, counted=stream.counted, columns=columns)


def _used(
    row: StreamDemand,
    stream: Stream,
    spec: CacheSpec,
    rules: RequestRules,
    counts: tuple[tuple[Counted, int], ...],
) -> Streams:
    """Return the rows that hold something: of a window those in flight too, of a state its copies."""
    if spec.kind in _WINDOWS:
        return (replace(row, counted=Counted(to_tokens=kept_of_window(spec, rules))),)
    if spec.kind is SpecKind.RECURRENT:
        return tuple(replace(row, counted=counted, factor=times) for counted, times in counts)
    counted = replace(stream.counted, to_tokens=None) if spec.kind is SpecKind.FULL else stream.counted
    return (replace(row, counted=counted),)


# -- blocks of the pool ---------------------------------------------------------------------------


def _short_groups(plan: VllmPlan, architecture: ModelArchitecture) -> Iterable[tuple[LayerGroup, Streams]]:
    """Yield, by pipeline stage, what a block leaves unused in groups of fewer bytes than the largest."""
    stages = pipeline_stages(architecture.num_layers, len(plan.stages))
    found = zip(stages, plan.stages, plan.stage_blocks, strict=True)
    for number, (stage, sizes, widest) in enumerate(found):
        streams = [
            StreamDemand.padding(widest - size, plan.tensor_ranks, counted, times)
            for group, size in zip(plan.spec_groups, sizes, strict=True)
            if size < widest
            for counted, times in counted_blocks(group.sample, plan.requests)
        ]
        if streams:
            name = "padding" if number == 0 else f"padding.{number + 1}"
            yield LayerGroup(name, LayerKind.NONE, Mechanism.NONE, (), None, (stage.start,)), _merged(streams)


def _merged(streams: list[StreamDemand]) -> Streams:
    """Join padding that is counted alike."""
    sums: dict[tuple[Counted, int], StreamDemand] = {}
    for stream in streams:
        key = (stream.counted, stream.factor)
        found = sums.get(key)
        sums[key] = stream if found is None else replace(found, width=found.width + stream.width)
    return tuple(sums.values())


def reserved(plan: VllmPlan) -> tuple[Beside, ...]:
    """Return the block that the pool keeps for itself, which empty slots point at."""
    if not plan.reserved_blocks:
        return ()
    return (Beside("reserved", plan.stage_blocks, RESERVED),)


__all__ = ["Demands", "group_demands", "reserved"]
