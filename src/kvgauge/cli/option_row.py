"""One row of the tables of options."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["text", "count", "flag", "list"]


class OptionRow(NamedTuple):
    """One option.

    Args:
        name: the keyword that commands receive it under.
        flags: its spellings, our own first.
        section: the part of the help it is shown in.
        choices: the words it takes; empty for any.
    """

    name: str
    flags: tuple[str, ...]
    section: str
    kind: Kind = "text"
    metavar: str = "TEXT"
    choices: tuple[str, ...] = ()

    @property
    def takes_value(self) -> bool:
        """Whether the option is followed by a value."""
        return self.kind != "flag"

    @property
    def envvar(self) -> str:
        """The environment variable that sets it."""
        return "KVGAUGE_" + self.flags[0].lstrip("-").replace("-", "_").upper()
