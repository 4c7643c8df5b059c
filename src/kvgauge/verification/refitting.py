"""What ``fit`` says of a start that failed on a known card: how much lacks, which changes make it fit."""

from __future__ import annotations

from collections.abc import Iterator

from kvgauge.architecture import Note
from kvgauge.errors import KvgaugeError
from kvgauge.fit_result import FitResult
from kvgauge.fitting import fit
from kvgauge.replay import vllm
from kvgauge.verification.answer import Advice
from kvgauge.verification.asking import Asked
from kvgauge.verification.facts import Start

#: Failures that leave no pool to reckon with; one of a pool that is printed is told from that pool.
_WITHOUT_POOL = frozenset({"no_pool", "out_of_memory"})
_ENGINES = frozenset({"vllm", "sglang"})
#: Changes that are named, the mildest first.
_MOST = 5


def refit(start: Start, asked: Asked) -> tuple[Advice, ...]:
    """Return how much the start lacks by the prediction and what would make it fit, the mildest first."""
    if not _WITHOUT_POOL & set(start.failures) or asked.record.family not in _ENGINES:
        return ()
    memory = vllm.total_gib(asked.record) if asked.record.family == "vllm" else None
    if memory is None and asked.record.text("gpu") is None:
        text = "give the card with --gpu NAME: how much lacks, and what would make it fit, follows from it"
        return (Advice("name_card", Note("verify_name_card", "info", text), {}),)
    try:
        return tuple(_told(_fit(asked, memory)))
    except (KvgaugeError, ArithmeticError, ValueError):
        return ()


def _fit(asked: Asked, memory_gib: float | None) -> FitResult:
    record = asked.record
    version = record.text("engine_version")
    return fit(
        asked.model,
        gpu=record.text("gpu"),
        memory=f"{memory_gib}GiB" if memory_gib else None,
        engine=f"{record.family}@{version}" if version else record.family,
        engine_args=record.text("engine_args") or "",
        offline=True,
    )


def _told(found: FitResult) -> Iterator[Advice]:
    verdict = found.verdict
    yield Advice("predicted", verdict.note, {"slack_bytes": verdict.slack_bytes})
    fitting = [each for each in found.suggestions if each.fits]
    for each in fitting[:_MOST]:
        yield Advice(each.code, each.note, dict(each.effect))
