"""JSON answers with their sentences in the language of the reader; keys, codes and figures stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kvgauge.allocations import Allocation
    from kvgauge.architecture import Note
    from kvgauge.comparison import Comparison, ComparisonRow
    from kvgauge.fit_result import FitResult
    from kvgauge.planning.result import PlanResult
    from kvgauge.render.messages import Texts
    from kvgauge.size_result import SizeResult
    from kvgauge.units import Units
    from kvgauge.verification.answer import StartAnswer, VerifyResult


def notes_json(notes: Iterable[Note], texts: Texts) -> list[dict[str, str]]:
    """Return notes in a language."""
    return [{**note.to_dict(), "message": texts.note(note)} for note in notes]


def allocations_json(allocations: Iterable[Allocation], texts: Texts) -> list[dict[str, object]]:
    """Return allocations with their reasons in a language."""
    return [{**one, "because": texts.error(str(one["because"]))} for one in allocations]


def size_json(result: SizeResult, texts: Texts) -> dict[str, object]:
    """Return the ``kvgauge.size/1`` object in a language."""
    answer: dict[str, Any] = result.to_dict()
    answer["engine"] = {
        **answer["engine"],
        "allocations": allocations_json(answer["engine"]["allocations"], texts),
    }
    return {**answer, "notes": notes_json(result.notes, texts)}


def comparison_json(result: Comparison, texts: Texts) -> dict[str, object]:
    """Return the ``kvgauge.compare/1`` object in a language, errors of rows too."""
    return {**result.to_dict(), "rows": [_row_json(row, texts) for row in result.rows]}


def _row_json(row: ComparisonRow, texts: Texts) -> dict[str, object]:
    answer: dict[str, Any] = row.to_dict()
    if row.result is not None:
        allocations = allocations_json(answer["engine"]["allocations"], texts)
        engine = {**answer["engine"], "allocations": allocations}
        return {**answer, "engine": engine, "notes": notes_json(row.result.notes, texts)}
    error = answer["error"]
    told = {name: texts.error(error[name]) for name in ("message", "hint")}
    return {**answer, "error": {**error, **told}}


def fit_json(result: FitResult, texts: Texts, units: Units) -> dict[str, object]:
    """Return the ``kvgauge.fit/1`` object; sentences that hold sizes have them in ``units``."""
    from kvgauge.render.note_units import in_units  # noqa: PLC0415 - of fit alone

    answer: dict[str, Any] = result.to_dict()
    answer["devices"] = [
        {**device, "allocations": allocations_json(device["allocations"], texts)}
        for device in answer["devices"]
    ]
    answer["verdict"] = {
        **result.verdict.to_dict(),
        "sentence": texts.note(in_units(result.verdict.note, units)),
    }
    answer["suggestions"] = [
        {**found.to_dict(), "message": texts.note(in_units(found.note, units))}
        for found in result.suggestions
    ]
    answer["notes"] = notes_json(result.notes, texts)
    return answer


def _priced(option: dict[str, object], texts: Texts) -> dict[str, object]:
    """Return an option whose prices say in words where they come from."""
    for name in ("price", "purchase"):
        price = option[name]
        if isinstance(price, dict):
            option[name] = {**price, "source": texts.origin(price["source"])}
    return option


def plan_json(result: PlanResult, texts: Texts, units: Units) -> dict[str, object]:
    """Return the ``kvgauge.plan/1`` object; sentences that hold sizes have them in ``units``."""
    from kvgauge.render.note_units import in_units  # noqa: PLC0415 - as above

    def said(*notes: Note) -> str:
        return texts("plan_join").join(texts.note(in_units(note, units)) for note in notes)

    answer = result.to_dict()
    answer["options"] = [
        {
            **_priced(one.to_dict(), texts),
            **fit_json(one.fit, texts, units),
            "rank_reason": said(*one.reasons),
        }
        for one in result.options
    ]
    answer["decision_path"] = [
        {
            **step.to_dict(),
            "question": said(step.question),
            "answer": said(step.answer),
            "because": said(*step.because),
        }
        for step in result.decision_path
    ]
    answer["notes"] = notes_json(result.notes, texts)
    return answer


def verify_json(result: VerifyResult, texts: Texts) -> dict[str, object]:
    """Return the ``kvgauge.verify/1`` object in a language."""
    answer = result.to_dict()
    answer |= _sentences(result.last, texts)
    answer["earlier"] = [{**start.to_dict(), **_sentences(start, texts)} for start in result.starts[:-1]]
    return answer


def _sentences(start: StartAnswer, texts: Texts) -> dict[str, object]:
    from kvgauge.render.because import because_text  # noqa: PLC0415 - of verify alone

    return {
        "lines": [{**line.to_dict(), "because": because_text(line, texts)} for line in start.lines],
        "advice": [{**one.to_dict(), "message": texts.note(one.note)} for one in start.advice],
        "failures": [{**one, "message": texts(f"failure_{one['code']}")} for one in start.failures],
        "notes": notes_json(start.notes, texts),
    }
