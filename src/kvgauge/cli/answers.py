"""``size``, ``compare`` and ``explain``: ask the library, show what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvgauge.cli.output import Settings, make_view, write, write_error, write_json, write_notes
from kvgauge.cli.progress import ProgressLine
from kvgauge.cli.requests import size_keywords
from kvgauge.render.answer_json import comparison_json, size_json
from kvgauge.size_result import SizeResult
from kvgauge.sizing import size

if TYPE_CHECKING:
    from kvgauge.comparison import Comparison
    from kvgauge.render.view import View


def _view(settings: Settings, values: dict[str, Any]) -> View:
    return make_view(settings, units=values["units"] or "gib", color=values["color"] or "auto")


def run_size(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``size``; with ``--why`` as ``explain`` does."""
    if values["ndjson"]:
        from kvgauge.cli.batch import run_batch  # noqa: PLC0415

        return run_batch(settings, values)
    if values["why"]:
        return run_explain(settings, values)
    result = _size(settings, values)
    if settings.json:
        write_json(size_json(result, settings.texts))
        return 0
    view = _view(settings, values)
    if values["markdown"]:
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415
        from kvgauge.render.sheet import size_sheet  # noqa: PLC0415

        write(to_markdown(size_sheet(result, view)))
    else:
        from kvgauge.render.size import draw_size  # noqa: PLC0415 - JSON draws nothing

        write(draw_size(result, view))
    write_notes(result.notes, settings.texts, units=view.units)
    return 0


def _size(settings: Settings, values: dict[str, Any]) -> SizeResult:
    progress = ProgressLine(settings.texts)
    return size(values["model"], **size_keywords(values), progress=progress)


def run_explain(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``explain``."""
    from kvgauge.derivation import explain  # noqa: PLC0415

    explanation = explain(_size(settings, values), lang=settings.lang)
    if settings.json:
        write_json(explanation.to_dict())
        return 0
    view = _view(settings, values)
    if values["markdown"]:
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415
        from kvgauge.render.sheet import explanation_sheet  # noqa: PLC0415

        write(to_markdown(explanation_sheet(explanation, view)))
    else:
        from kvgauge.render.explain import draw_explanation  # noqa: PLC0415

        write(draw_explanation(explanation, view))
    write_notes(explanation.result.notes, settings.texts, units=view.units)
    return 0


def run_compare(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``compare``: a bad model is a row of its own, and makes the exit code 1."""
    from kvgauge.comparison import compare  # noqa: PLC0415

    comparison = compare(values["models"], **size_keywords(values))
    if settings.json:
        write_json(comparison_json(comparison, settings.texts))
        return 1 if comparison.errors else 0
    view = _view(settings, values)
    if values["markdown"]:
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415
        from kvgauge.render.sheet import comparison_sheet  # noqa: PLC0415

        write(to_markdown(comparison_sheet(comparison, view)))
    else:
        from kvgauge.render.compare import draw_comparison  # noqa: PLC0415

        write(draw_comparison(comparison, view))
    _write_row_notes(comparison, settings, view)
    return 1 if comparison.errors else 0


def _write_row_notes(comparison: Comparison, settings: Settings, view: View) -> None:
    """Errors and notes of rows to stderr, each with its model's name."""
    texts = settings.texts
    for row in comparison.rows:
        name = texts("source_stdin") if row.name == "-" else row.name
        if row.error is not None:
            write_error(row.error, settings, about=name)
        elif row.result is not None:
            write_notes(row.result.notes, texts, units=view.units, about=name)
