"""Other ways to divide serving, drawn: figures with their formula, then what they rest on."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from kvgauge.render.clean import clean
from kvgauge.render.numbers import ratio_text
from kvgauge.render.sheet import TableOf
from kvgauge.render.size_facts import load_text, tokens_text
from kvgauge.render.view import plain, table
from kvgauge.units import format_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.render.view import View
    from kvgauge.splits import Assumption, Figure, Split, SplitAnswer

_SECONDS = ((1, "s"), (Fraction(1, 1000), "ms"), (Fraction(1, 10**6), "µs"))
_FIGURE_KEYS = ("column_figure", "column_value", "column_formula")
_ASSUMPTION_KEYS = ("column_assumption", "column_value", "column_grade", "column_source")


def seconds_text(seconds: Fraction) -> str:
    """Return a time with three figures.

    >>> seconds_text(Fraction(767, 10000))
    '76.7 ms'
    """
    step, unit = next(((s, u) for s, u in _SECONDS if seconds >= s), _SECONDS[-1])
    return f"{float(seconds / step):.3g} {unit}"


def figure_text(figure: Figure, view: View) -> str:
    """Return the value of a figure with its unit, and whether it is the least or the most possible."""
    value = Fraction(figure.value)
    shown = {
        "bytes": lambda: view.size(value),
        "seconds": lambda: seconds_text(value),
        "per_second": lambda: f"{float(value):.3g}",
        "ratio": lambda: ratio_text(value),
    }.get(figure.unit, lambda: f"{int(value):,}")()
    key = {"least": "split_at_least", "most": "split_at_most"}.get(figure.bound)
    return view.texts(key, value=shown) if key else shown


def _assumed_value(assumption: Assumption, view: View) -> str:
    """Return a size in the units of the view; a rate as links and memories are sold, in decimal units."""
    value = Fraction(assumption.value or 0)
    if assumption.unit == "bytes":
        return view.size(value)
    if "compute" in assumption.code:
        return f"{float(value) / 1e12:,.0f} TFLOPS"
    return f"{format_bytes(value, 'gb')}/s"


def split_title(split: Split, answer: SplitAnswer, view: View) -> str:
    """Return what a split divides, under which load."""
    load = answer.sized.request.workload
    return view.texts(
        f"split.{split.kind}",
        prefix=tokens_text(load.shared_prefix_tokens, view),
        tokens=tokens_text(load.context_tokens, view),
        prompt=tokens_text(answer.prompt_tokens, view),
        load=load_text(load.sequences, load.context_tokens, view),
        card=clean(answer.attention_card.name),
        sram=clean(answer.sram_card.name),
    )


def split_tables(split: Split, view: View) -> tuple[TableOf, TableOf]:
    """Return figures and assumptions as tables."""
    texts = view.texts
    figures = tuple(
        (texts(f"figure.{figure.code}"), figure_text(figure, view), figure.formula)
        for figure in split.figures
    )
    assumptions = tuple(
        (
            texts(f"assumption.{assumption.code}"),
            _assumed_value(assumption, view),
            assumption.grade,
            clean(assumption.source),
        )
        for assumption in split.assumptions
        if assumption.value is not None
    )
    return (
        TableOf(tuple(texts(key) for key in _FIGURE_KEYS), figures, frozenset({1}), frozenset({2})),
        TableOf(tuple(texts(key) for key in _ASSUMPTION_KEYS), assumptions, frozenset({1})),
    )


def split_ways(split: Split, view: View) -> str:
    """Return the ways of working that the figures suppose, as one line; empty where there are none."""
    said = [view.texts(f"assumption.{one.code}") for one in split.assumptions if one.value is None]
    return view.texts("split_ways", ways=view.texts("split_join").join(said)) if said else ""


def split_lines(split: Split, view: View) -> list[str]:
    """Return what stands around the tables: what takes longest, and what is supposed."""
    longest = view.texts("split_binds", name=view.texts(f"figure.{split.binds}")) if split.binds else ""
    return [line for line in (longest, split_ways(split, view)) if line]


def split_blocks(answer: SplitAnswer, view: View) -> list[str | TableOf]:
    """Return the splits as lines and tables, to be written in a markup."""
    blocks: list[str | TableOf] = []
    for split in answer.splits:
        tables = [found for found in split_tables(split, view) if found.rows]
        blocks += [split_title(split, answer, view), *tables, *split_lines(split, view)]
    return blocks


def draw_splits(answer: SplitAnswer, view: View) -> list[RenderableType]:
    """Return the drawn splits, one below the other."""
    parts: list[RenderableType] = []
    for split in answer.splits:
        parts += ["", plain(split_title(split, answer, view), "bold")]
        for found in split_tables(split, view):
            grid = table(*found.columns, right=tuple(found.right))
            for row in found.rows:
                grid.add_texts(*row)
            parts += ["", grid] if found.rows else []
        for line in split_lines(split, view):
            parts += ["", plain(line)]
    return parts
