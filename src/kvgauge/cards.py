"""The card that a request names, as engines see it. The one place where names of GPUs become figures."""

from __future__ import annotations

from dataclasses import dataclass

from kvgauge.architecture import Note
from kvgauge.engines.setup import Card


@dataclass(frozen=True, slots=True)
class NamedCard:
    """A card, how many of it where the text says so, and how its name was read."""

    card: Card
    count: int | None
    notes: tuple[Note, ...]


def card_of(text: str) -> NamedCard:
    """Read ``NAME``, ``NAME:COUNT`` or ``COUNTx NAME``, as people and tools write it.

    Raises:
        InvalidRequestError: not a card that is known, or an impossible count.

    >>> card_of("H100 NVL:2").card.capability, card_of("2x H100").count
    ((9, 0), 2)
    """
    from kvgauge.hardware import parse_gpu  # noqa: PLC0415 - few name a card

    device, count = parse_gpu(text)
    card = Card(device.name, device.compute_capability, device.memory_bytes)
    return NamedCard(card, count, device.notes)
