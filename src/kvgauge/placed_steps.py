"""The steps of an engine that names its own allocations: what lies on each device and on the host."""

from __future__ import annotations

import re

from kvgauge.engines.base import Placed
from kvgauge.formulas import Number
from kvgauge.steps import Facts, Step

#: Words of an allocation's reason.
_UNITS = re.compile(r"\b(?:layers?|cells|rows|streams|logits|sequences?|to)\b")


def placed_steps(facts: Facts) -> list[Step]:
    """Return one step a place: its caches, states and buffers, each with what makes it that large."""
    places: dict[str, list[Placed]] = {}
    for part in facts.cache.demand.placed:
        if part.bytes:
            places.setdefault(part.place, []).append(part)
    return [_step(place, parts, facts) for place, parts in sorted(places.items())]


def _step(place: str, parts: list[Placed], facts: Facts) -> Step:
    words = facts.words
    key = "place" if facts.cache.demand.in_cells else "place_offloading"
    where = words.phrase("place_host") if place == "host" else place
    symbols: dict[str, Number] = {f"P_{number}": part.bytes for number, part in enumerate(parts, 1)}
    meanings = {f"P_{number}": _meaning(part, facts) for number, part in enumerate(parts, 1)}
    return Step(
        f"place.{place.replace(':', '.')}",
        words.title("steps", key, place=where),
        words.text("steps", key, place=where),
        " + ".join(symbols),
        symbols,
        sum(part.bytes for part in parts),
        words.source(key),
        symbol_meanings=meanings,
    )


def _meaning(part: Placed, facts: Facts) -> str:
    words = facts.words
    because = _UNITS.sub(lambda found: words.phrase(f"unit_{found[0]}"), part.because)
    if part.low_bytes == part.high_bytes:
        return words.phrase("place_part", name=part.name, because=because)
    low, high = words.size(part.low_bytes), words.size(part.high_bytes)
    return words.phrase("place_range", name=part.name, because=because, low=low, high=high)


__all__ = ["placed_steps"]
