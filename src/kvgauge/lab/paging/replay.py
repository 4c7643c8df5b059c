"""One stream of requests through each way to keep a cache: how much of the pool holds tokens, and the rest.

In a step every running request gets one token; waiting ones are admitted in their order as long as they find
room. Slots are counted in every step in which a request waits, so the pool is as full as its scheme can
make it. Kinds of slots, which add up to the pool:

- filled: hold a token;
- reserved: set aside for tokens that will come;
- internal: set aside and never filled;
- external: free and together enough for the next request, but in no piece that is long enough;
- free: free, and too few for the next request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kvgauge.lab.paging.blocks import BlockManager
from kvgauge.lab.paging.contiguous import Allocator
from kvgauge.lab.paging.requests import Request


class Slots(NamedTuple):
    """Slots of a pool by kind; sums over steps where many are counted."""

    filled: int = 0
    reserved: int = 0
    internal: int = 0
    external: int = 0
    free: int = 0

    def plus(self, other: Slots) -> Slots:
        """Return the sums, kind by kind."""
        return Slots(*(a + b for a, b in zip(self, other, strict=True)))


NOTHING = Slots()


@dataclass(slots=True)
class Running:
    """A request that has been admitted."""

    number: int
    request: Request
    num_tokens: int


class Scheme(Protocol):
    """A way to keep the caches of running requests in one pool."""

    def admit(self, running: Running) -> bool:
        """Give a request its first room; False where there is none."""

    def grow(self, running: Running) -> bool:
        """Make room for one more token; False where there is none."""

    def end(self, running: Running) -> None:
        """Take back all room of a request."""

    def slots(self, running: Sequence[Running], waiting: Running) -> Slots:
        """Count the slots by kind; ``waiting`` is the next request, which found no room."""


@dataclass
class ContiguousScheme:
    """One piece a request, of a length guessed at admission."""

    pool: Allocator
    guess: Callable[[Request], int]
    _starts: dict[int, int] = field(default_factory=dict)

    def admit(self, running: Running) -> bool:
        """Give a request its piece."""
        start = self.pool.allocate(self.guess(running.request))
        if start is None:
            return False
        self._starts[running.number] = start
        return True

    def grow(self, running: Running) -> bool:
        """The piece is long enough from the beginning."""
        return True

    def end(self, running: Running) -> None:
        """Take the piece back."""
        self.pool.free(self._starts.pop(running.number))

    def slots(self, running: Sequence[Running], waiting: Running) -> Slots:
        """Count pieces by what the request will fill; free slots are external where they would do."""
        filled = sum(each.num_tokens for each in running)
        final = sum(each.request.num_tokens for each in running)
        taken = sum(self._size(each) for each in running)
        rest = self.pool.num_free
        is_enough = rest >= self._size(waiting)
        return Slots(filled, final - filled, taken - final, rest * is_enough, rest * (not is_enough))

    def _size(self, running: Running) -> int:
        return self.pool.size_for(self.guess(running.request))


@dataclass
class PagedScheme:
    """Blocks on demand; the block manager finds what requests share.

    Args:
        spare_blocks: left free at admission, so that running requests can grow.
    """

    manager: BlockManager
    spare_blocks: int
    num_shared_tokens: int = 0

    def admit(self, running: Running) -> bool:
        """Give a request blocks for the tokens it has."""
        tokens = _tokens(running)
        spare = self.spare_blocks if self.manager.num_used_blocks else 0
        if not self.manager.can_allocate(tokens, spare):
            return False
        self.num_shared_tokens += self.manager.allocate(running.number, tokens)
        return True

    def grow(self, running: Running) -> bool:
        """Give one more block where the last one is full."""
        if not self.manager.can_append(running.number):
            return False
        self.manager.append(running.number, _generated(running.number, running.num_tokens))
        return True

    def end(self, running: Running) -> None:
        """Take the blocks back."""
        self.manager.free(running.number)

    def slots(self, running: Sequence[Running], waiting: Running) -> Slots:
        """Count filled slots once, however many requests share them."""
        manager = self.manager
        used = manager.num_used_blocks * manager.block_tokens
        free = manager.num_free_blocks * manager.block_tokens
        return Slots(manager.num_filled_tokens, 0, used - manager.num_filled_tokens, 0, free)


def _tokens(running: Running) -> list[int]:
    prompt = running.request.prompt
    more = range(len(prompt), running.num_tokens)
    return [*prompt, *(_generated(running.number, position) for position in more)]


def _generated(number: int, position: int) -> int:
    """A token that no other request generates; nothing here depends on which."""
    return -(number << 24) - position - 1


@dataclass(slots=True)
class Outcome:
    """What came out: slot-steps by kind, and how requests fared.

    Args:
        num_counted_steps: steps in which a request waited.
        running_sum, max_running: requests at once, summed over those steps, and at most.
    """

    slots: Slots = NOTHING
    num_steps: int = 0
    num_counted_steps: int = 0
    running_sum: int = 0
    max_running: int = 0
    num_preemptions: int = 0


def replay(requests: Sequence[Request], scheme: Scheme) -> Outcome:
    """Run requests that all wait from the beginning until the last one ends.

    A running request that finds no room is put back, the last admitted first, and its tokens are computed
    again later.
    """
    waiting = deque(Running(n, request, len(request.prompt)) for n, request in enumerate(requests))
    running: list[Running] = []
    outcome = Outcome()
    has_more_room = True
    while waiting or running:
        while has_more_room and waiting and scheme.admit(waiting[0]):
            running.append(waiting.popleft())
        if not running:
            raise ValueError("a request is longer than the pool")
        outcome.num_steps += 1
        has_more_room = _grow_all(running, waiting, scheme, outcome)
        if waiting:
            outcome.num_counted_steps += 1
            outcome.slots = outcome.slots.plus(scheme.slots(running, waiting[0]))
            outcome.running_sum += len(running)
            outcome.max_running = max(outcome.max_running, len(running))
        for each in [each for each in running if each.num_tokens == each.request.num_tokens]:
            scheme.end(each)
            running.remove(each)
            has_more_room = True
    return outcome


def _grow_all(running: list[Running], waiting: deque[Running], scheme: Scheme, outcome: Outcome) -> bool:
    """Give every running request one token, the first admitted first; return whether any was put back."""
    place, before = 0, outcome.num_preemptions
    while place < len(running):
        if scheme.grow(running[place]):
            running[place].num_tokens += 1
            place += 1
        else:
            last = running.pop()
            scheme.end(last)
            waiting.appendleft(last)
            outcome.num_preemptions += 1
    return outcome.num_preemptions > before
