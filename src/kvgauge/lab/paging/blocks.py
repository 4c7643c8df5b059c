"""The block manager: which blocks hold which tokens of which sequence.

Bookkeeping only: the rows themselves lie in a ``PagedStore``. Sequences that begin alike share the full
blocks of that beginning, found by a digest of all tokens up to a block's end. A block that nobody refers to
any more keeps its content until its place is needed, the longest unused first.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple


class Copy(NamedTuple):
    """Rows to be copied before a write: a block that others still refer to is left as it is."""

    source: int
    target: int
    num_rows: int


@dataclass(slots=True)
class Block:
    """One block: who refers to it, how full it is, and the digest of its content once it is full."""

    index: int
    references: int = 0
    num_filled: int = 0
    digest: bytes | None = None


@dataclass(slots=True)
class Table:
    """The page table of one sequence: its blocks in order.

    Args:
        digest: of all tokens in full blocks.
        tail: the tokens in the last block while it is not full.
    """

    blocks: list[int] = field(default_factory=list)
    num_tokens: int = 0
    digest: bytes = b""
    tail: list[int] = field(default_factory=list)


class BlockManager:
    """Gives out ``num_blocks`` blocks of ``block_tokens`` tokens.

    Questions and deeds come in pairs: a deed that its question answered with no raises ``IndexError`` and
    changes nothing.
    """

    def __init__(self, num_blocks: int, block_tokens: int, *, share_prefixes: bool = True) -> None:
        self.block_tokens = block_tokens
        self.share_prefixes = share_prefixes
        self.blocks = [Block(index) for index in range(num_blocks)]
        self.tables: dict[int, Table] = {}
        self.num_filled_tokens = 0
        self.num_evictions = 0
        self._free: deque[int] = deque(range(num_blocks))
        self._idle: OrderedDict[int, None] = OrderedDict()  # unreferenced, content kept; longest unused first
        self._known: dict[bytes, int] = {}

    @property
    def num_free_blocks(self) -> int:
        """Blocks that can be given out; those whose content is kept are among them."""
        return len(self._free) + len(self._idle)

    @property
    def num_used_blocks(self) -> int:
        """Blocks that a sequence refers to."""
        return len(self.blocks) - self.num_free_blocks

    @property
    def idle_blocks(self) -> tuple[int, ...]:
        """Blocks that nobody refers to and whose content is kept, the next to be evicted first."""
        return tuple(self._idle)

    def can_allocate(self, tokens: Sequence[int], spare_blocks: int = 0) -> bool:
        """Whether a sequence that begins with these tokens finds room, ``spare_blocks`` left over."""
        shared = self._shared_blocks(tokens)
        taken_back = sum(self.blocks[index].references == 0 for index in shared)
        needed = -(-len(tokens) // self.block_tokens) - len(shared)
        return needed + spare_blocks <= self.num_free_blocks - taken_back

    def allocate(self, sequence: int, tokens: Sequence[int]) -> int:
        """Give a new sequence its blocks; return how many of its tokens were there already."""
        if sequence in self.tables:
            raise KeyError(sequence)
        if not self.can_allocate(tokens):
            raise IndexError("no block is free")
        table = Table()
        shared = self._shared_blocks(tokens)
        for index in shared:
            self._refer(table, index)
        table.num_tokens = len(shared) * self.block_tokens
        if shared:
            table.digest = self.blocks[shared[-1]].digest or b""
        for start in range(table.num_tokens, len(tokens), self.block_tokens):
            self._fill(table, list(tokens[start : start + self.block_tokens]))
        self.tables[sequence] = table
        return len(shared) * self.block_tokens

    def can_append(self, sequence: int) -> bool:
        """Whether one more token of a sequence finds room."""
        return not self._needs_block(self.tables[sequence]) or self.num_free_blocks > 0

    def append(self, sequence: int, token: int) -> Copy | None:
        """Make room for one more token; return the copy that must precede its write, if any."""
        table = self.tables[sequence]
        if not self.can_append(sequence):
            raise IndexError("no block is free")
        if table.num_tokens % self.block_tokens == 0:
            self._fill(table, [token])
            return None
        copy = self._own_last_block(table)
        table.tail.append(token)
        table.num_tokens += 1
        self.num_filled_tokens += 1
        block = self.blocks[table.blocks[-1]]
        block.num_filled += 1
        if block.num_filled == self.block_tokens:
            self._close(table, block)
        return copy

    def fork(self, sequence: int, child: int) -> None:
        """Begin a second sequence with all that the first one has; both refer to the same blocks."""
        if child in self.tables:
            raise KeyError(child)
        parent = self.tables[sequence]
        table = Table([], parent.num_tokens, parent.digest, list(parent.tail))
        for index in parent.blocks:
            self._refer(table, index)
        self.tables[child] = table

    def free(self, sequence: int) -> None:
        """End a sequence; its last block is the first to be given away."""
        table = self.tables.pop(sequence)
        for index in reversed(table.blocks):
            self._release(index)

    def _shared_blocks(self, tokens: Sequence[int]) -> list[int]:
        """Full blocks that hold these first tokens; never all of them, as the last must be computed."""
        found: list[int] = []
        digest = b""
        if not self.share_prefixes:
            return found
        for start in range(0, len(tokens) - self.block_tokens, self.block_tokens):
            digest = chained_digest(digest, tokens[start : start + self.block_tokens])
            if digest not in self._known:
                break
            found.append(self._known[digest])
        return found

    def _needs_block(self, table: Table) -> bool:
        if table.num_tokens % self.block_tokens == 0:
            return True
        return self.blocks[table.blocks[-1]].references > 1

    def _refer(self, table: Table, index: int) -> None:
        block = self.blocks[index]
        if block.references == 0:
            self._idle.pop(index)
            self.num_filled_tokens += block.num_filled
        block.references += 1
        table.blocks.append(index)

    def _take(self) -> Block:
        """Return an empty block; evict the longest unused content where none is empty."""
        if self._free:
            block = self.blocks[self._free.popleft()]
        else:
            index, _ = self._idle.popitem(last=False)
            block = self.blocks[index]
            self._known.pop(block.digest or b"", None)
            self.num_evictions += 1
        block.digest, block.num_filled, block.references = None, 0, 1
        return block

    def _fill(self, table: Table, tokens: list[int]) -> None:
        """Put at most a block of tokens into a new block."""
        block = self._take()
        block.num_filled = len(tokens)
        table.blocks.append(block.index)
        table.num_tokens += len(tokens)
        table.tail = tokens
        self.num_filled_tokens += len(tokens)
        if block.num_filled == self.block_tokens:
            self._close(table, block)

    def _close(self, table: Table, block: Block) -> None:
        """A block is full: from now on it can be found by what it holds."""
        if self.share_prefixes:
            table.digest = chained_digest(table.digest, table.tail)
            if table.digest not in self._known:
                self._known[table.digest] = block.index
                block.digest = table.digest
        table.tail = []

    def _own_last_block(self, table: Table) -> Copy | None:
        """Make the last block this sequence's own before it is written (copy-on-write)."""
        shared = self.blocks[table.blocks[-1]]
        if shared.references == 1:
            return None
        own = self._take()
        own.num_filled = shared.num_filled
        shared.references -= 1
        table.blocks[-1] = own.index
        self.num_filled_tokens += own.num_filled
        return Copy(shared.index, own.index, own.num_filled)

    def _release(self, index: int) -> None:
        block = self.blocks[index]
        block.references -= 1
        if block.references:
            return
        self.num_filled_tokens -= block.num_filled
        if block.digest is None:
            self._free.append(index)
        else:
            self._idle[index] = None


def chained_digest(before: bytes, tokens: Sequence[int]) -> bytes:
    """Return the digest of a block's tokens and of all tokens before it."""
    return blake2b(before + array("q", tokens).tobytes(), digest_size=16).digest()
