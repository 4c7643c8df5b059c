"""The answer of ``fit`` as text: verdict, pool, what is the most that fits, the command to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding

from kvgauge.render.fit_facts import (
    GROUP_KEYS,
    fit_headline,
    fit_lines,
    fit_load_rows,
    launch_lines,
    launch_title,
    pool_parts,
    pool_rows,
)
from kvgauge.render.size import draw_bar
from kvgauge.render.size_facts import Pairs
from kvgauge.render.view import View, labelled, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.fit_result import FitResult


def draw_fit(result: FitResult, view: View) -> str:
    """Return the whole answer."""
    parts: list[RenderableType] = [
        plain(fit_headline(result, view), "bold"),
        labelled(_without_repeats(fit_lines(result, view))),
        "",
        *draw_bar(pool_parts(result, view), view),
    ]
    if result.pool.groups:
        grid = table(*(view.texts(key) for key in GROUP_KEYS), right=(1, 2, 3, 4))
        for row in pool_rows(result, view):
            grid.add_texts(*row)
        parts += ["", grid]
    if result.launch_command:
        shown = [Padding(plain(line), (0, 0, 0, 2)) for line in launch_lines(result, view)]
        parts += ["", plain(launch_title(result, view), "bold"), *shown]
    load = Padding(labelled(fit_load_rows(result, view)), (0, 0, 0, 2))
    parts += ["", plain(view.texts("assumed_title"), "bold"), load]
    return view.draw(*parts)


def _without_repeats(rows: Pairs) -> Pairs:
    """Return rows with a label that stands above itself left out."""
    before = ("", *(label for label, _ in rows))
    return [("" if label == last else label, text) for last, (label, text) in zip(before, rows, strict=False)]
