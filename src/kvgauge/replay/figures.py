"""A figure that was measured beside the one that is predicted, and how well they agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

T = TypeVar("T")

#: Relative error up to which a figure is within, but not exact.
NEAR = 0.005

#: Why a quantity of a record is left out: a closed list, and what no command predicts yet.
SKIPS: Mapping[str, str] = MappingProxyType({
    "no_shape": "no public shape for the model here",
    "null": "a needed field null",
    "fixture": "fixture",
    "soft": "soft: a guess in the record, or unequal cards",
    "later": "not predicted yet",
})  # fmt: skip

#: Unit of each quantity in an answer.
UNITS: Mapping[str, str] = MappingProxyType({
    "kv_bytes_per_token": "B", "kv_tokens": "tokens", "max_concurrency": "x", "num_blocks": "blocks",
    "kv_needed": "GiB", "kv_cache_mib": "MiB", "state_mib": "MiB", "weights": "GiB", "pool": "GiB",
    "activation": "GiB", "graphs": "GiB", "compute": "MiB",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a record, in the unit of its quantity.

    Args:
        rounding: how far a printed figure may be from the true one.
        low, high: range that is predicted, where one is.
        because: how the prediction follows, in a few words.
    """

    measured: float
    predicted: float
    rounding: float = 0.0
    low: float | None = None
    high: float | None = None
    because: str = ""

    @property
    def status(self) -> str:
        """Exact within the printed rounding, within half a percent, or off."""
        error = abs(self.predicted - self.measured)
        if error <= self.rounding * (1 + 1e-9) + 1e-12 * abs(self.measured):
            return "exact"
        return "within" if error <= NEAR * abs(self.measured) else "off"

    @property
    def error_fraction(self) -> float | None:
        """Relative error, signed; None where nothing was measured to relate it to."""
        if not self.measured:
            return None
        return self.predicted / self.measured - 1

    @property
    def is_held(self) -> bool | None:
        """Whether the predicted range holds what was measured; None without a range."""
        if self.low is None or self.high is None:
            return None
        return self.low - self.rounding <= self.measured <= self.high + self.rounding


class Skip(Exception):  # noqa: N818 - no error: a record says too little
    """A quantity can't be replayed; ``reason`` is a key of ``SKIPS``."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(SKIPS[reason])


def needed(value: T | None, field: str) -> T:
    """Return a figure that a replay needs.

    Raises:
        Skip: it is null.
    """
    if value is None:
        raise Skip("null", field)
    return value


def nearest(choices: range, measured: float) -> int:
    """Return the number of a range that is nearest to what was measured.

    >>> nearest(range(3, 6), 9.0)
    5
    """
    if not choices:
        raise Skip("null", "pool")
    return min(max(round(measured), choices[0]), choices[-1])
