"""One piece of memory a request, as caches were kept before: first fit, and the buddy system.

A piece is given at admission and returned at the end; its length is a guess at how long the request will get.
"""

from __future__ import annotations

from bisect import insort
from typing import Protocol


class Allocator(Protocol):
    """Hands out contiguous pieces of a pool of token slots."""

    @property
    def num_free(self) -> int:
        """Slots that belong to no piece."""

    def size_for(self, length: int) -> int:
        """Return the slots that a piece of this length takes."""

    def allocate(self, length: int) -> int | None:
        """Return the first slot of a new piece, or None where no hole is long enough."""

    def free(self, start: int) -> None:
        """Return a piece."""


class FirstFit:
    """The first hole that is long enough; holes side by side become one.

    >>> pool = FirstFit(10)
    >>> pool.allocate(4), pool.allocate(4), pool.allocate(4)
    (0, 4, None)
    """

    def __init__(self, num_slots: int) -> None:
        self.holes: list[tuple[int, int]] = [(0, num_slots)]  # (start, length), by start
        self.pieces: dict[int, int] = {}

    @property
    def num_free(self) -> int:
        """Slots in holes."""
        return sum(length for _, length in self.holes)

    def size_for(self, length: int) -> int:
        """Return ``length``: nothing is rounded."""
        return length

    def allocate(self, length: int) -> int | None:
        """Return the first slot of a new piece, or None."""
        for place, (start, room) in enumerate(self.holes):
            if room >= length:
                rest = [(start + length, room - length)] if room > length else []
                self.holes[place : place + 1] = rest
                self.pieces[start] = length
                return start
        return None

    def free(self, start: int) -> None:
        """Return a piece; it grows together with the holes beside it."""
        insort(self.holes, (start, self.pieces.pop(start)))
        merged: list[tuple[int, int]] = []
        for begin, length in self.holes:
            if merged and sum(merged[-1]) == begin:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((begin, length))
        self.holes = merged


class Buddy:
    """Pieces of powers of two, split in halves and joined with their other half again.

    >>> pool = Buddy(16)
    >>> pool.allocate(5), pool.allocate(3), pool.allocate(8)
    (0, 8, None)
    """

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self.holes: dict[int, set[int]] = {}  # length -> starts
        self.pieces: dict[int, int] = {}
        start = 0
        for bit in reversed(range(num_slots.bit_length())):
            if num_slots >> bit & 1:  # a pool that is no power of two begins as several that are
                self.holes.setdefault(1 << bit, set()).add(start)
                start += 1 << bit

    @property
    def num_free(self) -> int:
        """Slots in holes."""
        return sum(length * len(starts) for length, starts in self.holes.items())

    def size_for(self, length: int) -> int:
        """Return the next power of two."""
        return 1 << max(0, length - 1).bit_length()

    def allocate(self, length: int) -> int | None:
        """Return the first slot of a new piece, or None."""
        size = self.size_for(length)
        fitting = [room for room, starts in self.holes.items() if room >= size and starts]
        if not fitting:
            return None
        room = min(fitting)
        start = min(self.holes[room])
        self.holes[room].remove(start)
        while room > size:
            room //= 2
            self.holes.setdefault(room, set()).add(start + room)
        self.pieces[start] = size
        return start

    def free(self, start: int) -> None:
        """Return a piece, and join halves as far as they are free."""
        size = self.pieces.pop(start)
        while (other := start ^ size) in self.holes.get(size, ()):
            self.holes[size].remove(other)
            start, size = min(start, other), size * 2
        self.holes.setdefault(size, set()).add(start)
