"""Break prose into lines by the cells it takes, right for Chinese as for English.

Chinese has no spaces: a line may end between any two of its characters, save before closing punctuation and
after an opening one. Latin words stay whole, and a number stays with its unit.
"""

from __future__ import annotations

import re

from rich.cells import cell_len

_OPENING = frozenset("（《〈「『【〔［｛“‘([{")
_CLOSING = frozenset("、。，．；：！？）》〉」』】〕］｝”’…,.;:!?)]}%％")
#: A line of more characters a cell than this is one of combining marks alone: it is cut early.
_MAX_MARKS = 4
_UNITS = "[kKMGT]i?B|B|%|tokens?|sequences?|layers?|heads?|GPUs?|ranks?|replicas?|bytes?|entries|names?|rows?"
#: The place between a number and its unit, or a word and its number: 4.50 GiB, −45 %, 48 层, tp 4, GPU 3.
_BEFORE_UNIT = (
    rf"(?<=\d)( ?)(?=(?:{_UNITS})(?![A-Za-z])|个|条|层|字节|倍|行|头|张|份|项|级|种|次|列|位|合)"
    r"|(?<=(?<![A-Za-z])[tpd]p)( )(?=\d)|(?<=(?<![A-Za-z])dcp)( )(?=\d)|(?<=GPU)( )(?=\d)"
)


def wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, none of more than ``width`` cells; what is left out is space at breaks.

    >>> wrap("每 token 占用 144 KiB，共 36 层。", 12)
    ['每 token 占', '用 144 KiB，', '共 36 层。']
    """
    return [line for part in text.split("\n") for line in _wrap_part(part, max(2, width))]


def _wrap_part(text: str, width: int) -> list[str]:
    if not _exceeds(text, width):
        return [text.rstrip()]
    lines: list[str] = []
    line = ""
    for piece in _pieces(text):
        if line.strip() and _exceeds(line + piece, width):
            lines.append(line.rstrip())
            line = ""
        line += piece
        while _exceeds(line, width):
            place = _cut(line, width)
            lines.append(line[:place].rstrip())
            line = line[place:].lstrip()
    return [*lines, line.rstrip()] if line.strip() else lines


def _exceeds(text: str, width: int) -> bool:
    text = text.rstrip()
    return len(text) > _MAX_MARKS * width or cell_len(text) > width


def _pieces(text: str) -> list[str]:
    """Split where a line may end; spaces stay with what they follow."""
    inside = {place for found in re.finditer(_BEFORE_UNIT, text) for place in found.span()}
    places = [n for n in range(1, len(text)) if n not in inside and _may_break(text[n - 1], text[n])]
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def _may_break(before: str, after: str) -> bool:
    """Whether a line may end between two characters."""
    if after.isspace() or after in _CLOSING or before in _OPENING:
        return False
    return before.isspace() or 2 in (cell_len(before), cell_len(after))


def _cut(line: str, width: int) -> int:
    """Return where to cut what is wider than a line: after a slash, other marks, else where it is full."""
    indent = len(line) - len(line.lstrip())
    full = min(len(line), _MAX_MARKS * width)
    while full > 1 and cell_len(line[:full]) > width:
        full -= 1
    places = (1 + max(line.rfind(mark, indent + 1, full) for mark in marks) for marks in (" ", "/", "-_.,:="))
    place = next((place for place in places if place), full)
    back = place
    while back > indent and line[back : back + 1] in _CLOSING:
        back -= 1
    return back if back > indent else place
