"""Blocks and pieces: invariants after any history, and what a stream of requests makes of each scheme."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

np = pytest.importorskip("numpy")

from kvgauge.lab.flash.attention import plain_attention  # noqa: E402
from kvgauge.lab.paging.blocks import BlockManager  # noqa: E402
from kvgauge.lab.paging.contiguous import Buddy, FirstFit  # noqa: E402
from kvgauge.lab.paging.replay import ContiguousScheme, PagedScheme, replay  # noqa: E402
from kvgauge.lab.paging.requests import Request, request_stream  # noqa: E402
from kvgauge.lab.paging.store import PagedStore, append_row, paged_decode  # noqa: E402

words = st.lists(st.integers(0, 1), min_size=1, max_size=9)  # two tokens only: prefixes meet often


class Blocks(RuleBasedStateMachine):
    """A block manager beside a memory that does what it says, and plain lists of what must be in it."""

    @initialize(num_blocks=st.integers(1, 8), block_tokens=st.integers(1, 4), share=st.booleans())
    def start(self, num_blocks, block_tokens, share):
        self.manager = BlockManager(num_blocks, block_tokens, share_prefixes=share)
        self.memory = [[None] * block_tokens for _ in range(num_blocks)]
        self.texts: dict[int, list[int]] = {}
        self.next = 0

    def table(self, sequence):
        return self.manager.tables[sequence]

    def write(self, sequence, position, token):
        block = self.table(sequence).blocks[position // self.manager.block_tokens]
        assert self.manager.blocks[block].references == 1, "a block that others read is written"
        self.memory[block][position % self.manager.block_tokens] = token

    def snapshot(self):
        blocks = [(b.references, b.num_filled, b.digest) for b in self.manager.blocks]
        return (
            blocks,
            {n: list(t.blocks) for n, t in self.manager.tables.items()},
            self.manager.num_filled_tokens,
        )

    @rule(tokens=words)
    def allocate(self, tokens):
        before = self.snapshot()
        if not self.manager.can_allocate(tokens):
            with pytest.raises(IndexError):
                self.manager.allocate(self.next, tokens)
            assert self.snapshot() == before
            return
        known = self.manager.allocate(self.next, tokens)
        assert known < len(tokens)
        assert known % self.manager.block_tokens == 0
        for position in range(known, len(tokens)):
            self.write(self.next, position, tokens[position])
        self.texts[self.next] = list(tokens)
        self.next += 1

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), token=st.integers(0, 1))
    def append(self, data, token):
        sequence = data.draw(st.sampled_from(sorted(self.texts)))
        before = self.snapshot()
        if not self.manager.can_append(sequence):
            with pytest.raises(IndexError):
                self.manager.append(sequence, token)
            assert self.snapshot() == before
            return
        copy = self.manager.append(sequence, token)
        if copy is not None:
            self.memory[copy.target] = list(self.memory[copy.source])
        self.texts[sequence].append(token)
        self.write(sequence, len(self.texts[sequence]) - 1, token)

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def fork(self, data):
        sequence = data.draw(st.sampled_from(sorted(self.texts)))
        used = self.manager.num_used_blocks
        self.manager.fork(sequence, self.next)
        assert self.manager.num_used_blocks == used
        self.texts[self.next] = list(self.texts[sequence])
        self.next += 1

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def free(self, data):
        sequence = data.draw(st.sampled_from(sorted(self.texts)))
        self.manager.free(sequence)
        del self.texts[sequence]

    @invariant()
    def every_sequence_reads_its_own_tokens(self):
        for sequence, text in getattr(self, "texts", {}).items():
            table = self.table(sequence)
            assert table.num_tokens == len(text)
            assert len(table.blocks) == -(-len(text) // self.manager.block_tokens)
            flat = [token for block in table.blocks for token in self.memory[block]]
            assert flat[: len(text)] == text

    @invariant()
    def references_and_fillings_add_up(self):
        if not hasattr(self, "manager"):
            return
        manager = self.manager
        refers = [0] * len(manager.blocks)
        for table in manager.tables.values():
            assert len(set(table.blocks)) == len(table.blocks)
            for block in table.blocks:
                refers[block] += 1
        assert [block.references for block in manager.blocks] == refers
        used = [block for block in manager.blocks if block.references]
        assert manager.num_used_blocks == len(used)
        assert manager.num_free_blocks == len(manager.blocks) - len(used)
        assert manager.num_filled_tokens == sum(block.num_filled for block in used)
        assert all(not manager.blocks[index].references for index in manager.idle_blocks)

    @invariant()
    def a_digest_names_one_full_block(self):
        if hasattr(self, "manager"):
            digests = [block.digest for block in self.manager.blocks if block.digest]
            assert len(digests) == len(set(digests))
            assert all(b.num_filled == self.manager.block_tokens for b in self.manager.blocks if b.digest)


Blocks.TestCase.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestBlocks = Blocks.TestCase


def test_a_prefix_is_found_shared_and_evicted():
    manager = BlockManager(4, 2)
    assert manager.allocate(0, [1, 2, 3, 4, 5]) == 0
    assert manager.allocate(1, [1, 2, 3, 9]) == 2  # one full block is common; 3, 9 is another block
    assert manager.num_used_blocks == 4
    assert manager.num_filled_tokens == 7
    manager.free(0)
    manager.free(1)
    assert (manager.num_free_blocks, manager.num_filled_tokens) == (4, 0)
    assert manager.allocate(2, [1, 2, 3, 4, 6]) == 4  # kept after the end
    manager.free(2)
    assert manager.allocate(3, [7] * 8) == 0
    assert manager.num_evictions > 0
    manager.free(3)
    assert manager.allocate(4, [1, 2, 3, 4, 6]) == 0  # evicted


def test_a_fork_copies_only_what_it_writes():
    manager = BlockManager(8, 4)
    manager.allocate(0, [1, 2, 3, 4, 5, 6])
    manager.fork(0, 1)
    copy = manager.append(1, 7)
    assert (copy.source, copy.num_rows) == (manager.tables[0].blocks[1], 2)
    assert manager.append(0, 8) is None  # now its own
    assert manager.tables[0].blocks[0] == manager.tables[1].blocks[0]
    assert manager.num_used_blocks == 3


@settings(deadline=None)
@given(st.sampled_from([FirstFit, Buddy]), st.integers(1, 200), st.lists(st.integers(0, 60), max_size=40))
def test_pieces_never_overlap_and_come_back_whole(kind, slots, steps):
    """A step of 0 returns the oldest piece, any other asks for so many slots."""
    pool, held = kind(slots), {}
    for step in steps:
        if step == 0:
            if held:
                start = next(iter(held))
                pool.free(start)
                del held[start]
            continue
        start = pool.allocate(step)
        if start is not None:
            assert start not in held
            held[start] = pool.size_for(step)
        taken = sorted((start, start + size) for start, size in held.items())
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(taken))
        assert all(0 <= a < b <= slots for a, b in taken)
        assert pool.num_free == slots - sum(held.values())
    for start in held:
        pool.free(start)
    assert pool.num_free == slots
    largest = 1 << (slots.bit_length() - 1) if kind is Buddy else slots
    assert pool.allocate(largest) == 0


def schemes(pool: int, longest: int):
    yield "maximum", ContiguousScheme(FirstFit(pool), lambda _: longest)
    yield "buddy", ContiguousScheme(Buddy(pool), lambda request: request.num_tokens)
    yield "true", ContiguousScheme(FirstFit(pool), lambda request: request.num_tokens)
    for block in (1, 16, 128):
        manager = BlockManager(pool // block, block, share_prefixes=False)
        yield f"paged_{block}", PagedScheme(manager, pool // block // 100)


def test_every_slot_is_accounted_for_and_every_scheme_serves_all():
    requests, pool = request_stream(60, 512, seed=3), 4096
    filled, held = {}, {}
    for name, scheme in schemes(pool, 512):
        outcome = replay(requests, scheme)
        assert sum(outcome.slots) == outcome.num_counted_steps * pool, name
        assert min(outcome.slots) >= 0, name
        filled[name] = outcome.slots.filled / sum(outcome.slots)
        held[name] = outcome.running_sum / outcome.num_counted_steps
    assert filled["maximum"] < filled["buddy"] < filled["true"] < filled["paged_128"] < filled["paged_16"]
    assert filled["paged_16"] > 0.9
    assert held["paged_16"] > 2 * held["maximum"]


def test_reserving_the_maximum_by_hand():
    """Two of three requests fit; each fills 3 of its 8 slots at the first count and will fill 4."""
    requests = [Request((1, 2), 2)] * 3
    outcome = replay(requests, ContiguousScheme(FirstFit(16), lambda _: 8))
    # Two steps are counted, then the two end and the third runs alone.
    assert outcome.slots == (3 * 2 + 4 * 2, 1 * 2, 2 * 2 * 4, 0, 0)
    assert (outcome.num_steps, outcome.num_counted_steps, outcome.max_running) == (4, 2, 2)


def test_a_hole_between_two_pieces_is_external():
    """10 slots hold 4 + 4; when the first piece ends, 4 + 2 are free, together enough for 6, apart not."""
    lengths = [(1, 3), (1, 9), (1, 5)]
    requests = [Request(tuple(range(p)), o) for p, o in lengths]
    outcome = replay(requests, ContiguousScheme(FirstFit(16), lambda r: r.num_tokens))
    assert outcome.slots.external > 0
    assert outcome.slots.free > 0


def test_preempted_requests_come_back():
    """Four requests start in a pool that can't hold all of them to their end."""
    requests = [Request((n,), 9) for n in range(4)]
    outcome = replay(requests, PagedScheme(BlockManager(10, 2, share_prefixes=False), 0))
    assert outcome.num_preemptions > 0
    with pytest.raises(ValueError, match="longer than the pool"):
        replay([Request((1,) * 30, 1)], PagedScheme(BlockManager(10, 2), 0))


def test_a_common_prompt_is_kept_once():
    requests, pool = request_stream(40, 512, seed=1, shared_prefix=128), 4096
    held = []
    for share in (False, True):
        scheme = PagedScheme(BlockManager(pool // 16, 16, share_prefixes=share), 2)
        outcome = replay(requests, scheme)
        held.append(outcome.running_sum / outcome.num_counted_steps)
        assert (scheme.num_shared_tokens > 0) == share
    assert held[1] > 1.3 * held[0]


def test_streams_are_seeded_and_bounded():
    stream = request_stream(50, 256, seed=5, shared_prefix=64)
    assert stream == request_stream(50, 256, seed=5, shared_prefix=64)
    assert stream != request_stream(50, 256, seed=6, shared_prefix=64)
    assert all(r.num_output >= 1 and r.num_tokens <= 256 for r in stream)
    assert len({r.prompt[:64] for r in stream}) == 1


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.integers(1, 20), st.integers(0, 9))
def test_attention_over_pages_is_attention(block_tokens, kv_heads, group, tokens, seed):
    """Sequences grow in turns and one is a fork, so no page table is in order."""
    rng = np.random.default_rng(seed)
    manager, store = BlockManager(60, block_tokens), PagedStore(60, block_tokens, kv_heads, 4)
    rows: dict[int, list] = {0: [], 1: []}
    for sequence in (0, 1):
        manager.allocate(sequence, [sequence + 5])
        rows[sequence].append((rng.standard_normal((kv_heads, 4)), rng.standard_normal((kv_heads, 4))))
        store.write(manager.tables[sequence].blocks, 0, *rows[sequence][0])
    for step in range(tokens):
        if step == tokens // 2:
            manager.fork(0, 2)
            rows[2] = list(rows[0])
        for sequence, held in rows.items():
            row = (rng.standard_normal((kv_heads, 4)), rng.standard_normal((kv_heads, 4)))
            append_row(manager, store, sequence, 10 * step + sequence, row)
            held.append(row)
    q = rng.standard_normal((kv_heads * group, 4))
    for sequence, held in rows.items():
        table = manager.tables[sequence]
        keys, values = (np.array([row[part] for row in held]) for part in (0, 1))
        expected = [
            plain_attention(q[h : h + 1], keys[:, h // group], values[:, h // group])[0][0]
            for h in range(kv_heads * group)
        ]
        assert np.allclose(paged_decode(q, store, table.blocks, table.num_tokens), expected)
