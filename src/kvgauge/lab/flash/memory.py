"""A large slow memory and a small fast one, that count what moves between them and what the small one holds.

"HBM" and "SRAM" stand for a GPU's memory and the shared memory of one of its processors. Counts are
elements, so that a dtype can be chosen afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Traffic:
    """What one attention moved: elements, and the most that its fast memory held at once."""

    read_elements: int
    written_elements: int
    peak_elements: int

    @property
    def moved_elements(self) -> int:
        """Elements read and written."""
        return self.read_elements + self.written_elements


@dataclass
class Memory:
    """Counts reads, writes and what is held; every access of an attention goes through it."""

    read_elements: int = 0
    written_elements: int = 0
    peak_elements: int = 0
    _held: dict[str, int] = field(default_factory=dict)

    def read(self, name: str, source: Floats, rows: slice = slice(None)) -> Floats:
        """Copy rows of a matrix in HBM into SRAM, in place of what ``name`` held there."""
        part = source[rows].copy()
        self.read_elements += part.size
        return self.hold(name, part)

    def hold(self, name: str, array: Floats) -> Floats:
        """Note that SRAM now holds an array under a name."""
        self._held[name] = array.size
        self.peak_elements = max(self.peak_elements, sum(self._held.values()))
        return array

    def write(self, target: Floats, array: Floats, rows: slice = slice(None)) -> None:
        """Copy rows from SRAM to HBM."""
        target[rows] = array
        self.written_elements += array.size

    def drop(self, *names: str) -> None:
        """Note that SRAM no longer holds these."""
        for name in names:
            self._held.pop(name, None)

    @property
    def traffic(self) -> Traffic:
        """What was counted."""
        return Traffic(self.read_elements, self.written_elements, self.peak_elements)
