"""Outcomes of a replay, and the table that they add up to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from statistics import median

from kvgauge.data import read_data
from kvgauge.overhead_accuracy import Summary
from kvgauge.replay.figures import SKIPS, UNITS, Figure, Skip
from kvgauge.replay.records import QUANTITIES, Record

BASES = ("hard", "default", "soft")
#: Quantities that rules give; the others are estimates, and so is a figure of these that has a range.
BY_RULE = frozenset(QUANTITIES[:7])
_OPTIMISTIC_GIB = 0.5
STATUSES = ("exact", "within", "off", "skipped")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One figure of one record.

    Args:
        basis: how well its inputs are known: hard, default or soft.
        status: exact within the printed rounding, within half a percent, off, or skipped.
        skip: why it is skipped, a key of ``SKIPS``.
        reason: why it is skipped or refused, in words.
        cause: what a figure that does not agree comes from, where that is known.
    """

    id: str
    engine: str
    quantity: str
    basis: str
    status: str
    predicted: float | None = None
    measured: float | None = None
    error_fraction: float | None = None
    low: float | None = None
    high: float | None = None
    is_held: bool | None = None
    skip: str = ""
    reason: str = ""
    cause: str = ""
    because: str = ""

    @property
    def by_rule(self) -> bool:
        """Whether a rule gives the figure, rather than an estimate with a range."""
        return self.quantity in BY_RULE and self.low is None

    @classmethod
    def of(
        cls, record: Record, quantity: str, figure: Figure | None = None, *, skip: Skip | None = None
    ) -> Outcome:
        """Return the outcome of a figure, or of one that is left out."""
        about = (record.id, record.family, quantity, record.basis(quantity))
        if figure is None:
            reason = skip.reason if skip is not None else "null"
            detail = f" ({skip.detail})" if skip is not None and skip.detail else ""
            return cls(*about, "skipped", skip=reason, reason=SKIPS[reason] + detail)
        cause = "" if figure.status == "exact" else cause_of(record.id, quantity)
        return cls(
            *about, figure.status, float(figure.predicted), float(figure.measured), figure.error_fraction,
            figure.low, figure.high, figure.is_held, reason=cause, cause=cause, because=figure.because,
        )  # fmt: skip

    @classmethod
    def refused(cls, record: Record, quantity: str, message: str) -> Outcome:
        """Return the outcome of a figure that the engine's rules here give no prediction for."""
        cause = cause_of(record.id, quantity)
        return cls(
            record.id,
            record.family,
            quantity,
            record.basis(quantity),
            "off",
            reason=cause or message,
            cause=cause,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the entry of ``records``."""
        return {
            "id": self.id,
            "engine": self.engine,
            "quantity": self.quantity,
            "unit": UNITS[self.quantity],
            "basis": self.basis,
            "predicted": self.predicted,
            "predicted_low": self.low,
            "predicted_high": self.high,
            "measured": self.measured,
            "error_fraction": self.error_fraction,
            "status": self.status,
            "skip": self.skip or None,
            "reason": self.reason or None,
            "because": self.because or None,
        }


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of one engine, quantity and basis.

    Args:
        skipped: by reason, a key of ``SKIPS``.
        held, ranged: figures inside their predicted range, of those that have one.
        width: median width of those ranges, in the quantity's unit.
        over: how far the most optimistic figure is off in that unit: a pool that was predicted larger,
            another estimate that was predicted smaller; 0: none.
        optimistic: figures off by more than half a GiB that way; None for other units.
    """

    engine: str
    quantity: str
    basis: str
    exact: int
    within: int
    off: int
    skipped: Mapping[str, int]
    median_error: float | None
    worst_error: float | None
    held: int
    ranged: int
    width: float | None = None
    over: float | None = None
    optimistic: int | None = None

    @property
    def count(self) -> int:
        """Figures that were replayed."""
        return self.exact + self.within + self.off

    @property
    def exact_fraction(self) -> float | None:
        """Exact ones of those that were replayed."""
        return self.exact / self.count if self.count else None

    def to_dict(self) -> dict[str, object]:
        """Return the entry of ``summary``."""
        return {
            "engine": self.engine,
            "quantity": self.quantity,
            "basis": self.basis,
            "records": self.count,
            "exact": self.exact,
            "within": self.within,
            "off": self.off,
            "skipped": dict(self.skipped),
            "exact_fraction": self.exact_fraction,
            "median_error_fraction": self.median_error,
            "worst_error_fraction": self.worst_error,
            "in_range": self.held if self.ranged else None,
            "with_range": self.ranged or None,
            "median_width": self.width,
            "most_optimistic": self.over,
            "optimistic": self.optimistic,
        }


@dataclass(frozen=True)
class AccuracyResult:
    """What ``accuracy`` answers.

    Args:
        left_out: error of the estimates of memory for models that they were not fitted on.
    """

    outcomes: tuple[Outcome, ...]
    source: str
    left_out: tuple[Summary, ...] = ()

    @cached_property
    def summary(self) -> tuple[Row, ...]:
        """One row an engine, quantity and basis that has a figure."""
        groups: dict[tuple[str, str, str], list[Outcome]] = {}
        for each in self.outcomes:
            groups.setdefault((each.engine, each.quantity, each.basis), []).append(each)
        return tuple(_row(key, groups[key]) for key in sorted(groups, key=_place))

    @property
    def named(self) -> tuple[Outcome, ...]:
        """The figures with stated inputs that rules give, and that are not exact."""
        return tuple(each for each in self.disagreeing if each.basis == "hard" and each.by_rule)

    def exact_of_rules(self, basis: str = "hard") -> tuple[int, int]:
        """Return (exact, all) of the figures that rules give, of one basis."""
        own = [e for e in self.outcomes if e.basis == basis and e.by_rule and e.status != "skipped"]
        return sum(each.status == "exact" for each in own), len(own)

    @property
    def disagreeing(self) -> tuple[Outcome, ...]:
        """The figures that are not exact."""
        return tuple(each for each in self.outcomes if each.status in ("within", "off"))

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.accuracy/1`` object."""
        return {
            "schema": "kvgauge.accuracy/1",
            "source": self.source,
            "records": [each.to_dict() for each in self.outcomes],
            "summary": [row.to_dict() for row in self.summary],
            "leave_one_out": [asdict(row) for row in self.left_out],
        }


def _place(key: tuple[str, str, str]) -> tuple[str, int, int]:
    engine, quantity, basis = key
    return engine, QUANTITIES.index(quantity), BASES.index(basis)


def _row(key: tuple[str, str, str], members: Iterable[Outcome]) -> Row:
    members = list(members)
    counts = Counter(each.status for each in members)
    errors = [
        abs(e.error_fraction) for e in members if e.error_fraction is not None and e.status != "skipped"
    ]
    ranged = [each for each in members if each.is_held is not None]
    # A pool that is smaller than predicted disappoints; any other estimate, where it is larger.
    sign = 1 if key[1] in ("pool", "kv_tokens") else -1
    beyond = [sign * ((e.predicted or 0.0) - (e.measured or 0.0)) for e in ranged]
    widths = [(e.high or 0.0) - (e.low or 0.0) for e in ranged]
    return Row(
        *key,
        counts["exact"],
        counts["within"],
        counts["off"],
        dict(sorted(Counter(each.skip for each in members if each.skip).items())),
        median(errors) if errors else None,
        max(errors, default=None),
        sum(bool(each.is_held) for each in ranged),
        len(ranged),
        median(widths) if widths else None,
        max(0.0, *beyond) if beyond else None,
        sum(size > _OPTIMISTIC_GIB for size in beyond) if ranged and UNITS[key[1]] == "GiB" else None,
    )


@lru_cache(maxsize=1)
def _causes() -> Mapping[str, Mapping[str, str]]:
    causes: Mapping[str, Mapping[str, str]] = json.loads(read_data("evidence_causes.json"))
    return causes


def cause_of(record: str, quantity: str, lang: str = "en") -> str:
    """Return why a figure of a record does not agree, empty where no cause is known.

    A cause may be of one quantity (``vllm-299 max_concurrency``) or of all of a record.
    """
    table = _causes()
    for key in (f"{record} {quantity}", record):
        if key in table:
            return table[key].get(lang, table[key]["en"])
    return ""
