"""A quantisation that was asked for: what to keep, what that costs, and the commands that make it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.padding import Padding

from kvgauge.render.clean import clean
from kvgauge.render.numbers import count_text
from kvgauge.render.view import View, plain, table
from kvgauge.texts import Words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.quantiser_commands import Command
    from kvgauge.weight_answer import WhatIf

_INDENT = 2


def advice_rows(asked: WhatIf, view: View) -> list[tuple[str, ...]]:
    """Return part, parameters, what the scheme does, what keeping costs, and why."""
    words = Words(view.texts.lang)
    return [
        (
            view.texts(f"part.{row.part.value}"),
            count_text(row.num_parameters),
            view.texts("what_if_kept" if row.is_kept else "what_if_quantised"),
            view.size(row.keeping_costs_bytes),
            words.text("weights_advice", row.part.value),
        )
        for row in asked.advice
    ]


def draw_what_if(asked: WhatIf, view: View) -> list[RenderableType]:
    """Return the table of advice and the commands."""
    parts: list[RenderableType] = []
    rows = advice_rows(asked, view)
    if rows:
        names = ["part", "parameters", "here", "keeping", *([] if view.is_narrow else ["why"])]
        grid = table(*(view.texts(f"column_{name}") for name in names), right=(1, 3))
        for row in rows:
            grid.add_texts(*row[: len(names)])
        parts += ["", plain(view.texts("what_if_title"), "bold"), grid]
    for command in asked.commands:
        lines = command.text.splitlines()
        if command.language == "sh":
            lines = [piece for line in lines for piece in continued(line, view.width - _INDENT)]
        shown = (Padding(plain(clean(line)), (0, 0, 0, _INDENT)) for line in lines)
        parts += ["", plain(command_title(command, view), "bold"), *shown]
    return parts


def command_title(command: Command, view: View) -> str:
    """Return which tool a command is of, and whether it does just this."""
    return view.texts("what_if_nearest" if command.is_nearest else "what_if_command", tool=command.tool)


def continued(command: str, width: int) -> list[str]:
    r"""Return a shell command as lines that a shell joins again; words are never cut.

    >>> continued("tool --one 1 --two 'a b'", 16)
    ['tool --one 1 \\', "  --two 'a b'"]
    """
    words = [shlex.quote(word) for word in shlex.split(command)]
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) + 3 > width:
            lines[-1] += " \\"
            lines.append("  " + word)
        else:
            lines[-1] += " " + word
    return lines
