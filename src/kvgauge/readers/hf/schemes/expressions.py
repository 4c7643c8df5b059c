"""Regular expressions of untrusted files, matched in polynomial time.

Python's own engine backtracks, so one line of a config could hold it for hours. This one carries the set of
positions that a part of the pattern can end at: m parts over n characters cost at most m x n x n. It knows
what module patterns use: literals, classes, groups, alternation, repetition, anchors, lookahead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kvgauge.errors import FeatureUnsupportedError, InvalidFieldError
from kvgauge.readers.values import short

MAX_PATTERN = 500
MAX_DEPTH = 20
MAX_REPEAT = 64
_MAX_GAPS = 2
_SHORTHANDS = {"d": str.isdecimal, "w": lambda c: c.isalnum() or c == "_", "s": str.isspace}
_LITERAL_ESCAPES = frozenset(".^$*+?{}[]()|\\/-_:,= \"'#&~@%<>!")


class Node:
    """A part of a pattern: from positions where it may begin to positions where it may end."""

    def ends(self, text: str, starts: frozenset[int]) -> frozenset[int]:
        """Return where the part ends when it begins at one of ``starts``."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Char(Node):
    chars: frozenset[str]
    shorthands: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False
    anything: bool = False

    def ends(self, text: str, starts: frozenset[int]) -> frozenset[int]:
        return frozenset(i + 1 for i in starts if i < len(text) and self._holds(text[i]))

    def _holds(self, char: str) -> bool:
        if self.anything:
            return char != "\n"
        found = (
            char in self.chars
            or any(first <= char <= last for first, last in self.ranges)
            or any(_shorthand(word, char) for word in self.shorthands)
        )
        return found is not self.negated


def _shorthand(word: str, char: str) -> bool:
    found = bool(_SHORTHANDS[word.lower()](char))
    return found is not word.isupper()


@dataclass(frozen=True, slots=True)
class _Sequence(Node):
    parts: tuple[Node, ...]

    def ends(self, text: str, starts: frozenset[int]) -> frozenset[int]:
        for part in self.parts:
            if not starts:
                break
            starts = part.ends(text, starts)
        return starts


@dataclass(frozen=True, slots=True)
class _Choice(Node):
    parts: tuple[Node, ...]

    def ends(self, text: str, starts: frozenset[int]) -> frozenset[int]:
        return frozenset().union(*(part.ends(text, starts) for part in self.parts))


@dataclass(frozen=True, slots=True)
class _Repeat(Node):
    part: Node
    low: int
    high: int | None

    def ends(self, text: str, starts: frozenset[int]) -> frozenset[int]:
        for _ in range(self.low):
            starts = self.part.ends(text, starts)
        reached = new = starts
        left = len(text) + 1 if self.high is None else self.high - self.low
        while new and left:
            new = self.part.ends(text, new) - reached
            reached |= new
            left -= 1
        return reached


@dataclass(frozen=True, slots=True)
class _Anchor(Node):
    at_end: bool

    def ends(self, text: str, starts: frozenset[int]) -> frozenset[int]:
        return starts & {len(text) if self.at_end else 0}


@dataclass(frozen=True, slots=True)
class _Ahead(Node):
    part: Node
    negated: bool

    def ends(self, text: str, starts: frozenset[int]) -> frozenset[int]:
        return frozenset(i for i in starts if bool(self.part.ends(text, frozenset({i}))) is not self.negated)


def matches(pattern: str, text: str, *, anywhere: bool = False) -> bool:
    r"""Whether a pattern fits the beginning of a text, as ``re.match`` says, or any part of it.

    Raises:
        InvalidFieldError: it is no regular expression, or a very long one.
        FeatureUnsupportedError: it uses something that is not known here.

    >>> matches(r".*mlp\.(gate|up)_proj", "model.layers.0.mlp.up_proj")
    True
    >>> matches(r"(a+)+$", "a" * 200 + "b")
    False
    """
    if is_quick(pattern):
        found = re.search(pattern, text) if anywhere else re.match(pattern, text)
        return found is not None
    starts = frozenset(range(len(text) + 1)) if anywhere else frozenset({0})
    return bool(parsed(pattern).ends(text, starts))


_ATOM = r"(?:[\w-]|\\[.d-]|\.|\[[\w-]+\])"
_QUICK = re.compile(rf"\^?(?:{_ATOM}[*+?]?|\((?:\?:)?(?:{_ATOM}|\|)+\))*\$?", re.ASCII)


@lru_cache(maxsize=512)
def is_quick(pattern: str) -> bool:
    """Whether Python's engine is quick too: nothing nested is repeated, and little is repeated at all."""
    gaps = pattern.count("*") + pattern.count("+")
    if len(pattern) > MAX_PATTERN or gaps > _MAX_GAPS or not _QUICK.fullmatch(pattern):
        return False
    try:
        re.compile(pattern)
    except re.error:  # a range that runs backwards
        return False
    return True


@lru_cache(maxsize=512)
def parsed(pattern: str) -> Node:
    """Return the tree of a pattern."""
    if len(pattern) > MAX_PATTERN:
        raise InvalidFieldError(
            f"a pattern of module names has {len(pattern)} characters, more than {MAX_PATTERN}",
            field="quantization_config",
        )
    parser = _Parser(pattern)
    node = parser.choice(0)
    if parser.at < len(pattern):
        raise parser.invalid()
    return node


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def invalid(self) -> InvalidFieldError:
        return InvalidFieldError(
            f"{short(self.pattern)} is no pattern of module names", field="quantization_config"
        )

    def unknown(self) -> FeatureUnsupportedError:
        return FeatureUnsupportedError(
            f"the pattern {short(self.pattern)} uses an expression that is not known",
            hint="give the safetensors files or their index, which say the bytes themselves",
            field="quantization_config",
        )

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise self.invalid()
        self.at += 1
        return char

    def choice(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.invalid()
        options = [self._sequence(depth)]
        while self._peek() == "|":
            self.at += 1
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else _Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom(depth)))
        return _Sequence(tuple(parts))

    def _repeated(self, part: Node) -> Node:
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._peek())
        if bounds is not None:
            self.at += 1
        elif self._peek() == "{":
            bounds = self._braces()
        if bounds is None:
            return part
        if self._peek() == "?":  # a lazy repetition matches the same texts
            self.at += 1
        if self._peek() and self._peek() in "*+{":
            raise self.invalid()
        return _Repeat(part, *bounds)

    def _braces(self) -> tuple[int, int | None]:
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, self.at)].partition(",")
        numbers = [low, *([high] if high else [])]
        if end < 0 or not all(n.isdecimal() and len(n) < 4 and int(n) <= MAX_REPEAT for n in numbers):
            raise self.unknown()
        self.at = end + 1
        top = (int(high) if high else None) if comma else int(low)
        if top is not None and top < int(low):
            raise self.invalid()
        return int(low), top

    def _atom(self, depth: int) -> Node:
        char = self._take()
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == ".":
            return _Char(frozenset(), anything=True)
        if char in "^$":
            return _Anchor(char == "$")
        if char == "\\":
            return self._escape()
        if char in "*+?{":
            raise self.invalid()
        return _Char(frozenset(char))

    def _escape(self) -> _Char:
        char = self._take()
        if char.lower() in _SHORTHANDS:
            return _Char(frozenset(), shorthands=(char,))
        if char not in _LITERAL_ESCAPES:
            raise self.unknown()
        return _Char(frozenset(char))

    def _group(self, depth: int) -> Node:
        ahead = None
        if self._peek() == "?":
            kind = self.pattern[self.at : self.at + 2]
            if kind not in ("?:", "?=", "?!"):
                raise self.unknown()
            self.at += 2
            ahead = None if kind == "?:" else kind == "?!"
        inner = self.choice(depth + 1)
        if self._take() != ")":
            raise self.invalid()
        return inner if ahead is None else _Ahead(inner, ahead)

    def _class(self) -> Node:
        negated = self._peek() == "^"
        self.at += negated
        chars: set[str] = set()
        words: list[str] = []
        ranges: list[tuple[str, str]] = []
        while self._peek() != "]" or not (chars or words or ranges):
            char = self._take()
            if char == "\\":
                escaped = self._escape()
                words.extend(escaped.shorthands)
                chars |= escaped.chars
            elif self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                ranges.append((char, self._take()))
            else:
                chars.add(char)
        self.at += 1
        return _Char(frozenset(chars), tuple(words), tuple(ranges), negated)
