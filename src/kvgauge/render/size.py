"""The answer of ``size`` as text: total, growth, GPUs, layers, and the load it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from kvgauge.render.bar import Part, segments
from kvgauge.render.numbers import share_text
from kvgauge.render.size_facts import (
    facts,
    group_table,
    headline,
    load_rows,
    model_name,
    share_of_kinds,
    weight_rows,
)
from kvgauge.render.view import View, labelled, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.cache import CacheAnswer
    from kvgauge.size_result import SizeResult
    from kvgauge.weight_answer import WeightAnswer

_BAR_CELLS = 60


def draw_size(result: SizeResult, view: View) -> str:
    """Return the whole answer."""
    first = plain(headline(result, view), "bold")
    lines = facts(result, view)
    if not lines:
        return view.draw(first)
    parts: list[RenderableType] = [first, labelled(lines)]
    parts += ["", _groups(result.cache, view)] if result.cache.family != "none" else []
    parts += ["", _weights(result.weights, view)] if result.weights is not None else []
    bar = _bar(result, view)
    parts += [Text(), *bar] if bar else []
    if result.weights is not None and result.weights.what_if is not None:
        from kvgauge.render.what_if import draw_what_if  # noqa: PLC0415 - few ask

        parts += draw_what_if(result.weights.what_if, view)
    load = Padding(labelled(load_rows(result, view)), (0, 0, 0, 2))
    parts += ["", plain(view.texts("assumed_title"), "bold"), load, "", _pointer(result, view)]
    return view.draw(*parts)


def _pointer(result: SizeResult, view: View) -> RenderableType:
    """Say how a number is opened."""
    is_stdin = result.model.raw.source == "stdin"
    return plain(view.texts("size_pointer", model="-" if is_stdin else model_name(result, view)), "dim")


def _groups(cache: CacheAnswer, view: View) -> RenderableType:
    keys, rows = group_table(cache, view, formulas=not view.is_narrow)
    right = tuple(n for n, key in enumerate(keys) if key not in ("column_cache", "column_formula"))
    grid = table(*(view.texts(key) for key in keys), right=right)
    for row in rows:
        grid.add_texts(*row)
    return grid


def _weights(weights: WeightAnswer, view: View) -> RenderableType:
    names = [view.texts(f"column_{name}") for name in ("weights", "parameters", "stored", "bytes")]
    grid = table(*names, right=(1, 3))
    for row in weight_rows(weights, view):
        grid.add_texts(*row)
    return grid


def _bar(result: SizeResult, view: View) -> list[RenderableType]:
    """One bar over the weights and the kinds of cache, where there is more than one."""
    parts = share_of_kinds(result.cache, view)
    if result.weights is not None:
        parts.insert(0, (view.texts("weights_label"), result.weights.total_bytes))
    return draw_bar(parts, view) if len(parts) > 1 else []


def draw_bar(parts: list[tuple[str, int]], view: View) -> list[RenderableType]:
    """Return a bar over parts of bytes, and its legend."""
    if not parts:
        return []
    pieces = segments([Part(*part) for part in parts], min(_BAR_CELLS, view.width))
    bar = Text.assemble(*((piece.pattern * piece.cells, piece.style) for piece in pieces))
    legend = table("", "", "", "", right=(2, 3))
    legend.show_header = False
    for piece in pieces:
        share = share_text(piece.share)
        legend.add_texts(
            Text(piece.pattern, piece.style), piece.part.label, view.size(piece.part.size_bytes), share
        )
    return [bar, legend]
