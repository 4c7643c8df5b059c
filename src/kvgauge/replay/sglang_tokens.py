"""Tokens of SGLang's pool from end to end: what is free before loading, its share, our weights, our cells.

Nothing that the log prints of the pool or of the weights is taken, but for free memory before loading, where
the log prints it or both of its parts; else that of the card.
"""

from __future__ import annotations

from dataclasses import replace

from kvgauge.card_budget import WEIGHTS_OFF, loading
from kvgauge.engines.sglang import SglangPlan, plan
from kvgauge.engines.sglang.memory import static_bytes
from kvgauge.engines.vllm.devices import gpu_class
from kvgauge.errors import KvgaugeError
from kvgauge.estimate import Estimate, estimate
from kvgauge.hardware import parse_gpu
from kvgauge.overhead_running import sglang_running
from kvgauge.replay import sglang, weights
from kvgauge.replay.figures import Figure, Skip
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.units import GIB

#: What a driver keeps of a card that is told by its free memory alone.
_KEPT_BYTES = GIB // 2
#: A default share follows from what nvidia-smi shows of the card, which logs do not print.
_SHARE_OFF = 0.01
_BEFORE = ("context", "groups")


def kv_tokens(record: Record, finder: ModelFinder) -> Figure:
    """Tokens of the pool, from end to end.

    Raises:
        Skip: what is free before loading, or a shape, is not known. KvgaugeError: the settings are refused.
    """
    replay = sglang.replays(record, finder)
    measured = replay.tokens()
    model, scheme = weights.model_of(record, finder)
    try:
        loaded = weights.sglang_bytes(record, model, weights.stored_of(model, scheme))
    except KvgaugeError as error:
        raise Skip("no_shape", error.message) from None
    free = _printed(record)
    found = replay.found
    if free is not None:
        before = (free, free, free)
        if gpu_class(record.text("gpu") or "") is None:
            found = _on_card_of(record, finder, free)
    else:
        before = _of_card(record, finder, found)
    beside, off = loading(), int(WEIGHTS_OFF * loaded)
    ends = (
        (before[0], loaded + off + beside.high_bytes),
        (before[1], loaded + beside.central_bytes),
        (before[2], loaded - off + beside.low_bytes),
    )
    offs = (0.0, 0.0, 0.0) if found.memory.told else (-_SHARE_OFF, 0.0, _SHARE_OFF)
    low, central, high = (
        _tokens(found, free, gone, found.mem_fraction_static + by)
        for (free, gone), by in zip(ends, offs, strict=True)
    )
    share, gone = f"{found.mem_fraction_static:.3g}", f"{loaded / GIB:.2f}"
    because = f"{share} of {before[1] / GIB:.2f} GiB free, less {gone} of weights"
    return Figure(measured, central, found.page_size_tokens, low, high, because=because)


def _tokens(found: SglangPlan, free: int, gone: int, share: float) -> int:
    held_back = found.memory.image_reserve_bytes
    budget = static_bytes(free - gone, free, share, held_back)
    return found.pool(max(0, budget)).capacity_tokens


def _printed(record: Record) -> int | None:
    """Return what is free before loading, as printed: itself, or free after loading and what that took."""
    before = record.number("avail_mem_before_load_gb")
    if before is not None:
        return int(before * GIB)
    after, taken = record.number("avail_mem_after_load_gb"), record.number("weights_gb")
    return None if after is None or taken is None else int((after + taken) * GIB)


def _on_card_of(record: Record, finder: ModelFinder, free: int) -> SglangPlan:
    """Return the plan on a card of as much memory; its defaults follow from that."""
    settings = sglang.settings_of(record)
    card = replace(settings.gpu, name="", memory_bytes=free + _KEPT_BYTES)
    return plan(finder.model(record).architecture, replace(settings, gpu=card))


def _of_card(record: Record, finder: ModelFinder, found: SglangPlan) -> tuple[int, int, int]:
    """Return what is free of a card by the terms beside: least, as a rule, most."""
    try:
        memory = parse_gpu(record.text("gpu") or "")[0].memory
    except KvgaugeError:
        raise Skip("null", "avail_mem_before_load_gb") from None
    architecture = finder.model(record).architecture
    terms = estimate(architecture, None, sglang_running(architecture, found.settings))
    taken: tuple[Estimate, ...] = tuple(term for term in terms if term.name in _BEFORE)
    return (
        memory.low_bytes - sum(term.high_bytes for term in taken),
        memory.central_bytes - sum(term.central_bytes for term in taken),
        memory.high_bytes - sum(term.low_bytes for term in taken),
    )


__all__ = ["kv_tokens"]
