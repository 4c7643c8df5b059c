"""Tapes of graphs: what each block of an architecture allocates and frees, in order.

``data/llamacpp_graphs.json`` is recorded from the libraries of v0.5.0, which plan small models of shapes
drawn at random without allocating them: what their allocator is asked for, with every size solved for the
sizes of the model and of the context. No size is fitted, and no published model was needed.

``sizes``: bytes of a tensor, a sum of products of symbols (``graph_symbols.py``), with ``Q:`` of packed
rows. ``phrases``: words that often stand together, ``@n`` in later phrases and tapes. ``tapes``: events of
one block or of the start: ``+3`` a tensor of size 3, ``-1`` the newest but one is freed, ``~2`` the third
of the start's tensors is freed, ``<1:4`` the newest but one shrinks to size 4. ``layouts``: a tape for each
of ``blocks``, -1 none. ``graphs``: architecture, what it has and the kinds of its blocks -> ``blocks`` and
the layout of each setting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from kvgauge.data import read_data
from kvgauge.values import dataclass

#: Rows of packed values: 34 bytes hold 32 (q8_0, which stands for every packed type).
PACKED = "Q:"
_PACKED_VALUES, _PACKED_BYTES = 32, 34


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of a tensor: factors and the symbols that each is multiplied by.

    Args:
        packed: the sum counts values of packed rows.
    """

    terms: tuple[tuple[int, tuple[str, ...]], ...]
    packed: bool = False

    def bytes_for(self, of: Mapping[str, int]) -> int:
        """Return the bytes for these sizes."""
        total = 0
        for factor, names in self.terms:
            product = factor
            for name in names:
                product *= of[name]
            total += product
        return total // _PACKED_VALUES * _PACKED_BYTES if self.packed else total

    @property
    def symbols(self) -> frozenset[str]:
        """Names that it depends on."""
        return frozenset(name for _, names in self.terms for name in names)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that the allocator is asked for.

    Args:
        kind: ``+`` new, ``-`` free, ``~`` free one of the start, ``<`` shrink.
        at: which tensor: counted from the newest, for ``~`` from the first.
        size: of a new or shrunk one.
    """

    kind: str
    at: int
    size: int


Tape = tuple[Event, ...]
#: Kind of a block and where it stands -> tape: first F, second S, middle M, last of its kind E, last Z;
#: ``start`` and the kind of the first block: the inputs.
Layout = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class GraphTables:
    """The data file; sizes and tapes as they are spelled, since a graph needs a few of thousands."""

    sizes: Sequence[str]
    phrases: Sequence[str]
    tapes: Sequence[str]
    layouts: Sequence[Sequence[int]]
    graphs: Mapping[str, Mapping[str, object]]


@lru_cache(maxsize=1)
def graph_tables() -> GraphTables:
    """Return the tables; the file is read once."""
    raw = json.loads(read_data("llamacpp_graphs.json"))
    return GraphTables(raw["sizes"], raw["phrases"], raw["tapes"], raw["layouts"], raw["graphs"])


def layout_of(graph: str, setting: str) -> Layout | None:
    """Return the tapes of a graph under a setting, or None where it was not recorded."""
    tables = graph_tables()
    found = tables.graphs.get(graph)
    number = cast("Mapping[str, int]", found["layouts"]).get(setting) if found else None
    if found is None or number is None:
        return None
    blocks = cast("list[str]", found["blocks"])
    return {name: tape for name, tape in zip(blocks, tables.layouts[number], strict=False) if tape >= 0}


@lru_cache(maxsize=256)
def size_of(number: int) -> Size:
    """Return a size of the tables."""
    return parse_size(graph_tables().sizes[number])


@lru_cache(maxsize=256)
def tape_of(number: int) -> Tape:
    """Return a tape of the tables."""
    tables = graph_tables()
    return parse_tape(_spelled(tables.tapes[number], tables.phrases))


def _spelled(text: str, phrases: Sequence[str]) -> str:
    words = (_spelled(phrases[int(w[1:])], phrases) if w[0] == "@" else w for w in text.split())
    return " ".join(words)


def parse_size(text: str) -> Size:
    """Read a size.

    >>> parse_size("4*d*ub-8*o").bytes_for({"d": 64, "ub": 2, "o": 1})
    504
    """
    terms = []
    for part in text.removeprefix(PACKED).replace("-", "+-").split("+"):
        words = part.split("*")
        terms.append((int(words[0]), tuple(words[1:])))
    return Size(tuple(terms), text.startswith(PACKED))


def parse_tape(text: str) -> Tape:
    """Read a tape.

    >>> parse_tape("+3 -0 <1:4")[2]
    Event(kind='<', at=1, size=4)
    """
    events = []
    for word in text.split():
        kind, at, size = word[0], word[1:], "0"
        if kind == "+":
            at, size = "0", at
        elif kind == "<":
            at, _, size = at.partition(":")
        events.append(Event(kind, int(at), int(size)))
    return tuple(events)
