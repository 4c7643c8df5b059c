"""What a split answers: figures with their formula, and the assumptions that they rest on."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from kvgauge.data import read_data
from kvgauge.units import json_number
from kvgauge.values import dataclass

Unit = Literal["bytes", "seconds", "per_second", "count", "tokens", "ratio"]

#: Whether reality can only be more than a figure, only less, or is it.
Bound = Literal["", "least", "most"]

#: The splits, in the order in which a serving system grows.
KINDS = ("prefix", "offload", "disaggregated", "attention-ffn", "sram")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number.

    Args:
        code: its name, never translated.
        formula: in the symbols of ``code`` and of assumptions.
        bound: times follow from line rates, so they are the least that is possible.
    """

    code: str
    value: int | Fraction
    unit: Unit
    formula: str
    bound: Bound = ""

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        value = self.value if isinstance(self.value, int) else json_number(self.value)
        return {
            "code": self.code, "value": value, "unit": self.unit, "formula": self.formula,
            "bound": self.bound or None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assumption:
    """What is not the model's: a rate, a size of a machine, a way of working, with its source."""

    code: str
    value: int | Fraction | None
    unit: Unit
    grade: str
    source: str

    @property
    def rate(self) -> Fraction:
        """The value as an exact number, for quotients; 0 where there is none."""
        return Fraction(self.value or 0)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        value = json_number(self.value) if isinstance(self.value, Fraction) else self.value
        return {
            "code": self.code, "value": value, "unit": self.unit, "grade": self.grade,
            "source": self.source,
        }  # fmt: skip


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(read_data("splits.json"))
    return table


def figure(code: str, value: int | Fraction) -> Figure:
    """Return a figure with the unit, the bound and the formula that the table has for its code.

    >>> figure("restore_seconds", Fraction(1, 2)).formula
    'rank_bytes / host_link'
    """
    unit, bound, formula = _table()["figures"][code]
    return Figure(code, value, unit, formula, bound)


def way(code: str) -> Assumption:
    """Return a way of working that figures suppose."""
    return Assumption(code, None, "ratio", "assumed", _table()["ways"][code])


@dataclass(frozen=True, slots=True)
class Split:
    """The answer about one split.

    Args:
        binds: code of the figure that decides, empty where none does.
    """

    kind: str
    figures: tuple[Figure, ...]
    assumptions: tuple[Assumption, ...]
    binds: str = ""

    def __getitem__(self, code: str) -> int | Fraction:
        """Return the value of a figure.

        Raises:
            KeyError: no such figure.
        """
        for figure in self.figures:
            if figure.code == code:
                return figure.value
        raise KeyError(code)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "kind": self.kind,
            "figures": [figure.to_dict() for figure in self.figures],
            "assumptions": [assumption.to_dict() for assumption in self.assumptions],
            "binds": self.binds or None,
        }
