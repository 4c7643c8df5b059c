"""The answer of ``fit``: verdict, devices, pool, what is the most that fits; and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.allocations import Allocation, allocation
from kvgauge.architecture import Note
from kvgauge.engines.base import RequestedDtypes
from kvgauge.engines.pools import Pool
from kvgauge.engines.setup import Setup
from kvgauge.models import Model
from kvgauge.size_result import Request, request_dict

if TYPE_CHECKING:
    from kvgauge.weight_answer import WeightAnswer

EXIT_DOES_NOT_FIT = 3


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest number that fits, and what keeps it from being larger: memory, model, engine or flag."""

    count: int
    limited_by: str


class Suggestion(NamedTuple):
    """Something that would help, with the figure that it brings."""

    note: Note
    effect: dict[str, int]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {"code": self.note.code, "effect": self.effect, "message": self.note.message}


@dataclass(frozen=True)
class Verdict:
    """Whether the load fits on the fullest rank.

    Args:
        limiting: what decides: memory, or a flag that allows less than the load.
    """

    fits: bool
    limiting: str
    required_bytes: int
    available_bytes: int
    note: Note

    @property
    def slack_bytes(self) -> int:
        """Bytes to spare, negative where they lack."""
        return self.available_bytes - self.required_bytes

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {
            "status": "fits" if self.fits else "does_not_fit",
            "fits": self.fits,
            "limiting": self.limiting,
            "required_bytes": self.required_bytes,
            "required_low_bytes": self.required_bytes,
            "required_high_bytes": self.required_bytes,
            "available_bytes": self.available_bytes,
            "slack_bytes": self.slack_bytes,
            "sentence": self.note.message,
        }


@dataclass(frozen=True, slots=True)
class Device:
    """What one rank holds; None where it is not known.

    Args:
        memory_bytes: of the card, where one is named.
        weight_bytes: its share of the weights.
    """

    rank: int
    memory_bytes: int | None
    weight_bytes: int | None
    weight_grade: str
    weight_because: str
    pool_bytes: int

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
        return [*found, allocation("kv_pool", "cache", self.rank, self.pool_bytes, "exact", because)]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {
            "rank": self.rank,
            "place": f"gpu:{self.rank}",
            "memory_bytes": self.memory_bytes,
            "allocations": self.allocations,
            "free_bytes": None,
        }


@dataclass(frozen=True)
class FitResult:
    """The answer of ``fit``.

    Args:
        dtypes: the cache's formats, resolved.
        details: the engine's own figures.
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
    launch_command: str
    suggestions: tuple[Suggestion, ...]
    notes: tuple[Note, ...]
    details: dict[str, object]
    weights: WeightAnswer | None = None
    check: bool = False

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
                "gpu": None if card is None else card.name,
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
