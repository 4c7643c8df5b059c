"""``compare`` as text: the models side by side, then the ratios to the first, axis by axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.padding import Padding

from kvgauge.render.clean import clean
from kvgauge.render.numbers import change_text, ratio_text, share_text
from kvgauge.render.size_facts import load_text
from kvgauge.render.view import View, labelled, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.comparison import Comparison, ComparisonRow

Cells = dict[str, str]

#: All columns in order; those of ``_OPTIONAL`` come in where the table has room for them, most useful first.
_COLUMNS = (
    "model", "family", "context",
    "per_token", "growing", "state", "cross", "total", "weights", "per_gpu",
    "ratio", "change", "rank",
)  # fmt: skip
_OPTIONAL = ("weights", "ratio", "per_token", "family")
_STACKED = ("context", "growing", "state", "cross", "total", "weights", "per_gpu", "change", "rank")
_WORDS = ("model", "family")
#: Columns that some models have nothing in.
_MAYBE = ("state", "cross", "weights")
_GAP = 2
_NOTHING = "-"


def draw_comparison(comparison: Comparison, view: View) -> str:
    """Return the load, the figures of each model, what they mean, and where the ratios come from."""
    load = load_line(comparison, view)
    heading: list[RenderableType] = [plain(load, "bold"), ""] if load else []
    rows = [row_cells(row, view) for row in comparison.rows]
    names = [name for name in comparison_columns(comparison, view) if not (heading and name == "context")]
    base = base_line(comparison, view)
    figures = _figures(rows, names, view)
    if base:
        figures += ["", plain(base)]
    return view.draw(*heading, *figures, *_legend(comparison, names, view), *_splits(comparison, view))


def load_line(comparison: Comparison, view: View) -> str:
    """Return the load that all models are sized for; nothing where their contexts differ."""
    loads = {_load(row, view) for row in comparison.rows if row.result is not None}
    return view.texts("compare_load", load=loads.pop()) if len(loads) == 1 else ""


def comparison_columns(comparison: Comparison, view: View) -> list[str]:
    """Return the columns that say something about at least one model."""
    rows = [row_cells(row, view) for row in comparison.rows]
    idle = {name for name in (*_MAYBE, "per_gpu") if all(row.get(name, _NOTHING) == _NOTHING for row in rows)}
    relative = {"ratio", "change"} if base_line(comparison, view) else set()
    return [name for name in _COLUMNS if name not in idle | relative]


def base_line(comparison: Comparison, view: View) -> str:
    """Say why there are no ratios, where the first model has no size."""
    first = comparison.rows[0]
    return "" if first.result else view.texts("compare_no_base", first=row_name(first, view))


def row_name(row: ComparisonRow, view: View) -> str:
    """Return what a row calls its model."""
    return view.texts("source_stdin") if row.name == "-" else clean(row.name)


def _load(row: ComparisonRow, view: View) -> str:
    load = row.result.request.workload if row.result else None
    return load_text(load.sequences, load.context_tokens, view) if load else ""


def row_cells(row: ComparisonRow, view: View) -> Cells:
    """Return the text of every column."""
    if row.result is None or row.parts is None:
        return {"model": row_name(row, view), "growing": view.texts("compare_error")}
    cache, parts, weights = row.result.cache, row.parts, row.result.weights
    return {
        "model": row_name(row, view),
        "family": cache.family,
        "context": f"{cache.workload.context_tokens:,}",
        "per_token": view.size(cache.growth_bytes_per_token),
        "growing": view.size(parts.growing_bytes),
        "state": view.size(parts.state_bytes) if parts.state_bytes else _NOTHING,
        "cross": view.size(parts.cross_bytes) if parts.cross_bytes else _NOTHING,
        "total": view.size(cache.total_bytes),
        "weights": view.size(weights.total_bytes) if weights is not None else _NOTHING,
        "per_gpu": view.size(row.rank_bytes) if row.result.request.parallelism.num_gpus > 1 else _NOTHING,
        "ratio": ratio_text(row.growing_ratio),
        "change": view.texts("compare_first") if row.is_first else change_text(row.growing_change),
        "rank": f"{row.rank}",
    }


def _figures(rows: Sequence[Cells], names: Sequence[str], view: View) -> list[RenderableType]:
    """A table where it fits with whole names, if need be without their owners; else one block a model."""
    needed = [name for name in names if name not in _OPTIONAL]
    for cells in (rows, _without_owners(rows)):
        if _width(cells, needed, view) <= view.width:
            shown = needed
            for extra in (name for name in _OPTIONAL if name in names):
                wider = [name for name in names if name in (*shown, extra)]
                shown = wider if _width(cells, wider, view) <= view.width else shown
            return [_table(cells, shown, view)]
    blocks = (_block(cells, [name for name in names if name in _STACKED], view) for cells in rows)
    return [part for number, block in enumerate(blocks) for part in (*([""] if number else []), *block)]


def _without_owners(rows: Sequence[Cells]) -> Sequence[Cells]:
    short = [row["model"].rpartition("/")[2] for row in rows]
    if len(set(short)) < len(rows):
        return rows
    return [{**row, "model": name} for row, name in zip(rows, short, strict=True)]


def _width(rows: Sequence[Cells], names: Sequence[str], view: View) -> int:
    columns = ([view.texts(f"column_{name}"), *(row.get(name, "") for row in rows)] for name in names)
    return sum(max(map(cell_len, cells)) for cells in columns) + _GAP * (len(names) - 1)


def _table(rows: Sequence[Cells], names: Sequence[str], view: View) -> RenderableType:
    right = tuple(place for place, name in enumerate(names) if name not in _WORDS)
    grid = table(*(view.texts(f"column_{name}") for name in names), right=right)
    for row in rows:
        grid.add_texts(*(row.get(name, "") for name in names))
    return grid


def _block(cells: Cells, names: Sequence[str], view: View) -> list[RenderableType]:
    rows = [(view.texts(f"column_{name}"), cells[name]) for name in names if cells.get(name)]
    return [plain(cells["model"], "bold"), Padding(labelled(rows), (0, 0, 0, 2))]


def _legend(comparison: Comparison, names: Sequence[str], view: View) -> list[RenderableType]:
    """What the columns mean."""
    counts = {row.result.request.workload.sequences for row in comparison.rows if row.result}
    if not counts:
        return []
    keys = [name for name in ("growing", "state", "cross", "per_gpu") if name in names]
    rows = [(view.texts(f"column_{key}"), view.texts(f"compare_{key}")) for key in keys]
    sequences = max(counts)
    if sequences > 1:
        rows.append((view.texts("column_total"), view.texts("compare_total", sequences=f"{sequences:,}")))
    return ["", labelled(rows)]


def _splits(comparison: Comparison, view: View) -> list[RenderableType]:
    """The ratio of each further model as factors, one a line, where it has any."""
    first, *others = comparison.rows
    blocks = [block for row in others if (block := _split(row, first, view))]
    if not blocks:
        return []
    title = plain(view.texts("compare_why", first=row_name(first, view)), "bold")
    parts: list[RenderableType] = ["", title, plain(view.texts("compare_factors"))]
    return [*parts, *(part for block in blocks for part in ("", *block))]


def _split(row: ComparisonRow, first: ComparisonRow, view: View) -> list[RenderableType]:
    texts, name = view.texts, row_name(row, view)
    if row.growing_ratio == 0:
        return [plain(texts("compare_none", model=name))]
    if row.axes is None or first.axes is None or row.axes_to_first is None:
        return []
    own, base, over = row.axes, first.axes, row.axes_to_first
    lines = [
        (over.plain, texts("axis_plain", own=view.size(own.plain), first=view.size(base.plain))),
        (over.entry, texts("axis_entry", own=share_text(own.entry), first=share_text(base.entry))),
        (over.layers, texts("axis_layers", own=share_text(own.layers), first=share_text(base.layers))),
        (over.held, texts("axis_held", own=share_text(own.held), first=share_text(base.held))),
    ]
    if own.engine != 1 or base.engine != 1:
        shares = {"own": share_text(own.engine), "first": share_text(base.engine)}
        lines.append((over.engine, texts("axis_engine", **shares)))
    title = plain(texts("compare_split", model=name, ratio=ratio_text(row.growing_ratio)))
    rows = [(f"× {ratio_text(factor)}", text) for factor, text in lines]
    return [title, Padding(labelled(rows), (0, 0, 0, 2))]
