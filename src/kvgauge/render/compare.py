"""``compare`` as text: one row a model, with the ratio to the first."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from kvgauge.render.clean import clean
from kvgauge.render.size import growth_text, load_text
from kvgauge.render.view import View, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.comparison import Comparison, ComparisonRow


def draw_comparison(comparison: Comparison, view: View) -> str:
    """Return the table, and the load it is for."""
    loads = {_load(row, view) for row in comparison.rows if row.result is not None}
    same_load = len(loads) == 1
    parts: list[RenderableType] = []
    if same_load:
        parts += [plain(view.texts("compare_load", load=loads.pop()), "bold"), ""]
    return view.draw(*parts, _table(comparison, view, with_context=not same_load))


def _load(row: ComparisonRow, view: View) -> str:
    load = row.result.request.workload if row.result else None
    return load_text(load.sequences, load.context_tokens, view) if load else ""


def _table(comparison: Comparison, view: View, *, with_context: bool) -> RenderableType:
    texts = view.texts
    names = ["column_model", "column_family", *(["column_context"] if with_context else [])]
    names += ["column_total", "column_ratio", "column_growth"]
    if view.is_narrow:
        names = ["column_model", "column_total", "column_ratio"]
    numbers = {"column_context", "column_total", "column_ratio"}
    right = tuple(place for place, name in enumerate(names) if name in numbers)
    grid = table(*(texts(name) for name in names), right=right)
    for row in comparison.rows:
        cells = _cells(row, view)
        grid.add_texts(*(cells.get(name, "") for name in names))
    return grid


def _cells(row: ComparisonRow, view: View) -> dict[str, str]:
    name = clean(row.name)
    if row.result is None:
        code = row.error.code if row.error else ""
        return {"column_model": name, "column_total": view.texts("compare_error"), "column_growth": code}
    cache = row.result.cache
    return {
        "column_model": name,
        "column_family": cache.family,
        "column_context": f"{cache.workload.context_tokens:,}",
        "column_total": view.size(cache.total_bytes),
        "column_ratio": ratio_text(row.ratio),
        "column_growth": growth_text(cache, view),
    }


def ratio_text(ratio: Fraction | None) -> str:
    """Return a ratio in three figures, or nothing.

    >>> ratio_text(Fraction(1, 3)), ratio_text(Fraction(1234, 10)), ratio_text(None)
    ('0.333', '123', '')
    """
    if ratio is None:
        return ""
    value = float(ratio)
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if 0 < value < 1 else f"{value:#.3g}".rstrip(".")
