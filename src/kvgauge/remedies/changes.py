"""A change of a question of ``fit``, and what ``fit`` answers with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from typing import TYPE_CHECKING

from kvgauge.engines import parse_engine
from kvgauge.engines.flag_tables import stating
from kvgauge.errors import KvgaugeError
from kvgauge.fit_asking import Posed, Question, pose
from kvgauge.preparing import Options
from kvgauge.published_weights import published_model
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.fit_result import Verdict

Keywords = Mapping[str, object]

_OPTIONS = frozenset(option.name for option in fields(Options))
#: Keywords of ``fit`` that have other names in a question.
_OWN = {"weights": "scheme"}


@dataclass(frozen=True, slots=True)
class Change:
    """A change that may help.

    Args:
        code: what kind of change, stable.
        keywords: keywords of ``fit`` that make it; None takes one back.
        shown: how it is written on the command line, or the name of what is taken instead.
        counts: figures that the change names, for ``effect``.
    """

    code: str
    keywords: Keywords
    shown: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tried:
    """A change and what came of it."""

    change: Change
    posed: Posed

    @property
    def verdict(self) -> Verdict:
        """The verdict with the change."""
        return self.posed.verdict


def changed(question: Question, keywords: Keywords) -> Question:
    """Return a question with keywords of ``fit`` in place of its own.

    Raises:
        KvgaugeError: another model is named, and is not found in the catalogue or the local caches.
    """
    options = {name: value for name, value in keywords.items() if name in _OPTIONS}
    own = {_OWN.get(name, name): value for name, value in keywords.items() if name not in _OPTIONS}
    if "model" in own:
        own["model"] = published_model(str(own["model"]))
    told: Options = replace(question.options, **options)  # type: ignore[arg-type]
    return replace(question, options=told, **own)  # type: ignore[arg-type]


def tried(posed: Posed, change: Change) -> Tried | None:
    """Return what comes of a change; None where ``fit`` refuses it."""
    try:
        return Tried(change, pose(changed(posed.question, change.keywords), posed))
    except KvgaugeError:
        return None


def engine_of(posed: Posed) -> str:
    """Return the name of the engine."""
    return posed.search.prepared.request.engine


def version_of(posed: Posed) -> str | None:
    """Return the version whose rules are taken."""
    return posed.search.prepared.request.engine_version


def with_flag(posed: Posed, option: str, value: str | None) -> Keywords | None:
    """Return keywords that make the engine's own flags say something; None where it has no such flag.

    Args:
        value: empty for a switch; None takes the flag out.
    """
    args = stating(posed.question.engine_args, engine_of(posed), option, value, version_of(posed))
    return None if args is None else {"engine_args": args}


def with_option(posed: Posed, option: str, value: object) -> Keywords | None:
    """Return keywords that set an option of a load, in the engine's flags where these state it."""
    engine, _ = parse_engine(posed.question.engine)
    told = posed.search.prepared.engine.told(posed.question.engine_args)
    if option not in told:
        return {option: value}
    args = stating(
        posed.question.engine_args, engine, option, None if value is None else str(value), version_of(posed)
    )
    return None if args is None else {"engine_args": args}


def merged(*parts: Keywords | None) -> Keywords | None:
    """Return keywords together; None where one is, or where two change the same."""
    found: dict[str, object] = {}
    for part in parts:
        if part is None or set(part) & set(found):
            return None
        found |= part
    return found


__all__ = [
    "Change",
    "Keywords",
    "Tried",
    "changed",
    "engine_of",
    "merged",
    "tried",
    "with_flag",
    "with_option",
]
