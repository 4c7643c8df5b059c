"""How to draw: language, units, width, colour. Draws through rich into a plain string."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kvgauge.units import Units, format_bytes

if TYPE_CHECKING:
    from rich.console import RenderableType

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
            for part in parts:
                console.print(part)
        return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def table(*columns: str, right: tuple[int, ...] = ()) -> Table:
    """Return a table without lines, headings bold; ``right`` columns are aligned to the right."""
    result = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        is_number = number in right
        result.add_column(name, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    return result


def labelled(rows: list[tuple[str, str]]) -> Table:
    """Return label and value pairs, the values wrapped beside their labels."""
    result = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    result.add_column(style="bold", no_wrap=True)
    result.add_column(overflow="fold")
    for label, value in rows:
        result.add_row(label, value)
    return result


def plain(text: str, style: str = "") -> Text:
    """Return text that is shown as it is: no markup in it has a meaning."""
    return Text(text, style=style, overflow="fold")
