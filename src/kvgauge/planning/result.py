"""The answer of ``plan``: options that are answers of ``fit``, and the decision as questions; its JSON."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.architecture import Note
    from kvgauge.fit_result import FitResult
    from kvgauge.hardware import Price
    from kvgauge.models import Model
    from kvgauge.planning.cases import Formats
    from kvgauge.planning.devices import PlanDevice
    from kvgauge.splits import SplitAnswer
    from kvgauge.workload import Parallelism


@dataclass(frozen=True)
class PlanOption:
    """One way to serve the load.

    Args:
        fit: the answer of ``fit`` for it; engine, version, launch command and ranks are there.
        device: what is bought or hired, with its prices.
        num_gpus: of all machines.
        num_nodes: machines.
        formats: what is not the checkpoint's own.
        headroom: how many times the load the pool holds.
        words: what tells this option to ``kvgauge fit``, after the model.
        reasons: why it stands at this place, and why the next cheaper machine fails.
    """

    fit: FitResult
    device: PlanDevice
    num_gpus: int
    num_nodes: int
    formats: Formats
    headroom: float
    words: tuple[str, ...]
    reasons: tuple[Note, ...]

    @property
    def parallelism(self) -> Parallelism:
        """Ranks of each kind."""
        return self.fit.request.parallelism

    @property
    def price_per_hour(self) -> float | None:
        """Of all GPUs, in US dollars; None where it is not known."""
        return _total(self.device.hourly, self.num_gpus)

    @property
    def purchase_price(self) -> float | None:
        """Of all GPUs, in US dollars; None where it is not known."""
        return _total(self.device.purchase, self.num_gpus)

    @property
    def rank_reason(self) -> str:
        """The reasons as one text."""
        return "; ".join(note.message for note in self.reasons)

    def to_dict(self) -> dict[str, object]:
        """Return the option of the contract: a fit object and what was chosen."""
        ranks, hourly, device = self.parallelism, self.device.hourly, self.device
        return {
            **self.fit.to_dict(),
            "gpu": device.name or None,
            "num_gpus": self.num_gpus,
            "num_nodes": self.num_nodes,
            "parallelism": {
                "tensor_parallel": ranks.tensor,
                "pipeline_parallel": ranks.pipeline,
                "data_parallel": ranks.data,
                "expert_parallel": ranks.expert,
                "context_parallel": ranks.context,
            },
            "price_per_hour": self.price_per_hour,
            "price": None if hourly is None else hourly.to_dict(),
            "purchase_price": self.purchase_price,
            "purchase": None if device.purchase is None else device.purchase.to_dict(),
            "headroom": round(self.headroom, 3),
            "kv_dtype_changed": self.formats.kv,
            "weights_changed": self.formats.weights,
            "checkpoint_changed": self.formats.checkpoint,
            "fit_arguments": list(self.words),
            "rank_reason": self.rank_reason,
        }


def _total(price: Price | None, count: int) -> float | None:
    return None if price is None else round(price.usd * count, 4)


@dataclass(frozen=True, slots=True)
class PathStep:
    """One question of the decision, its answer, and the numbers behind it."""

    question: Note
    answer: Note
    because: tuple[Note, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {
            "code": self.question.code.removeprefix("plan_ask_"),
            "question": self.question.message,
            "answer": self.answer.message,
            "answer_code": self.answer.code.removeprefix("plan_"),
            "because": "; ".join(note.message for note in self.because),
        }


@dataclass(frozen=True)
class PlanResult:
    """The answer of ``plan``.

    Args:
        options: in order; empty where nothing that was looked at holds the load.
        decision_path: questions on the device of the first option, or of the only one.
        num_devices: kinds of devices that were looked at.
        splits: other ways to divide the load, where they were asked for.
    """

    model: Model
    options: tuple[PlanOption, ...]
    decision_path: tuple[PathStep, ...]
    num_devices: int
    notes: tuple[Note, ...] = ()
    check: bool = False
    splits: SplitAnswer | None = None

    @cached_property
    def best(self) -> PlanOption | None:
        """The first option."""
        return self.options[0] if self.options else None

    @property
    def exit_code(self) -> int:
        """3 where ``check`` was asked for and nothing holds the load, else 0."""
        return 3 if self.check and not self.options else 0

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.plan/1`` object."""
        return {
            "schema": "kvgauge.plan/1",
            "model": self.model.to_dict(),
            "options": [option.to_dict() for option in self.options],
            "decision_path": [step.to_dict() for step in self.decision_path],
            "num_devices": self.num_devices,
            "splits": None if self.splits is None else self.splits.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from kvgauge.render.notebook import plan_html  # noqa: PLC0415 - the core draws nothing

        return plan_html(self)


__all__ = ["PathStep", "PlanOption", "PlanResult"]
