"""What sequences of a context make SGLang set aside: pages of every layer, slots of state.

Pages hold tokens of all layers of a pool, so every layer's rows are counted in pages of its pool. Layers are
held as the engine prices them; where that is more than the layer's own rows, the rest is padding. Beside
them stand what must be kept, and what is in use beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.engines.base import Beside, GroupDemand, StreamDemand
from kvgauge.engines.sglang.cells import LayerCell
from kvgauge.engines.sglang.notes import RESERVED
from kvgauge.engines.sglang.pool import SglangPlan
from kvgauge.engines.sglang.states import CONV_DTYPE, state_dtype, stream_width
from kvgauge.layers import (
    ONE_PER_SEQUENCE,
    STATE_KINDS,
    Axis,
    Counted,
    LayerKind,
    Mechanism,
    Role,
    Rounding,
    Stream,
)
from kvgauge.values import dataclass

_INDEXES = frozenset({LayerKind.INDEX, LayerKind.BLOCK_INDEX})
_UNKEPT = frozenset({LayerKind.NONE, LayerKind.SHARED})
_SCALED_BLOCK = 32

Streams = tuple[StreamDemand, ...]


class Held(NamedTuple):
    """What one cache of one layer takes, what of it must be kept, and what is in use."""

    taken: Streams = ()
    kept: Streams = ()
    used: Streams = ()


@dataclass(frozen=True, slots=True)
class Demands:
    """The same groups three times: as set aside, as must be kept, as in use."""

    groups: tuple[GroupDemand, ...]
    kept: tuple[GroupDemand, ...]
    used: tuple[GroupDemand, ...]

    @classmethod
    def of(cls, rows: Iterable[tuple[LayerGroup, Held]]) -> Demands:
        """Return the three demands of groups and what they hold."""
        found = tuple(rows)
        return cls(
            tuple(GroupDemand(group, held.taken) for group, held in found),
            tuple(GroupDemand(group, held.kept) for group, held in found),
            tuple(GroupDemand(group, held.used) for group, held in found),
        )


def group_demands(plan: SglangPlan, architecture: ModelArchitecture, *, mtp: bool) -> Demands:
    """Return the demand of a plan for the model's layers, its multi-token-prediction ones where asked for."""
    if plan.compressed:
        from kvgauge.engines.sglang.compressed_demand import compressed_rows  # noqa: PLC0415 - one family

        return Demands.of(compressed_rows(plan, architecture, mtp=mtp))
    return Demands.of(_Pools(plan, architecture).rows(mtp=mtp))


def pages(page_tokens: int, to_tokens: int | None = None, axis: Axis = Axis.DECODER) -> Counted:
    """Return the pages of so many tokens; pages of one token are rows.

    >>> pages(64).rows(65), pages(1).rows(65), pages(64, 128).rows(1000)
    (2, 65, 2)
    """
    rounding = Rounding.CEIL if page_tokens > 1 else Rounding.FLOOR
    return Counted(axis, to_tokens=to_tokens, step_tokens=page_tokens, rounding=rounding)


def reserved(plan: SglangPlan) -> tuple[Beside, ...]:
    """Return the slots that the engine allocates beyond those it hands out, by stage."""
    page = plan.page_size_tokens
    states = 1 + (plan.state.draft_tokens if plan.rules.state_slots == "padded" else 0)
    if plan.compressed:
        sizes = [round(page * (c.window_bytes + c.token_bytes)) + c.spare_ring_bytes for c in plan.compressed]
    else:
        sizes = [page * (s.full_bytes + s.unpriced_bytes + s.window_bytes) for s in plan.stages]
    slots = plan.state.stage_bytes or (0,) * len(sizes)
    return (Beside("reserved", tuple(a + states * b for a, b in zip(sizes, slots, strict=True)), RESERVED),)


class _Pools:
    """The layers of one pool or two, as a plan holds them."""

    def __init__(self, plan: SglangPlan, architecture: ModelArchitecture) -> None:
        self.plan = plan
        self.architecture = architecture
        self.cells = {cell.index: cell for cell in plan.cells}
        self.own_index = {layer.index for layer in architecture.layers if layer.kind in _INDEXES}
        self.has_cross = any(layer.kind is LayerKind.CROSS for layer in architecture.layers)
        self.ranks = plan.settings.attention_ranks
        page = plan.page_size_tokens
        self.pages = {False: pages(page), True: pages(page, plan.live_window_tokens)}

    def rows(self, *, mtp: bool) -> Iterator[tuple[LayerGroup, Held]]:
        """Yield each group with what it holds; then, by stage, what pages hold beside the layers' rows."""
        rest = [[s.full_bytes + s.unpriced_bytes, s.window_bytes] for s in self.plan.stages]
        for group in self.architecture.groups:
            for part, held in self._by_storage(group):
                for index in part.indices:
                    self._take(rest[self._stage(index)], held)
                yield part, held
        if mtp:
            for group in self.architecture.mtp_groups:
                yield group, self._drafting(group, rest[-1])
        drafts = self.plan.settings.speculation.on and not mtp
        yield from self._rest(rest, drafts=drafts)

    def _stage(self, index: int) -> int:
        return next(number for number, layers in enumerate(self.plan.stage_layers) if index in layers)

    def _take(self, rest: list[int], held: Held) -> None:
        for stream in held.taken:
            if stream.counted.axis is Axis.DECODER:
                pool = stream.counted == self.pages[True]
                rest[pool] -= stream.rank_row_bytes(self.ranks) // self.plan.page_size_tokens

    def _by_storage(self, group: LayerGroup) -> list[tuple[LayerGroup, Held]]:
        """Return the layers of a group, apart where they are held in different ways."""
        parts: dict[Held, list[int]] = {}
        for index in group.indices:
            parts.setdefault(self._held(group, index), []).append(index)
        names = [group.name, *(f"{group.name}.{number}" for number in range(2, len(parts) + 1))]
        return [
            (replace(group, name=name, indices=tuple(indices)), held)
            for name, (held, indices) in zip(names, parts.items(), strict=True)
        ]

    def _held(self, group: LayerGroup, index: int) -> Held:
        if group.kind in STATE_KINDS:
            return state_held(self.plan, self.architecture, group.mechanism, group.streams)
        cell = self.cells.get(index)
        if cell is None or group.kind in _UNKEPT:
            return Held()
        if group.kind in _INDEXES:
            return self._filled(self._index_rows(group.streams, cell), cell.index_bytes, window=False)
        target = cell.row_bytes + (0 if index in self.own_index else cell.index_bytes)
        if group.kind is LayerKind.CROSS:
            return self._cross(group.streams, target)
        held = self._filled(self._own_rows(group.streams), target + self._scales(cell), window=cell.window)
        if not self.has_cross:
            return held
        return held._replace(taken=(*held.taken, self._pad(target, self._image_pages)))

    def _own_rows(self, streams: tuple[Stream, ...]) -> Streams:
        """Return one token's rows in the engine's format, as the layer itself has them."""
        latent = any(stream.role is Role.LATENT for stream in streams)
        form, attention = self.plan.kv_dtype, self.plan.attention
        if latent and attention.sparse and form == "fp8_e4m3" and not attention.raw_sparse:
            form = "fp8_ds_mla"
        if form == "mxfp8" and (latent or any(stream.width % _SCALED_BLOCK for stream in streams)):
            form = "fp8_e4m3"
        return tuple(StreamDemand.of(stream, form) for stream in streams)

    def _scales(self, cell: LayerCell) -> int:
        return cell.elements // _SCALED_BLOCK if self.plan.kv_dtype == "mxfp8" else 0

    def _index_rows(self, streams: tuple[Stream, ...], cell: LayerCell) -> Streams:
        """Keys of an index: those of latents with their scales, those of blocks plain."""
        stream = streams[0]
        declared = stream.declared_dtype or "fp8_e4m3"
        own = StreamDemand.of(stream, declared)
        if own.row_bytes != cell.index_bytes and cell.index_bytes == stream.vectors * stream.width:
            own = replace(own, dtype="int8")
        return (own,)

    def _filled(self, rows: Streams, target_bytes: int, *, window: bool) -> Held:
        """Return rows in pages, padded to what the engine allocates of a token."""
        counted, page = self.pages[window], self.plan.page_size_tokens
        own_bytes = sum(row.rank_row_bytes(self.ranks) for row in rows)
        if own_bytes > target_bytes:
            pad = (self._pad(target_bytes, counted),) if target_bytes else ()
            return Held(pad, pad, pad)
        taken = tuple(replace(row, counted=counted, factor=page) for row in rows)
        live = Counted(to_tokens=counted.to_tokens)
        more = (self._pad(target_bytes - own_bytes, counted),) if target_bytes > own_bytes else ()
        return Held((*taken, *more), rows, tuple(replace(row, counted=live) for row in rows))

    def _pad(self, rank_bytes: int, counted: Counted) -> StreamDemand:
        return StreamDemand.padding(rank_bytes, self.ranks, counted, self.plan.page_size_tokens)

    @property
    def _image_pages(self) -> Counted:
        return pages(self.plan.page_size_tokens, axis=Axis.IMAGE)

    def _cross(self, streams: tuple[Stream, ...], target_bytes: int) -> Held:
        """Cross-attention: tokens of images lie in slots of the one pool, and text has slots here too."""
        rows = self._own_rows(streams)
        page = self.plan.page_size_tokens
        taken = tuple(replace(row, counted=self._image_pages, factor=page) for row in rows)
        return Held((*taken, self._pad(target_bytes, self.pages[False])), rows, rows)

    # -- what pages hold beside the layers' rows --------------------------------------------------

    def _drafting(self, group: LayerGroup, rest: list[int]) -> Held:
        """Return a drafting layer: its own rows where they were priced, else what was."""
        window = bool(rest[1]) and group.window_tokens is not None
        if group.kind in _INDEXES:
            rows: Streams = tuple(
                StreamDemand.of(stream, stream.declared_dtype or "fp8_e4m3") for stream in group.streams
            )
        else:
            rows = self._own_rows(group.streams)
        each = sum(row.rank_row_bytes(self.ranks) for row in rows)
        held = self._filled(rows, min(each, rest[window] // group.num_layers), window=window)
        for _ in group.indices:
            self._take(rest, held)
        return held

    def _rest(self, rest: list[list[int]], *, drafts: bool) -> Iterator[tuple[LayerGroup, Held]]:
        for number, (full, window) in enumerate(rest):
            sizes = ((full, self.pages[False]), (window, self.pages[True]))
            streams = tuple(self._pad(size, counted) for size, counted in sizes if size > 0)
            if streams:
                start = self.plan.stage_layers[number].start
                name = "unkept" if number == 0 else f"unkept.{number + 1}"
                group = LayerGroup(name, LayerKind.NONE, Mechanism.NONE, (), None, (start,))
                if drafts:
                    group = replace(group, name=name.replace("unkept", "draft"), kind=LayerKind.FULL)
                yield group, Held(streams, streams if drafts else (), streams if drafts else ())


def state_held(
    plan: SglangPlan, architecture: ModelArchitecture, mechanism: Mechanism, streams: tuple[Stream, ...]
) -> Held:
    """Return a layer's state: the slots of a running request, and one for each token that it drafts."""
    slots = plan.state.slots_per_request + plan.state.draft_tokens
    state = state_dtype(architecture, plan.settings)
    kept = tuple(
        replace(
            StreamDemand.of(stream, state if stream.role is Role.RECURRENT else CONV_DTYPE),
            width=stream_width(mechanism, streams, stream),
            counted=ONE_PER_SEQUENCE,
        )
        for stream in streams
    )
    taken = tuple(replace(row, factor=slots) for row in kept)
    return Held(taken, kept, taken)


__all__ = ["Demands", "Held", "group_demands", "pages", "reserved", "state_held"]
