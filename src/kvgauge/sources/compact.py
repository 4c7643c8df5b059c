"""Module names of quantisation lists, hundreds in one string: ``layers.{0-2,5}.mlp`` names four modules.

A published config may list every module that a scheme leaves out. The catalogue keeps such lists in this
form; no module name holds a brace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

_NUMBER = re.compile(r"(?<![0-9A-Za-z_])\d+(?![0-9A-Za-z_])")
_RANGES = re.compile(r"\{([0-9,-]+)\}")


def compact_names(names: Iterable[str]) -> list[str]:
    """Return sorted strings that ``expand_names`` turns back into ``names``.

    >>> compact_names(["layers.0.mlp", "layers.1.mlp", "layers.3.mlp", "lm_head"])
    ['layers.{0-1,3}.mlp', 'lm_head']
    """
    numbers_of: dict[str, set[tuple[int, ...]]] = {}
    for name in names:
        if _RANGES.search(name) or any(len(n) > 1 and n[0] == "0" for n in _NUMBER.findall(name)):
            numbers_of.setdefault(name, set()).add(())
            continue
        template = _NUMBER.sub("\0", name)
        numbers_of.setdefault(template, set()).add(tuple(int(n) for n in _NUMBER.findall(name)))
    result: list[str] = []
    for template, rows in numbers_of.items():
        result.extend(_fill(template, columns) for columns in _boxes(rows))
    return sorted(result)


def expand_names(compact: Iterable[str]) -> list[str]:
    """Return every name that compact strings stand for.

    >>> expand_names(["layers.{0-1,3}.mlp"])
    ['layers.0.mlp', 'layers.1.mlp', 'layers.3.mlp']
    """
    names: list[str] = []
    for text in compact:
        parts = _RANGES.split(text)
        choices = [_numbers(part) if i % 2 else [part] for i, part in enumerate(parts)]
        names.extend("".join(choice) for choice in product(*choices))
    return names


def _boxes(rows: set[tuple[int, ...]]) -> list[tuple[tuple[int, ...], ...]]:
    """Cover rows of numbers with products of columns, exactly: rows that share their tail go together."""
    if not next(iter(rows)):
        return [()]
    heads_of: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    tails_of: dict[int, set[tuple[int, ...]]] = {}
    for head, *tail in rows:
        tails_of.setdefault(head, set()).add(tuple(tail))
    for head in sorted(tails_of):
        key = tuple(sorted(tails_of[head]))
        heads_of.setdefault(key, []).append(head)
    return [(tuple(heads), *box) for tails, heads in heads_of.items() for box in _boxes(set(tails))]


def _fill(template: str, columns: tuple[tuple[int, ...], ...]) -> str:
    parts = template.split("\0")
    filled = [parts[0]]
    for column, part in zip(columns, parts[1:], strict=True):
        filled += (_ranges(column), part)
    return "".join(filled)


def _ranges(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return str(numbers[0])
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return "{" + ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans) + "}"


def _numbers(ranges: str) -> list[str]:
    numbers: list[str] = []
    for span in ranges.split(","):
        first, _, last = span.partition("-")
        numbers.extend(str(n) for n in range(int(first), int(last or first) + 1))
    return numbers
