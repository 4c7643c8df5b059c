"""What sequences of a context make TensorRT-LLM set aside: blocks of every layer, one state a sequence.

Beside the bytes of the blocks stands what must be kept. A window that is told has blocks of its own, and one
more, as it seldom starts where a block does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.engines.base import Beside, GroupDemand, StreamDemand
from kvgauge.engines.tensorrt_llm.kv_dtypes import model_dtype
from kvgauge.engines.tensorrt_llm.notes import RESERVED
from kvgauge.engines.tensorrt_llm.planning import token_bytes
from kvgauge.engines.tensorrt_llm.pool import TrtllmPlan
from kvgauge.layers import (
    ONE_PER_SEQUENCE,
    STATE_KINDS,
    Counted,
    LayerCache,
    LayerKind,
    Role,
    Rounding,
    Shard,
)
from kvgauge.values import dataclass

_WINDOWS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})

Streams = tuple[StreamDemand, ...]


@dataclass(frozen=True, slots=True)
class Demands:
    """The same groups three times: as set aside, as must be kept, as in use."""

    groups: tuple[GroupDemand, ...]
    kept: tuple[GroupDemand, ...]
    used: tuple[GroupDemand, ...]


def blocks(plan: TrtllmPlan, window_tokens: int | None) -> Counted:
    """Return the blocks of a request in layers of a window; None is the whole context."""
    block = plan.tokens_per_block
    if window_tokens is None or window_tokens >= plan.max_seq_tokens:
        return Counted(step_tokens=block, rounding=Rounding.CEIL)
    return Counted(to_tokens=window_tokens + block, step_tokens=block, rounding=Rounding.CEIL)


def group_demands(plan: TrtllmPlan, architecture: ModelArchitecture, *, mtp: bool) -> Demands:
    """Return the demand of a plan for the model's layers, its multi-token-prediction ones where asked for."""
    rows: list[tuple[LayerGroup, Streams, Streams, Streams]] = []
    layers = (*architecture.layers, *(architecture.mtp_layers if mtp else ()))
    for group in (*architecture.groups, *(architecture.mtp_groups if mtp else ())):
        members = [layer for layer in layers if layer.index in group.indices and layer.shape == _shape(group)]
        rows += _by_window(group, members, plan, architecture)
    return Demands(
        tuple(GroupDemand(group, taken) for group, taken, _, _ in rows),
        tuple(GroupDemand(group, kept) for group, _, kept, _ in rows),
        tuple(GroupDemand(group, used) for group, _, _, used in rows),
    )


def _shape(group: LayerGroup) -> tuple[object, ...]:
    return (group.kind, group.mechanism, group.streams, group.window_tokens)


def _by_window(
    group: LayerGroup, members: list[LayerCache], plan: TrtllmPlan, architecture: ModelArchitecture
) -> Iterator[tuple[LayerGroup, Streams, Streams, Streams]]:
    """Yield the layers of a group, apart where windows that are told differ."""
    windows = dict(plan.layer_windows)
    parts: dict[int | None, list[int]] = {}
    for layer in members:
        parts.setdefault(windows.get(layer.index), []).append(layer.index)
    for number, (window, indices) in enumerate(parts.items(), 1):
        name = group.name if number == 1 else f"{group.name}.{number}"
        own = replace(group, name=name, indices=tuple(indices))
        yield own, *_held(members[0], window, plan, architecture)


def _held(
    layer: LayerCache, window: int | None, plan: TrtllmPlan, architecture: ModelArchitecture
) -> tuple[Streams, Streams, Streams]:
    """Return what one layer takes, keeps and uses."""
    if not layer.streams:
        return (), (), ()
    if layer.kind in STATE_KINDS:
        rows = _state_rows(layer, plan, architecture)
        return rows, rows, rows
    settings, block = plan.settings, plan.tokens_per_block
    counted = blocks(plan, window)
    form = "fp8_e4m3" if layer.kind is LayerKind.INDEX else plan.kv_dtype
    ranks = settings.attention_ranks
    kept = tuple(_spread(StreamDemand.of(stream, form), ranks) for stream in layer.streams)
    taken = [replace(row, counted=counted, factor=block) for row in kept]
    target = int(block * token_bytes(layer, settings, plan.kv_dtype, block))
    more = target - sum(row.rank_row_bytes(ranks) for row in taken)
    if more > 0:
        taken.append(StreamDemand.padding(more, ranks, counted))
    live = Counted(to_tokens=counted.to_tokens)
    if counted.to_tokens is not None:
        # A window that is told may be less than the layer's own: then no more than that is kept.
        limit = window if window is not None else None
        kept = tuple(replace(row, counted=_lesser(row.counted, limit)) for row in kept)
    return tuple(taken), kept, tuple(replace(row, counted=live) for row in kept)


def _lesser(counted: Counted, tokens: int | None) -> Counted:
    ends = [end for end in (counted.to_tokens, tokens) if end is not None]
    return replace(counted, to_tokens=min(ends, default=None))


def _spread(row: StreamDemand, ranks: int) -> StreamDemand:
    """Return heads that ranks can share: a rank that shares one with another holds it whole."""
    even = row.vectors % ranks == 0 or ranks % row.vectors == 0
    if row.shard is not Shard.HEADS or even:
        return row
    return replace(row, vectors=-(-row.vectors // ranks) * ranks)


def _state_rows(layer: LayerCache, plan: TrtllmPlan, architecture: ModelArchitecture) -> Streams:
    settings = plan.settings
    conv = model_dtype(architecture, settings)
    return tuple(
        replace(
            StreamDemand.of(
                stream,
                settings.state_dtype or stream.declared_dtype or conv
                if stream.role is Role.RECURRENT
                else conv,
            ),
            counted=ONE_PER_SEQUENCE,
        )
        for stream in layer.streams
    )


def reserved(plan: TrtllmPlan) -> tuple[Beside, ...]:
    """Return the slots of state that no sequence causes, by stage."""
    if not plan.has_state:
        return ()
    slots = 1 + plan.settings.draft_tokens
    return (Beside("reserved", tuple(slots * size for size in plan.state_bytes_per_slot), RESERVED),)


__all__ = ["Demands", "blocks", "group_demands", "reserved"]
