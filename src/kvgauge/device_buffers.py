"""What llama.cpp holds on one device beside its weights, of the plan that it was told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvgauge.engines.llamacpp.capacity import LlamaCapacity
    from kvgauge.estimate import Estimate


def cache_of(asked: LlamaCapacity, rank: int) -> int:
    """Return the bytes of caches and states of a device."""
    parts = asked.plan.allocations
    return sum(p.bytes for p in parts if p.place == f"gpu:{rank}" and p.kind in ("cache", "state"))


def compute_of(asked: LlamaCapacity, rank: int) -> tuple[Estimate, ...]:
    """Return the compute buffers of a device."""
    from kvgauge.estimate import Estimate  # noqa: PLC0415 - a given pool needs none

    return tuple(
        Estimate(part.name, "compute", part.bytes, part.low, part.high, part.grade, 0, part.because)
        for part in asked.plan.allocations
        if part.place == f"gpu:{rank}" and part.kind == "compute"
    )


__all__ = ["cache_of", "compute_of"]
