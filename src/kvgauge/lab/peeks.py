"""What is shown of long rows of numbers: the first few, and what sums up the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.lab.arrays import Floats

#: Numbers shown of a row.
SHOWN = 4


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector, by its beginning.

    Args:
        width: numbers in it.
        first: the first of them.
        length: the root of the sum of their squares.
    """

    width: int
    first: tuple[float, ...]
    length: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {"width": self.width, "first": list(self.first), "length": self.length}


def vector(numbers: Floats) -> Vector:
    """Return how a vector is shown.

    >>> vector(np.array([3.0, 4.0])).length
    5.0
    """
    first = tuple(float(number) for number in numbers[:SHOWN])
    return Vector(len(numbers), first, float(np.linalg.norm(numbers)))


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of weights, by its corner.

    Args:
        name: as the file calls it.
        corner: the first numbers of its first rows.
    """

    name: str
    rows: int
    columns: int
    corner: tuple[tuple[float, ...], ...]

    @property
    def num_elements(self) -> int:
        """Numbers in it."""
        return self.rows * self.columns

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "name": self.name,
            "rows": self.rows,
            "columns": self.columns,
            "numbers": self.num_elements,
            "corner": [list(row) for row in self.corner],
        }


def matrix(name: str, numbers: Floats) -> Matrix:
    """Return how a matrix is shown."""
    corner = tuple(tuple(float(number) for number in row[:SHOWN]) for row in numbers[:2])
    return Matrix(name, numbers.shape[0], numbers.shape[1], corner)


def cosine(one: Floats, other: Floats) -> float:
    """Return how far two vectors point the same way: 1 the same, 0 across, -1 against."""
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0
