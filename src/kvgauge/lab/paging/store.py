"""K and V in blocks, and one decode step that reads them there, tile by tile."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kvgauge.lab.flash.online import OnlineSoftmax
from kvgauge.lab.paging.blocks import BlockManager, Copy

Floats = NDArray[np.float64]


@dataclass
class PagedStore:
    """The rows of one layer: (blocks, tokens of a block, KV heads, width), for K and for V."""

    num_blocks: int
    block_tokens: int
    num_kv_heads: int
    head_dim: int
    keys: Floats = field(init=False, repr=False)
    values: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = (self.num_blocks, self.block_tokens, self.num_kv_heads, self.head_dim)
        self.keys, self.values = np.zeros(shape), np.zeros(shape)

    def write(self, blocks: list[int], position: int, key: Floats, value: Floats) -> None:
        """Write the row of one token where the page table says."""
        block, row = blocks[position // self.block_tokens], position % self.block_tokens
        self.keys[block, row], self.values[block, row] = key, value

    def copy(self, copy: Copy) -> None:
        """Copy the rows that a block's new owner needs."""
        rows = slice(copy.num_rows)
        self.keys[copy.target, rows] = self.keys[copy.source, rows]
        self.values[copy.target, rows] = self.values[copy.source, rows]


def append_row(
    manager: BlockManager, store: PagedStore, sequence: int, token: int, row: tuple[Floats, Floats]
) -> None:
    """Append one token to a sequence: its place, the copy that place may need, its K and V."""
    copy = manager.append(sequence, token)
    if copy is not None:
        store.copy(copy)
    table = manager.tables[sequence]
    store.write(table.blocks, table.num_tokens - 1, *row)


def paged_decode(q: Floats, store: PagedStore, blocks: list[int], num_tokens: int) -> Floats:
    """Return the attention of one new token over a sequence's blocks.

    Args:
        q: (query heads, width); each group of query heads shares a KV head.
        blocks: the page table; a block is a tile, and rows beyond ``num_tokens`` are not read.
    """
    groups = q.reshape(store.num_kv_heads, -1, store.head_dim)
    outputs = []
    for head, queries in enumerate(groups):
        online = OnlineSoftmax(len(queries), store.head_dim)
        for number, block in enumerate(blocks):
            rows = min(store.block_tokens, num_tokens - number * store.block_tokens)
            keys, values = store.keys[block, :rows, head], store.values[block, :rows, head]
            online.add(queries @ keys.T / np.sqrt(store.head_dim), values)
        outputs.append(online.result)
    return np.concatenate(outputs)
