"""The answer of ``plan`` as text: options side by side, each with its command and reasons, the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding

from kvgauge.planning.ranking import layout_text
from kvgauge.render.plan_facts import (
    OPTION_KEYS,
    fit_line,
    option_lines,
    option_name,
    option_rows,
    path_rows,
    plan_headline,
)
from kvgauge.render.splits import draw_splits
from kvgauge.render.view import View, labelled, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.planning.result import PlanResult

_INDENT = (0, 0, 0, 3)
#: Columns of a narrow terminal: place, GPUs, layout, price.
_NARROW = (0, 1, 2, 4)


def draw_plan(result: PlanResult, view: View) -> str:
    """Return the whole answer."""
    parts: list[RenderableType] = [plain(plan_headline(result, view), "bold")]
    if result.options:
        parts += ["", _table(result, view)]
    for place, option in enumerate(result.options, 1):
        title = f"{place}. {option_name(option)}, {layout_text(option.parallelism)}"
        parts += ["", plain(title, "bold"), Padding(labelled(option_lines(option, view)), _INDENT)]
        commands = (option.fit.launch_command, fit_line(option))
        parts += [Padding(plain(command), _INDENT) for command in commands if command]
    parts += ["", plain(view.texts("plan_path_title"), "bold")]
    for number, (question, answer, because) in enumerate(path_rows(result.decision_path, view), 1):
        parts.append(plain(view.texts("plan_step", number=number, question=question, answer=answer)))
        if because:
            parts.append(Padding(plain(because), _INDENT))
    if result.splits is not None:
        parts += draw_splits(result.splits, view)
    return view.draw(*parts)


def _table(result: PlanResult, view: View) -> RenderableType:
    columns = _NARROW if view.is_narrow else tuple(range(len(OPTION_KEYS)))
    right = tuple(place for place, column in enumerate(columns) if column in (4, 5))
    grid = table(*(view.texts(OPTION_KEYS[column]) for column in columns), right=right)
    for row in option_rows(result, view):
        grid.add_texts(*(row[column] for column in columns))
    return grid
