"""DeepSeek-V4 in SGLang: pages of windows with rings beside them, pages of records, rings of a request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.engines.base import StreamDemand
from kvgauge.engines.sglang.compressed import ALIGNMENT, RINGS
from kvgauge.engines.sglang.demand import Held, pages
from kvgauge.engines.sglang.pool import SglangPlan
from kvgauge.layers import ONE_PER_SEQUENCE, Counted, LayerKind, Mechanism, Role

_RECORDS = (Role.RECORD, Role.ROPE)
_FORM = "fp8_ds_mla"


def compressed_rows(
    plan: SglangPlan, architecture: ModelArchitecture, *, mtp: bool
) -> Iterator[tuple[LayerGroup, Held]]:
    """Yield each group with what it holds; then, by stage, what is priced for drafting layers."""
    page = plan.page_size_tokens
    rest = [[page * cell.token_bytes, page * cell.window_bytes] for cell in plan.compressed]
    whole, window = pages(page), pages(page, plan.live_window_tokens)
    groups = (*architecture.groups, *(architecture.mtp_groups if mtp else ()))
    for group in groups:
        held = _held(group, plan, whole, window)
        for index in group.indices:
            stage = next(i for i, layers in enumerate(plan.stage_layers) if index in layers)
            for stream in held.taken:
                if stream.counted != ONE_PER_SEQUENCE:
                    rest[stage][stream.counted == window] -= stream.rank_row_bytes(
                        plan.settings.attention_ranks
                    )
        yield group, held
    for number, sizes in enumerate(rest):
        streams = tuple(
            StreamDemand.padding(ceil(size), plan.settings.attention_ranks, counted)
            for size, counted in zip(sizes, (whole, window), strict=True)
            if size >= 1
        )
        if streams:
            name = "unkept" if number == 0 else f"unkept.{number + 1}"
            start = plan.stage_layers[number].start
            yield LayerGroup(name, LayerKind.NONE, Mechanism.NONE, (), None, (start,)), Held(streams)


def _held(group: LayerGroup, plan: SglangPlan, whole: Counted, window: Counted) -> Held:
    """Return what one layer takes: rows of a page with their padding, and the rings of its compressor."""
    page, ranks = plan.page_size_tokens, plan.settings.attention_ranks
    is_window = group.kind is LayerKind.SLIDING
    form = "fp8_e4m3" if group.kind is LayerKind.INDEX else _FORM
    rows = [s for s in group.streams if s.role is not Role.COMPRESSOR]
    ratio = 1 if is_window else rows[0].counted.step_tokens
    counted, per_page = window if is_window else whole, page // ratio
    kept = [StreamDemand.of(stream, form) for stream in rows]
    taken = [replace(row, counted=counted, factor=per_page) for row in kept]
    used = [replace(row, counted=Counted(to_tokens=counted.to_tokens)) if is_window else row for row in kept]
    if rows[0].role in _RECORDS:
        size = sum(row.row_bytes for row in taken)
        padding = -size % ALIGNMENT
        if padding:
            taken.append(StreamDemand.padding(padding, ranks, counted))
    for stream in group.streams:
        if stream.role is Role.COMPRESSOR:
            ring = StreamDemand.of(stream, stream.declared_dtype or "f32")
            kept.append(ring)
            taken.append(_ring(ring, ratio, plan, window))
            used.append(ring)
    return Held(tuple(taken), tuple(kept), tuple(used))


def _ring(ring: StreamDemand, ratio: int, plan: SglangPlan, window: Counted) -> StreamDemand:
    """Return the rows of a compressor: of each page of the window at ratio 4, else of a request."""
    rows = RINGS[ratio][bool(plan.drafts.tokens)]
    own = replace(ring, vectors=rows)
    return replace(own, counted=window) if ratio == min(RINGS) else own


__all__ = ["compressed_rows"]
