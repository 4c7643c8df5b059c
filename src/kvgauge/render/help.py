"""``--help`` as text, in either language, right where characters are two cells wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.padding import Padding

from kvgauge.render.view import View, labelled, plain

if TYPE_CHECKING:
    from rich.console import RenderableType


class HelpSection(NamedTuple):
    """A titled list of (spelling, meaning)."""

    title: str
    rows: Sequence[tuple[str, str]]


def draw_help(usage: str, about: str, sections: Sequence[HelpSection], view: View) -> str:
    """Return the usage line, what it is for, and the sections."""
    parts: list[RenderableType] = [plain(usage, "bold"), "", plain(about)]
    for section in sections:
        if section.rows:
            parts += ["", plain(section.title, "bold"), *_rows(section, view)]
    return view.draw(*parts)


def _rows(section: HelpSection, view: View) -> list[RenderableType]:
    """A column beside the spellings; below them where the terminal is narrow."""
    if not view.is_narrow:
        return [Padding(labelled(list(section.rows)), (0, 0, 0, 2))]
    lines: list[RenderableType] = []
    for spelling, meaning in section.rows:
        lines += [Padding(plain(spelling, "bold"), (0, 0, 0, 2)), Padding(plain(meaning), (0, 0, 0, 6))]
    return lines
