"""Two small histories of a block manager, told step by step: sharing, and one decode step over pages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.lab.flash.attention import plain_attention
from kvgauge.lab.paging.blocks import BlockManager
from kvgauge.lab.paging.store import Floats, PagedStore, append_row, paged_decode

_SEQUENCE = 0


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The state after one deed: blocks in use, and the tables of the sequences that live."""

    deed: str
    used_blocks: int
    idle_blocks: int
    tables: tuple[tuple[int, tuple[int, ...]], ...]
    known_tokens: int = 0
    copied_rows: int = 0

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "deed": self.deed,
            "used_blocks": self.used_blocks,
            "idle_blocks": self.idle_blocks,
            "tables": {str(sequence): list(blocks) for sequence, blocks in self.tables},
            "known_tokens": self.known_tokens,
            "copied_rows": self.copied_rows,
        }


def trace_sharing(block_tokens: int = 4) -> tuple[TraceStep, ...]:
    """Two prompts that begin alike, a fork, a write into a shared block, the end, and the prompt again."""
    manager = BlockManager(8, block_tokens)
    common = list(range(2 * block_tokens))
    steps: list[TraceStep] = []

    def note(deed: str, known: int = 0, copied: int = 0) -> None:
        tables = tuple((n, tuple(table.blocks)) for n, table in manager.tables.items())
        idle = len(manager.idle_blocks)
        steps.append(TraceStep(deed, manager.num_used_blocks, idle, tables, known, copied))

    note("allocate", manager.allocate(0, [*common, 100, 101]))
    note("allocate_alike", manager.allocate(1, [*common, 200]))
    manager.fork(0, 2)
    note("fork")
    copy = manager.append(2, 102)
    note("append_to_shared", copied=copy.num_rows if copy else 0)
    for sequence in (0, 1, 2):
        manager.free(sequence)
    note("free_all")
    note("allocate_again", manager.allocate(3, [*common, 300]))
    return tuple(steps)


@dataclass(frozen=True, slots=True)
class PageRow:
    """One line of a page table: ``num_tokens`` tokens, from ``first_token`` on, lie in ``block``."""

    first_token: int
    block: int
    num_tokens: int

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {"first_token": self.first_token, "block": self.block, "num_tokens": self.num_tokens}


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """One new token of a sequence whose rows lie in pages.

    Args:
        position: of the new token; its K and V are stored before it attends.
        num_tiles: tiles that the running softmax took in, for one KV head.
        difference: largest difference to plain attention over the same rows, side by side.
    """

    position: int
    block_tokens: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    pages: tuple[PageRow, ...]
    num_tiles: int
    difference: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        named = {name: getattr(self, name) for name in self.__slots__ if name != "pages"}
        return {**named, "pages": [page.to_dict() for page in self.pages]}


def run_decode_step(
    block_tokens: int = 4, num_tokens: int = 14, num_heads: int = 4, num_kv_heads: int = 2, head_dim: int = 8
) -> DecodeStep:
    """Let three sequences grow in turns, so that their blocks mix, and decode one token of the first."""
    rng = np.random.default_rng(0)
    manager = BlockManager(4 * num_tokens, block_tokens)
    store = PagedStore(4 * num_tokens, block_tokens, num_kv_heads, head_dim)
    kept: list[tuple[Floats, Floats]] = []
    for sequence in range(3):
        manager.allocate(sequence, [sequence])
    for position in range(num_tokens):
        for sequence in range(3):
            key, value = rng.standard_normal((2, num_kv_heads, head_dim))
            row = (key, value)
            if position == 0:
                store.write(manager.tables[sequence].blocks, 0, *row)
            else:
                append_row(manager, store, sequence, position, row)
            if sequence == _SEQUENCE:
                kept.append(row)
    table = manager.tables[_SEQUENCE]
    q = rng.standard_normal((num_heads, head_dim))
    paged = paged_decode(q, store, table.blocks, table.num_tokens)
    keys, values = (np.array([row[part] for row in kept]) for part in (0, 1))
    return DecodeStep(
        table.num_tokens - 1,
        block_tokens,
        num_heads,
        num_kv_heads,
        head_dim,
        _pages(table.blocks, table.num_tokens, block_tokens),
        len(table.blocks),
        float(np.abs(paged - _plain(q, keys, values)).max()),
    )


def _pages(blocks: list[int], num_tokens: int, block_tokens: int) -> tuple[PageRow, ...]:
    firsts = range(0, num_tokens, block_tokens)
    return tuple(
        PageRow(first, block, min(block_tokens, num_tokens - first))
        for first, block in zip(firsts, blocks, strict=True)
    )


def _plain(q: Floats, keys: Floats, values: Floats) -> Floats:
    """Attention of each query head over its KV head's rows, which lie side by side."""
    group = len(q) // keys.shape[1]
    heads = [
        plain_attention(q[n : n + 1], keys[:, n // group], values[:, n // group])[0] for n in range(len(q))
    ]
    return np.concatenate(heads)
