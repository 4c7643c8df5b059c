"""Chinese for error messages and hints, which are written in English where they are raised.

A table row is an English skeleton, the message with its variable parts as holes, and the Chinese with the
same holes. ``{0}`` holds what is shown as it is; ``{why}`` a phrase that must be in the tables too, else the
row does not fit; ``{where?}`` a phrase or anything else; ``{names+}`` names joined by "or".

A message is held against the rows with the longest literal text first. Matching is a walk from left to right
(the text between two holes is looked for once, and never again), so hostile text costs no more than other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from kvgauge.render.messages.errors_zh import engines, files, gguf, readers, request, sources

TABLES: tuple[Mapping[str, str], ...] = (
    request.TABLE,
    engines.TABLE,
    readers.TABLE,
    gguf.TABLE,
    sources.TABLE,
    files.TABLE,
)
#: Phrases nest no deeper.
MAX_DEPTH = 4

HOLE = re.compile(r"\{(\w+[?+]?)\}", re.ASCII)
_MORE = re.compile(r" and (\d{1,9}) more", re.ASCII)


class Row(NamedTuple):
    """A skeleton taken apart: ``literals`` stand around and between ``holes``."""

    literals: tuple[str, ...]
    holes: tuple[str, ...]
    chinese: str


def chinese(text: str) -> str:
    """Return a message or hint in Chinese, or as it is where no row fits.

    >>> chinese("num_layers has 3 entries for 4 blocks")
    'num_layers 有 3 项，而模型有 4 个块'
    """
    return _translated(text, 0) or text


def note_value(text: str) -> str:
    """Return a value of a note in Chinese where it is a phrase, or a list of phrases.

    >>> note_value("recurrent in fp32, conv in bf16")
    '循环状态（fp32）、卷积（bf16）'
    """
    whole = _translated(text, 0)
    if whole is not None:
        return whole
    parts = [_translated(part, 0) for part in text.split(", ")]
    return "、".join(part for part in parts if part) if all(parts) else text


@lru_cache(maxsize=1)
def _rows() -> tuple[Row, ...]:
    """All rows, those with the longest literal text first."""
    rows = [_row(english, text) for english, text in chain.from_iterable(t.items() for t in TABLES)]
    return tuple(sorted(rows, key=lambda row: -sum(map(len, row.literals))))


def _row(english: str, text: str) -> Row:
    parts = HOLE.split(english)
    return Row(tuple(parts[::2]), tuple(parts[1::2]), text)


@lru_cache(maxsize=256)
def _translated(text: str, depth: int) -> str | None:
    for row in _rows():
        found = held_by(row.literals, text)
        values = None if found is None else _values(row, found, depth)
        if values is not None:
            return HOLE.sub(lambda hole: values[hole[1]], row.chinese)  # noqa: B023 - called at once
    return None


def held_by(literals: tuple[str, ...], text: str) -> list[str] | None:
    """Return what stands in the holes between literals, leftmost first, or None where the text does not fit.

    >>> held_by(("", " is ", ""), "a is b is c")
    ['a', 'b is c']
    """
    if len(literals) == 1:
        return [] if text == literals[0] else None
    first, *middle, last = literals
    end = len(text) - len(last)
    if end < len(first) or not text.startswith(first) or not text.endswith(last):
        return None
    start, found = len(first), []
    for literal in middle:
        at = text.find(literal, start, end)
        if at < 0:
            return None
        found.append(text[start:at])
        start = at + len(literal)
    return [*found, text[start:end]]


def _values(row: Row, found: list[str], depth: int) -> dict[str, str] | None:
    values: dict[str, str] = {}
    for hole, text in zip(row.holes, found, strict=True):
        value = _value(hole, text, depth)
        if value is None:
            return None
        values[hole] = value
    return values


def _value(hole: str, text: str, depth: int) -> str | None:
    """Return what to put in a hole; None where a phrase is wanted and there is none."""
    if hole.isdecimal():
        return text
    if hole.endswith("+"):
        return _MORE.sub(r" 等（另有 \1 个）", text.replace(" or ", " 或 "))
    phrase = _translated(text, depth + 1) if depth < MAX_DEPTH else None
    return text if phrase is None and hole.endswith("?") else phrase
