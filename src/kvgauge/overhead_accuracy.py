"""How well the terms hold for models that they were not fitted on: one model family left out at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from kvgauge.architecture import ModelArchitecture
from kvgauge.estimate import Estimate, Running, estimate, pool_range
from kvgauge.overhead_evidence import Record, evidence, loaded_weights, stored_of
from kvgauge.overhead_fit import fit
from kvgauge.stored_weights import StoredWeights
from kvgauge.units import GIB

#: Quantity of a record -> the term that predicts it.
_TERM = {
    "activation": "activations",
    "non_torch": "non_torch",
    "graphs": "graphs",
    "graph_estimate": "graph_estimate",
    "context": "context",
    "buffers": "buffers",
    "groups": "groups",
}

#: Share that weights may be off by where no log prints them.
_WEIGHTS_OFF = 0.01
#: A pool predicted so much larger than it was counts as optimistic; so does a term so much smaller.
OPTIMISTIC_BYTES = GIB // 2
#: Pools of starts that an estimate does not claim to know: forks and other makers' ports, memory that is the
#: host's too, logs that print no term.
OTHER_POOLS = "pool_other"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record and what the terms say of it, fitted on the other families alone.

    Args:
        family: that was left out; of records that name no model, the record alone is.
        fitted: the record stands behind the shipped constants; else it is a check, and ``note`` says why.
    """

    record: str
    engine: str
    quantity: str
    family: str
    measured_bytes: int
    central_bytes: int
    low_bytes: int
    high_bytes: int
    fitted: bool
    source: str
    note: str

    @property
    def within(self) -> bool:
        """Whether the range holds the record, its two decimals granted."""
        slack = 0.005 * GIB
        return self.low_bytes - slack <= self.measured_bytes <= self.high_bytes + slack

    @property
    def error_fraction(self) -> float:
        """(predicted - measured) / measured."""
        return self.central_bytes / self.measured_bytes - 1 if self.measured_bytes else 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """One quantity of one engine: how many records, how far off, how many inside their range.

    Args:
        optimistic: records whose pool is predicted larger, or whose term smaller, by more than 0.5 GiB.
        worst_optimistic_bytes: the most of that.
        within: inside their range.
        median_width_bytes: from the low to the high end.
    """

    engine: str
    quantity: str
    records: int
    median_error_fraction: float
    worst_optimistic_bytes: int
    within: int
    median_width_bytes: int
    optimistic: int


def cross_validation() -> tuple[LeftOut, ...]:
    """Return every record, predicted without its model family."""
    records = evidence()
    found: list[LeftOut] = []
    for family in dict.fromkeys(r.family or r.id for r in records):
        rest = [r for r in records if (r.family or r.id) != family]
        constants = fit(rest)
        for record in records:
            if (record.family or record.id) == family:
                row = _left_out(record, estimate(*_asked(record), constants=constants))
                if row is not None:
                    found.append(row)
    return tuple(found)


def in_sample() -> tuple[LeftOut, ...]:
    """Return every record as the shipped constants predict it."""
    rows = (_left_out(record, estimate(*_asked(record))) for record in evidence())
    return tuple(row for row in rows if row is not None)


def _asked(record: Record) -> tuple[ModelArchitecture, StoredWeights | None, Running]:
    architecture, stored = stored_of(record)
    return architecture, stored, record.running


def _left_out(record: Record, terms: tuple[Estimate, ...]) -> LeftOut | None:
    if record.quantity == "pool":
        weights = loaded_weights(record)
        if weights is None:
            return None
        facts = record.facts
        off = 0 if "weights_gib" in facts else int(_WEIGHTS_OFF * weights)
        low, central, high = pool_range(
            int(facts["memory_gib"] * GIB), facts["utilization"], weights, terms, weights_off_bytes=off
        )
    else:
        term = next((term for term in terms if term.name == _TERM[record.quantity]), None)
        if term is None:
            return None
        low, central, high = term.low_bytes, term.central_bytes, term.high_bytes
    return LeftOut(
        record.id, record.running.engine, _named(record), record.family, int(record.figure_bytes), central,
        low, high, record.fitted, record.source, str(record.facts.get("note", "")),
    )  # fmt: skip


def _named(record: Record) -> str:
    return OTHER_POOLS if record.facts.get("scope") == "other" else record.quantity


def summaries(rows: Iterable[LeftOut]) -> tuple[Summary, ...]:
    """Return a row for each engine and quantity; optimistic: more pool, or less of a term, than measured."""
    groups: dict[tuple[str, str], list[LeftOut]] = {}
    for row in rows:
        groups.setdefault((row.engine, row.quantity), []).append(row)
    found = []
    for (engine, quantity), own in groups.items():
        sign = 1 if quantity in ("pool", OTHER_POOLS) else -1
        errors = [abs(row.error_fraction) for row in own]
        beyond = [sign * (row.central_bytes - row.measured_bytes) for row in own]
        widths = [row.high_bytes - row.low_bytes for row in own]
        inside = sum(row.within for row in own)
        optimistic = sum(size > OPTIMISTIC_BYTES for size in beyond)
        found.append(
            Summary(
                engine, quantity, len(own), median(errors), max(0, *beyond), inside, int(median(widths)),
                optimistic,
            )
        )  # fmt: skip
    return tuple(found)


__all__ = ["LeftOut", "Summary", "cross_validation", "in_sample", "summaries"]
