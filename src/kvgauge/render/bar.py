"""One stacked bar: which kinds of cache the bytes are in. Told by pattern, not by colour alone."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

_PATTERNS = "█▓▒░"
_STYLES = ("cyan", "green", "yellow", "magenta")


class Part(NamedTuple):
    """One part of a bar."""

    label: str
    size_bytes: int


class Segment(NamedTuple):
    """A part with its cells, and its share of the whole."""

    part: Part
    pattern: str
    style: str
    cells: int
    share: Fraction


def segments(parts: list[Part], cells: int) -> list[Segment]:
    """Share the cells of a bar among its parts; a part that is there keeps one cell at least.

    >>> [s.cells for s in segments([Part("a", 3), Part("b", 1)], 8)]
    [6, 2]
    """
    total = sum(part.size_bytes for part in parts)
    shares = [max(1, round(part.size_bytes * cells / total)) for part in parts]
    largest = shares.index(max(shares))
    shares[largest] = max(1, shares[largest] + cells - sum(shares))
    return [
        Segment(
            part,
            _PATTERNS[n % len(_PATTERNS)],
            _STYLES[n % len(_STYLES)],
            share,
            Fraction(part.size_bytes, total),
        )
        for n, (part, share) in enumerate(zip(parts, shares, strict=True))
    ]
