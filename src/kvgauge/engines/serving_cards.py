"""The class of a card that a request names, for engines whose rules ask for it."""

from __future__ import annotations

from kvgauge.engines.setup import Card
from kvgauge.engines.vllm.devices import DEFAULT_GPU, GpuClass, gpu_class

#: Cards of one class differ by less than this share of their memory.
_ALIKE = 0.03


def gpu_of(card: Card | None) -> GpuClass:
    """Return the class of a card by its name, with its own memory where that differs; H100 for none."""
    if card is None:
        return DEFAULT_GPU
    known = gpu_class(card.name)
    if (
        known is not None
        and known.capability == card.capability
        and abs(known.memory_bytes - card.memory_bytes) < _ALIKE * known.memory_bytes
    ):
        return known
    return GpuClass(card.name, card.capability, card.memory_bytes)
