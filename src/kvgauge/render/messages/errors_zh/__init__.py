"""Chinese for error messages and hints, which are written in English where they are raised.

A table row is an English skeleton, the message with its variable parts as holes, and the Chinese with the
same holes. ``{0}`` holds what is shown as it is; ``{why}`` a phrase that must be in the tables too, else the
row does not fit; ``{where?}`` a phrase or anything else; ``{names+}`` names joined by "or".

Of the rows that fit, the one that knows most of the message is taken. Matching is a walk from left to right:
the text between two holes is looked for once, and never again, so hostile text costs little more than other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from kvgauge.render.messages.errors_zh import (
    engines,
    files,
    fit,
    foreign,
    gguf,
    hardware,
    lab,
    learn,
    llamacpp,
    plan,
    ranks,
    readers,
    reasons,
    replay,
    request,
    schemes,
    sglang,
    sources,
    splits,
    tensorrt_llm,
    vllm,
    web,
    weights,
    what_if,
)

TABLES: tuple[Mapping[str, str], ...] = (
    request.TABLE,
    engines.TABLE,
    vllm.TABLE,
    fit.TABLE,
    plan.TABLE,
    sglang.TABLE,
    tensorrt_llm.TABLE,
    readers.TABLE,
    reasons.TABLE,
    weights.TABLE,
    schemes.TABLE,
    what_if.TABLE,
    ranks.TABLE,
    gguf.TABLE,
    hardware.TABLE,
    lab.TABLE,
    learn.TABLE,
    llamacpp.TABLE,
    sources.TABLE,
    splits.TABLE,
    files.TABLE,
    replay.TABLE,
    foreign.TABLE,
    web.TABLE,
)
#: Phrases nest no deeper.
MAX_DEPTH = 3

HOLE = re.compile(r"\{(\w+[?+]?)\}", re.ASCII)
_WIDE = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")
_MORE = re.compile(r" and (\d{1,9}) more", re.ASCII)


class Row(NamedTuple):
    """A skeleton taken apart: ``literals`` stand around and between ``holes``."""

    literals: tuple[str, ...]
    holes: tuple[str, ...]
    chinese: str


class Filled(NamedTuple):
    """What stands for an English text, and how many letters of that text are in rows of the tables."""

    known: int
    text: str
    is_phrase: bool = True


def chinese(text: str) -> str:
    """Return a message or hint in Chinese, or as it is where no row fits.

    >>> chinese("num_layers has 3 entries for 4 blocks")
    'num_layers 有 3 项，而模型有 4 个块'
    """
    return _translated(text) or text


def note_value(text: str) -> str:
    """Return a value of a note in Chinese where it is a phrase, or a list of phrases.

    >>> note_value("recurrent in fp32, conv in bf16")
    '循环状态（fp32）、卷积（bf16）'
    """
    parts = [_translated(part) for part in text.split(", ")]
    return "、".join(part for part in parts if part) if all(parts) else text


def _translated(text: str) -> str | None:
    best = _best(text, 0)
    return None if best is None else best.text


@lru_cache(maxsize=1)
def _rows() -> tuple[Row, ...]:
    return tuple(_row(english, text) for table in TABLES for english, text in table.items())


def _row(english: str, text: str) -> Row:
    parts = HOLE.split(english)
    return Row(tuple(parts[::2]), tuple(parts[1::2]), text)


@lru_cache(maxsize=1024)
def _best(text: str, depth: int) -> Filled | None:
    """Return the row that leaves the least of a text as it is, filled."""
    fitting = (_filled(row, text, depth) for row in _rows())
    return max((filled for filled in fitting if filled), key=lambda filled: filled.known, default=None)


def _filled(row: Row, text: str, depth: int) -> Filled | None:
    found = held_by(row.literals, text)
    if found is None:
        return None
    known = sum(char.isalpha() for literal in row.literals for char in literal)
    values: dict[str, Filled] = {}
    for hole, part in zip(row.holes, found, strict=True):
        value = _value(hole, part, depth)
        if value is None:
            return None
        known += value.known
        values[hole] = value
    return Filled(known, _joined(HOLE.split(row.chinese), values))


def _joined(parts: list[str], values: Mapping[str, Filled]) -> str:
    """Join the parts of a template; the blanks that set off letters go where a Chinese phrase stands."""
    text = parts[0]
    for hole, after in zip(parts[1::2], parts[2::2], strict=True):
        value = values[hole]
        begins, ends = (value.is_phrase and _WIDE.match(value.text[i]) for i in (0, -1))
        text = (text.rstrip(" ") if begins else text) + value.text + (after.lstrip(" ") if ends else after)
    return text


def _value(hole: str, text: str, depth: int) -> Filled | None:
    """Return what to put in a hole; None where a phrase is wanted and there is none."""
    if hole.isdecimal():
        return Filled(0, text, is_phrase=False)
    if hole.endswith("+"):
        names = _MORE.sub(r" 等（另有 \1 个）", text.replace(" or ", " 或 "))
        return Filled(0, names, is_phrase=False)
    phrase = _best(text, depth + 1) if depth < MAX_DEPTH else None
    return Filled(0, text, is_phrase=False) if phrase is None and hole.endswith("?") else phrase


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
