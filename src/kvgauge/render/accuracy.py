"""``accuracy`` as text and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kvgauge.render.clean import clean
from kvgauge.render.view import View, plain, table
from kvgauge.replay.figures import UNITS
from kvgauge.replay.outcomes import AccuracyResult, Outcome, Row, cause_of
from kvgauge.units import GIB

if TYPE_CHECKING:
    from kvgauge.overhead_accuracy import Summary
    from kvgauge.render.sheet import Sheet, TableOf

_COLUMNS = (
    "accuracy_engine", "accuracy_quantity", "accuracy_basis", "accuracy_n", "accuracy_exact",
    "accuracy_within",
    "accuracy_off", "accuracy_skipped", "accuracy_median", "accuracy_worst", "accuracy_held",
    "accuracy_width", "accuracy_over", "accuracy_optimistic",
)  # fmt: skip
_NARROW = ("accuracy_quantity", "accuracy_basis", "accuracy_n", "accuracy_exact", "accuracy_median")
_MIDDLE = ("accuracy_engine", *_NARROW)
#: From this width on there is room for every column, and for causes beside their figures.
_WIDE_COLUMNS = 140
_LEFT_OUT_COLUMNS = 96
_TEXTS = frozenset({"accuracy_engine", "accuracy_quantity", "accuracy_basis"})
_LEFT_OUT_NARROW = (
    "accuracy_engine", "accuracy_quantity", "accuracy_n", "accuracy_median", "accuracy_held", "accuracy_over",
)  # fmt: skip
_LEFT_OUT = (*_LEFT_OUT_NARROW[:-1], "accuracy_width", "accuracy_over", "accuracy_optimistic")
_NAMED = ("accuracy_record", "accuracy_quantity", "accuracy_predicted", "accuracy_measured", "accuracy_cause")
#: Beyond this many figures that do not agree, the rest is counted.
MAX_NAMED = 40
_NONE = "-"


def draw_accuracy(result: AccuracyResult, view: View) -> str:
    """Return the table, the figures that do not agree with their causes, and the error of estimates."""
    texts = view.texts
    parts: list[object] = [plain(total_line(result, view), "bold"), ""]
    is_wide = view.width >= _WIDE_COLUMNS
    names = _COLUMNS if is_wide else _NARROW if view.is_narrow else _MIDDLE
    parts.append(_grid(names, (row_cells(row, view) for row in result.summary), view))
    named = result.named
    if named:
        parts += ["", plain(texts("accuracy_named"), "bold")]
        cells = [named_cells(each, view) for each in named[:MAX_NAMED]]
        if not is_wide:
            parts += [plain(texts("accuracy_named_line", **row)) for row in cells]
        else:
            parts.append(_grid(_NAMED, cells, view))
        if len(named) > MAX_NAMED:
            parts.append(plain(texts("accuracy_more", count=len(named) - MAX_NAMED)))
    if result.left_out:
        parts += ["", plain(texts("accuracy_left_out"), "bold")]
        shown = _LEFT_OUT if view.width >= _LEFT_OUT_COLUMNS else _LEFT_OUT_NARROW
        parts.append(_grid(shown, (left_out_cells(row) for row in result.left_out), view))
    return view.draw(*parts)  # type: ignore[arg-type]


def _grid(names: Sequence[str], rows: Iterable[dict[str, str]], view: View) -> object:
    words = _TEXTS | {"accuracy_record", "accuracy_cause"}
    right = tuple(place for place, name in enumerate(names) if name not in words)
    grid = table(*(view.texts(name) for name in names), right=right)
    for cells in rows:
        grid.add_texts(*(cells[name] for name in names))
    return grid


def total_line(result: AccuracyResult, view: View) -> str:
    """Return the figures that rules give, of all whose inputs are stated."""
    exact, count = result.exact_of_rules()
    share = f"{100 * exact / count:.1f}" if count else _NONE
    return view.texts(
        "accuracy_total", exact=f"{exact:,}", count=f"{count:,}", share=share, source=clean(result.source)
    )


def row_cells(row: Row, view: View) -> dict[str, str]:
    """Return the text of every column."""
    skipped = sum(row.skipped.values())
    return {
        "accuracy_engine": clean(row.engine),
        "accuracy_quantity": row.quantity,
        "accuracy_basis": view.texts(f"basis_{row.basis}"),
        "accuracy_n": f"{row.count:,}",
        "accuracy_exact": f"{row.exact:,}"
        if row.exact_fraction is None
        else f"{row.exact:,} ({row.exact_fraction:.0%})",
        "accuracy_within": f"{row.within:,}",
        "accuracy_off": f"{row.off:,}",
        "accuracy_skipped": f"{skipped:,}" if skipped else "",
        "accuracy_median": _percent(row.median_error),
        "accuracy_worst": _percent(row.worst_error),
        "accuracy_held": f"{row.held:,}/{row.ranged:,}" if row.ranged else "",
        "accuracy_width": _size(row.width, UNITS[row.quantity]),
        "accuracy_over": _size(row.over, UNITS[row.quantity]),
        "accuracy_optimistic": "" if row.optimistic is None else f"{row.optimistic:,}",
    }


def _size(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:,.2f} {unit}"


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    if share < 0.00005:
        return "0 %"
    return f"{100 * share:.2f} %" if share < 0.1 else f"{100 * share:,.0f} %"


def named_cells(each: Outcome, view: View) -> dict[str, str]:
    """Return a figure that does not agree, with its cause."""
    unit = UNITS[each.quantity]
    cause = (
        cause_of(each.id, each.quantity, view.texts.lang)
        or view.texts.error(each.reason)
        or view.texts("accuracy_no_cause")
    )
    return {
        "accuracy_record": clean(each.id),
        "accuracy_quantity": each.quantity,
        "accuracy_predicted": _figure(each.predicted, unit),
        "accuracy_measured": _figure(each.measured, unit),
        "accuracy_cause": clean(cause),
    }


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return _NONE
    text = f"{value:,.0f}" if abs(value) >= 10_000 or value == int(value) else f"{value:,.2f}"
    return f"{text} {unit}"


def left_out_cells(row: Summary) -> dict[str, str]:
    """Return the error of one estimate for families that it was not fitted on."""
    return {
        "accuracy_engine": row.engine,
        "accuracy_quantity": row.quantity,
        "accuracy_n": f"{row.records:,}",
        "accuracy_median": _percent(row.median_error_fraction),
        "accuracy_held": f"{row.within:,}/{row.records:,}",
        "accuracy_width": _size(row.median_width_bytes / GIB, "GiB"),
        "accuracy_over": _size(row.worst_optimistic_bytes / GIB, "GiB"),
        "accuracy_optimistic": f"{row.optimistic:,}",
    }


def accuracy_sheet(result: AccuracyResult, view: View) -> Sheet:
    """Return the same for a markup."""
    from kvgauge.render.sheet import Sheet  # noqa: PLC0415 - the sheet's module knows every answer

    blocks: list[str | TableOf] = [_shown(_COLUMNS, (row_cells(row, view) for row in result.summary), view)]
    if result.named:
        blocks += [
            view.texts("accuracy_named"),
            _shown(_NAMED, (named_cells(e, view) for e in result.named), view),
        ]
    if result.left_out:
        blocks += [
            view.texts("accuracy_left_out"),
            _shown(_LEFT_OUT, map(left_out_cells, result.left_out), view),
        ]
    return Sheet(total_line(result, view), tuple(blocks))


def _shown(names: Sequence[str], rows: Iterable[dict[str, str]], view: View) -> TableOf:
    from kvgauge.render.sheet import TableOf  # noqa: PLC0415 - as above

    words = _TEXTS | {"accuracy_record", "accuracy_cause"}
    right = frozenset(place for place, name in enumerate(names) if name not in words)
    cells = tuple(tuple(row[name] for name in names) for row in rows)
    return TableOf(tuple(view.texts(name) for name in names), cells, right)


def _is_outside(each: Outcome) -> bool:
    """Whether a pool lies outside the range that was predicted."""
    return each.quantity in ("pool", "kv_tokens") and each.is_held is False


def has_cause(each: Outcome) -> bool:
    """Whether a figure that does not agree stands in the table of causes: of a rule, or outside its range."""
    return each.by_rule or each.quantity == "weights" or _is_outside(each)


def markdown_of(result: AccuracyResult, view: View) -> dict[str, str]:
    """Return the blocks of the published document: ``total``, ``table``, ``causes``, ``estimates``."""
    from kvgauge.render.markdown import to_markdown  # noqa: PLC0415
    from kvgauge.render.sheet import Sheet  # noqa: PLC0415

    table_of, *others = accuracy_sheet(result, view).blocks
    every = [each for each in result.disagreeing if has_cause(each)]
    causes = _shown(_NAMED, (named_cells(each, view) for each in every), view)
    return {
        "total": f"{total_line(result, view)}.\n",
        "table": to_markdown(Sheet("", (table_of,))),
        "causes": to_markdown(Sheet("", (causes,))),
        "estimates": to_markdown(Sheet("", (others[-1],))),
    }
