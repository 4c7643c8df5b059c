"""What ``verify`` answers: lines of measured beside predicted, what explains them, and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvgauge.architecture import Note
from kvgauge.replay.figures import UNITS
from kvgauge.replay.outcomes import Outcome

#: Status of a replay -> verdict of a line; a figure inside its predicted range is held to be met.
_VERDICTS = {"exact": "agrees", "within": "near", "off": "off", "skipped": "not_predicted"}
VERDICTS = ("agrees", "near", "in_range", "off", "not_predicted")


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of a log."""

    quantity: str
    measured: float | None
    predicted: float | None
    error_fraction: float | None
    verdict: str
    because: str
    low: float | None = None
    high: float | None = None
    setting: str = ""

    @classmethod
    def of(cls, found: Outcome, measured: float | None, setting: str = "") -> Line:
        """Return the line of a figure; ``setting``: one not in the log that would explain it."""
        verdict = "in_range" if found.is_held and found.status == "off" else _VERDICTS[found.status]
        if found.predicted is None:
            verdict = "not_predicted"
        because = f"agrees with {setting}, which the log does not show" if setting else ""
        shown = found.measured if found.measured is not None else measured
        return cls(
            found.quantity, shown, found.predicted, found.error_fraction, verdict,
            because or found.because or found.reason, found.low, found.high, setting,
        )  # fmt: skip

    def to_dict(self) -> dict[str, object]:
        """Return the entry of ``lines``."""
        return {
            "quantity": self.quantity,
            "unit": UNITS[self.quantity],
            "measured": self.measured,
            "predicted": self.predicted,
            "predicted_low": self.low,
            "predicted_high": self.high,
            "error_fraction": self.error_fraction,
            "verdict": self.verdict,
            "because": self.because,
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to change; ``effect`` is the figure that it brings, in the unit of its name."""

    code: str
    note: Note
    effect: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return the entry of ``advice``."""
        return {"code": self.code, "effect": dict(self.effect), "message": self.note.message}


@dataclass(frozen=True)
class StartAnswer:
    """One start of an engine."""

    engine: Mapping[str, object]
    lines: tuple[Line, ...]
    advice: tuple[Advice, ...]
    failures: tuple[Mapping[str, object], ...] = ()
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the entry of ``starts``."""
        return {
            "engine": dict(self.engine),
            "lines": [line.to_dict() for line in self.lines],
            "advice": [one.to_dict() for one in self.advice],
            "failures": [dict(one) for one in self.failures],
            "notes": [note.to_dict() for note in self.notes],
        }


@dataclass(frozen=True)
class VerifyResult:
    """What ``verify`` answers: the last start that shows figures, and those before it."""

    starts: tuple[StartAnswer, ...]

    @property
    def last(self) -> StartAnswer:
        """The start that the answer is about."""
        return self.starts[-1]

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.verify/1`` object."""
        return {
            "schema": "kvgauge.verify/1",
            **self.last.to_dict(),
            "earlier": [start.to_dict() for start in self.starts[:-1]],
        }
