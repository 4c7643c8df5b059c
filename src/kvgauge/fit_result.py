"""The answer of ``fit``: verdict, devices, pool, what is the most that fits; and its JSON."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.allocations import Allocation, allocation
from kvgauge.architecture import Note
from kvgauge.engines.base import RequestedDtypes
from kvgauge.engines.pools import Pool
from kvgauge.engines.setup import Setup
from kvgauge.models import Model
from kvgauge.size_result import Request, request_dict
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.card_budget import Spread
    from kvgauge.estimate import Estimate
    from kvgauge.launching import Launch
    from kvgauge.weight_answer import WeightAnswer

EXIT_DOES_NOT_FIT = 3
#: Best first.
_GRADES = ("exact", "measured", "assumed")


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest number that fits, and what keeps it from being larger: memory, model, engine or flag."""

    count: int
    limited_by: str


class Suggestion(NamedTuple):
    """Something that would help, with the figures that it brings.

    Args:
        fits: the load does, with the change.
        effect: the verdict with the change, in bytes, and the count that it brings.
        change: keywords of ``fit`` that make the change; None takes a keyword back.
        launch: how the engine is started with the change, where the load fits with it.
    """

    code: str
    fits: bool
    note: Note
    effect: dict[str, int]
    change: dict[str, object]
    launch: Launch | None = None

    @property
    def keeps_load(self) -> bool:
        """Whether as many tokens and sequences are held as were asked for."""
        return not self.change.keys() & {"context", "sequences"}

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {
            "code": self.code,
            "fits": self.fits,
            "effect": self.effect,
            "change": self.change,
            "message": self.note.message,
            "launch_command": self.launch.command if self.launch is not None else None,
        }


@dataclass(frozen=True)
class Verdict:
    """Whether the load fits on the fullest rank.

    Args:
        status: ``fits`` at the far end of every estimate too, ``tight`` at their central values alone.
        limiting: what decides: memory, or a flag that allows less than the load.
        required_bytes: of the pool where that is given; else with weights and what the engine works with.
        available_bytes: the pool, or what the engine may use of the card.
        taken_bytes: of what is required, all but cache and state.
        of_card: the pool is computed from a card.
        weights_bytes: of what is taken, the weights.
    """

    status: str
    limiting: str
    required_bytes: int
    available_bytes: int
    required_low_bytes: int
    required_high_bytes: int
    taken_bytes: int = 0
    of_card: bool = False
    weights_bytes: int = 0

    @property
    def too_big(self) -> tuple[str, int] | None:
        """What alone is too big (weights, working memory or cache), and by how many bytes; None: nothing."""
        if self.fits or self.limiting == "flag":
            return None
        if self.weights_bytes > self.available_bytes:
            return "weights", self.weights_bytes - self.available_bytes
        if self.taken_bytes > self.available_bytes:
            return "working_memory", self.taken_bytes - self.available_bytes
        return "cache", -self.slack_bytes

    @cached_property
    def note(self) -> Note:
        """The inequality in words."""
        from kvgauge.fit_words import verdict_note  # noqa: PLC0415 - which knows verdicts

        return verdict_note(self)

    @property
    def fits(self) -> bool:
        """Whether it does, surely or as a rule."""
        return self.status != "does_not_fit"

    @property
    def slack_bytes(self) -> int:
        """Bytes to spare, negative where they lack."""
        return self.available_bytes - self.required_bytes

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        found = self.too_big
        return {
            "status": self.status,
            "fits": self.fits,
            "limiting": self.limiting,
            "required_bytes": self.required_bytes,
            "required_low_bytes": self.required_low_bytes,
            "required_high_bytes": self.required_high_bytes,
            "available_bytes": self.available_bytes,
            "slack_bytes": self.slack_bytes,
            "too_big": None if found is None else {"part": found[0], "bytes": found[1]},
            "sentence": self.note.message,
        }


def worst_grade(grades: Iterable[str]) -> str:
    """Return the weakest of some grades.

    >>> worst_grade(["exact", "assumed"]), worst_grade([])
    ('assumed', 'exact')
    """
    return max(grades, key=_GRADES.index, default="exact")


@dataclass(frozen=True, slots=True)
class Device:
    """What one rank holds; None where it is not known.

    Args:
        memory_bytes: of the card, where one is named.
        weight_bytes: its share of the weights.
        pool_bytes: allocated for cache and state.
        terms: what the engine holds beside them; None where the pool is given.
        pool_range: least and most that the pool may be, where it is computed.
        inside: terms that come off what the engine may use of the card, with figures that it only reckons
            with.
    """

    rank: int
    memory_bytes: int | None
    weight_bytes: int | None
    weight_grade: str
    weight_because: str
    pool_bytes: int
    terms: tuple[Estimate, ...] | None = None
    pool_range: tuple[int, int] | None = None
    inside: tuple[Estimate, ...] = ()

    @property
    def beside(self) -> tuple[Estimate, ...]:
        """Terms that are held beside what the engine may use."""
        return tuple(term for term in self.terms or () if term not in self.inside)

    @property
    def free_bytes(self) -> int | None:
        """What stays free, below 0 where the card is overdrawn; None where the pool is given."""
        if self.terms is None or self.memory_bytes is None:
            return None
        taken = (self.weight_bytes or 0) + self.pool_bytes + sum(t.central_bytes for t in self.terms)
        return self.memory_bytes - taken

    @property
    def allocations(self) -> list[Allocation]:
        """Its allocations, as in ``size``."""
        found: list[Allocation] = []
        if self.weight_bytes is not None:
            found.append(
                allocation(
                    "weights", "weights", self.rank, self.weight_bytes, self.weight_grade, self.weight_because
                )
            )
        because = "every block of the pool, used or not"
        grade = "exact" if self.pool_range is None else worst_grade(term.grade for term in self.terms or ())
        entry = allocation("kv_pool", "cache", self.rank, self.pool_bytes, grade, because)
        low, high = self.pool_range or (self.pool_bytes, self.pool_bytes)
        found.append({**entry, "low_bytes": low, "high_bytes": high})
        for term in self.terms or ():
            entry = allocation(term.name, term.kind, self.rank, term.central_bytes, term.grade, term.because)
            found.append({**entry, "low_bytes": term.low_bytes, "high_bytes": term.high_bytes})
        return found

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {
            "rank": self.rank,
            "place": f"gpu:{self.rank}",
            "memory_bytes": self.memory_bytes,
            "allocations": self.allocations,
            "free_bytes": self.free_bytes,
        }


@dataclass(frozen=True)
class FitResult:
    """The answer of ``fit``.

    Args:
        dtypes: the cache's formats, resolved.
        details: the engine's own figures.
        left: the pool's range on the fullest rank, where it is computed.
    """

    model: Model
    request: Request
    setup: Setup
    dtypes: RequestedDtypes
    verdict: Verdict
    devices: tuple[Device, ...]
    pool: Pool
    max_context: Reach
    max_sequences: Reach
    launch: Launch
    suggestions: tuple[Suggestion, ...]
    notes: tuple[Note, ...]
    details: dict[str, object]
    weights: WeightAnswer | None = None
    left: Spread | None = None
    check: bool = False

    @cached_property
    def remedy(self) -> Suggestion | None:
        """Of what makes a load fit that does not: the first that holds all of it, else the first."""
        found = [] if self.verdict.fits else [each for each in self.suggestions if each.launch is not None]
        return next((each for each in found if each.keeps_load), found[0] if found else None)

    @property
    def launch_command(self) -> str:
        """The line that starts the engine for this load."""
        return self.launch.command

    @property
    def exit_code(self) -> int:
        """3 where ``check`` was asked for and the load does not fit, else 0."""
        return EXIT_DOES_NOT_FIT if self.check and not self.verdict.fits else 0

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.fit/1`` object."""
        card = self.setup.card
        return {
            "schema": "kvgauge.fit/1",
            "model": self.model.to_dict(),
            "request": {
                **request_dict(self.request, self.dtypes, self.model.architecture),
                "gpu": None if card is None else card.name or None,
                "num_gpus": self.request.parallelism.num_gpus,
                "max_model_len": self.setup.reserve_tokens,
            },
            "verdict": self.verdict.to_dict(),
            "devices": [device.to_dict() for device in self.devices],
            "kv_pool": self.pool.to_dict(),
            "max_context_tokens": self.max_context.count,
            "max_sequences": self.max_sequences.count,
            "limited_by": self.max_context.limited_by,
            "max_context_limited_by": self.max_context.limited_by,
            "max_sequences_limited_by": self.max_sequences.limited_by,
            "launch_command": self.launch_command,
            "launch_steps": [step.to_dict() for step in self.launch.steps],
            "suggestions": [suggestion.to_dict() for suggestion in self.suggestions],
            "engine": {
                "name": self.request.engine,
                "version": self.request.engine_version,
                "details": self.details,
            },
            "notes": [note.to_dict() for note in self.notes],
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from kvgauge.render.notebook import fit_html  # noqa: PLC0415 - the core draws nothing

        return fit_html(self)
