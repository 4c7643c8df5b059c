"""``verify`` as text and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from kvgauge.render.because import because_text
from kvgauge.render.clean import clean
from kvgauge.render.note_units import in_units
from kvgauge.render.view import View, plain, table
from kvgauge.replay.figures import UNITS
from kvgauge.verification.answer import Line, StartAnswer, VerifyResult

if TYPE_CHECKING:
    from kvgauge.render.sheet import Sheet

_COLUMNS = (
    "verify_quantity", "verify_measured", "verify_predicted", "verify_difference", "verify_verdict",
    "verify_because",
)  # fmt: skip
#: What is dropped first where the terminal has no room; reasons and differences then follow the table.
_DROPPED = ("verify_because", "verify_difference")
_RIGHT = frozenset({"verify_measured", "verify_predicted", "verify_difference"})
_NONE = "-"


def draw_verify(result: VerifyResult, view: View) -> str:
    """Return the figures of a log beside their predictions, what failed, and what to change."""
    texts = view.texts
    answer = result.last
    parts: list[object] = [plain(headline(answer, view), "bold")]
    parts += [plain(line) for line in failure_lines(answer, view)]
    rows = [line_cells(line, view) for line in answer.lines]
    names = _shown(rows, view)
    if answer.lines:
        grid = table(
            *(texts(name) for name in names),
            right=tuple(place for place, name in enumerate(names) if name in _RIGHT),
        )
        for cells in rows:
            grid.add_texts(*(cells[name] for name in names))
        parts += ["", grid]
    left_out = [name for name in reversed(_DROPPED) if name not in names]
    for line, cells in zip(answer.lines, rows, strict=True):
        if left_out and line.verdict not in ("agrees", "near"):
            told = ", ".join(cells[name] for name in left_out if cells[name] not in ("", _NONE))
            parts.append(plain(f"{line.quantity}: {told}"))
    if answer.advice:
        parts += ["", plain(texts("verify_advice"), "bold")]
        parts += [plain(f"- {text}") for text in advice_lines(answer, view)]
    if len(result.starts) > 1:
        parts += ["", plain(texts("verify_earlier", count=len(result.starts) - 1))]
    return view.draw(*parts)  # type: ignore[arg-type]


def _shown(rows: Sequence[dict[str, str]], view: View) -> tuple[str, ...]:
    """Return the columns that a terminal has room for, each cell on one line."""
    names: tuple[str, ...] = _COLUMNS
    for dropped in _DROPPED:
        if _width(names, rows, view) <= view.width:
            break
        names = tuple(name for name in names if name != dropped)
    return names


def _width(names: Sequence[str], rows: Sequence[dict[str, str]], view: View) -> int:
    """Return the columns of a terminal that a table takes."""
    columns = ([view.texts(name), *(row[name] for row in rows)] for name in names)
    return sum(max(map(cell_len, cells)) for cells in columns) + 2 * (len(names) - 1)


def headline(answer: StartAnswer, view: View) -> str:
    """Return the engine, its model, and how many figures agree."""
    engine = f"{answer.engine['name']} {answer.engine['version'] or ''}".strip()
    model = answer.engine["model"] or answer.engine["model_in_log"] or view.texts("verify_no_model")
    met = sum(line.verdict in ("agrees", "near", "in_range") for line in answer.lines)
    return view.texts(
        "verify_headline", engine=clean(engine), model=clean(str(model)), met=met, count=len(answer.lines)
    )


def failure_lines(answer: StartAnswer, view: View) -> list[str]:
    """Return what failed, in words."""
    found = []
    for failure in answer.failures:
        text = view.texts(f"failure_{failure['code']}")
        tried = failure["tried_bytes"]
        found.append(f"{text} ({view.size(tried)})" if isinstance(tried, int) else text)
    return found


def advice_lines(answer: StartAnswer, view: View) -> list[str]:
    """Return the advice in the language and the units of the view."""
    return [clean(view.texts.note(in_units(one.note, view.units))) for one in answer.advice]


def line_cells(line: Line, view: View) -> dict[str, str]:
    """Return the text of every column."""
    unit = UNITS[line.quantity]
    predicted = figure(line.predicted, unit)
    if line.low is not None and line.high is not None and line.predicted is not None:
        predicted = f"{predicted} ({_number(line.low)}-{_number(line.high)})"
    error = line.error_fraction
    return {
        "verify_quantity": line.quantity,
        "verify_measured": figure(line.measured, unit),
        "verify_predicted": predicted,
        "verify_difference": _NONE if error is None else f"{100 * error:+.2f} %",
        "verify_verdict": view.texts(f"verdict_{line.verdict}"),
        "verify_because": clean(because_text(line, view.texts)),
    }


def figure(value: float | None, unit: str) -> str:
    """Return a figure with its unit."""
    return _NONE if value is None else f"{_number(value)} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10_000 or value == int(value) else f"{value:,.2f}"


def verify_sheet(result: VerifyResult, view: View) -> Sheet:
    """Return the same for a markup."""
    from kvgauge.render.sheet import Sheet, TableOf  # noqa: PLC0415 - the sheet's module knows every answer

    answer = result.last
    right = frozenset(place for place, name in enumerate(_COLUMNS) if name in _RIGHT)
    rows = tuple(tuple(line_cells(line, view)[name] for name in _COLUMNS) for line in answer.lines)
    blocks: Sequence[str | TableOf] = (
        *failure_lines(answer, view),
        TableOf(tuple(view.texts(name) for name in _COLUMNS), rows, right),
        *advice_lines(answer, view),
    )
    return Sheet(headline(answer, view), tuple(blocks))
