"""How to draw: language, units, width, colour. Draws through rich into a plain string."""

from __future__ import annotations

from fractions import Fraction
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.containers import Lines
from rich.table import Table
from rich.text import Text

from kvgauge.render.wrap import wrap
from kvgauge.units import Units, format_bytes
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from rich.console import JustifyMethod, OverflowMethod, RenderableType

    from kvgauge.render.messages import Texts

#: Below this width, columns that explain are dropped in favour of those that answer.
NARROW_COLUMNS = 72


@dataclass(frozen=True)
class View:
    """How to draw an answer.

    Args:
        width: columns of the terminal.
        color: whether escape sequences may be used; nothing is told by colour alone.
    """

    texts: Texts
    units: Units
    width: int
    color: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether columns must be saved."""
        return self.width < NARROW_COLUMNS

    def size(self, size_bytes: int | Fraction) -> str:
        """Return a size in the units of this view."""
        return format_bytes(size_bytes, self.units)

    def draw(self, *parts: RenderableType) -> str:
        """Return the parts as text, one below the other."""
        console = Console(
            file=StringIO(),
            width=self.width,
            force_terminal=self.color,
            color_system="standard" if self.color else None,
            no_color=not self.color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        with console.capture() as capture:
            console.print(Group(*parts))  # printed on its own, a text would lose how it wraps
        return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


class Prose(Text):
    """Text that breaks into lines as ``wrap`` does; one style for all of it, and no markup."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        """Return the lines; called by rich."""
        if no_wrap:
            return super().wrap(
                console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=True
            )
        lines = Lines(Text(line, self.style) for line in wrap(self.plain, width))
        if justify is not None:
            lines.justify(console, width, justify=justify, overflow="fold")
        for line in lines:
            line.truncate(width, overflow="fold")  # a character of two cells in a column of one
        return lines


class Grid(Table):
    """A table whose cells are prose."""

    def add_texts(self, *cells: str | Text) -> None:
        """Add a row."""
        self.add_row(*(cell if isinstance(cell, Text) else Prose(cell) for cell in cells))


def table(*columns: str, right: tuple[int, ...] = ()) -> Grid:
    """Return a table without lines, headings bold; ``right`` columns are aligned to the right."""
    result = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        is_number = number in right
        justify: JustifyMethod = "right" if is_number else "left"
        result.add_column(Prose(name), justify=justify, no_wrap=is_number, overflow="fold")
    return result


def labelled(rows: list[tuple[str, str]]) -> Grid:
    """Return label and value pairs, the values wrapped beside their labels."""
    result = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    result.add_column(style="bold", no_wrap=True)
    result.add_column(overflow="fold")
    for label, value in rows:
        result.add_texts(label, value)
    return result


def plain(text: str, style: str = "") -> Prose:
    """Return text that is shown as it is: no markup in it has a meaning."""
    return Prose(text, style=style, overflow="fold")
