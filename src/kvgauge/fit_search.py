"""The most that fits: an engine's answers for other loads of one request, searched through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.card_budget import CardBudget, Spread
from kvgauge.errors import InvalidRequestError
from kvgauge.fit_result import Reach
from kvgauge.units import MAX_SEQUENCES, MAX_TOKENS, format_bytes
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.engines.pools import Capacity
    from kvgauge.preparing import Prepared
    from kvgauge.workload import Workload

#: A share of a card is told in thousandths.
_STEPS = 1000


@dataclass(frozen=True)
class Search:
    """The engine's answers for other loads of one request.

    Args:
        given_bytes: of the pool on each rank; None: what the cards have room for, which depends on the load.
    """

    prepared: Prepared
    given_bytes: int | None
    cards: CardBudget | None = None

    def available(self, asked: Capacity) -> Spread:
        """Return the pool that a load finds."""
        if self.given_bytes is not None or self.cards is None:
            return Spread(*(self.given_bytes or 0,) * 3)
        return self.cards.available(asked)

    def told_too_much(self, asked: Capacity) -> tuple[int, int] | None:
        """Return the pool that a flag states, and what the cards have room for, where that is less."""
        stated = asked.budget(0)
        if self.cards is None or not stated:
            return None
        room = self.cards.room_bytes(asked)
        return (stated, room) if stated > room else None

    def pool_bytes(self, asked: Capacity, longest: Reach) -> int:
        """Return the budget of the pool on each rank.

        Of an engine that allocates what it is told and computes more for longer contexts: what the longest
        context takes.
        """
        left = asked.budget(self.available(asked).central_bytes)
        if self.cards is None or not self.prepared.engine.reads_gguf:
            return max(0, left)
        if not longest.count:
            return 0
        load = self.prepared.request.workload
        return self.capacity(replace(load, context_tokens=longest.count)).needed_bytes

    def is_held(self, asked: Capacity, load: Workload) -> bool:
        """Whether a load fits, with every estimate at its central value."""
        if self.told_too_much(asked) is not None or is_refused(asked, load):
            return False
        return asked.needed_bytes <= self._budget_bytes(asked)

    def _budget_bytes(self, asked: Capacity) -> int:
        """Return the budget of the pool at its central value."""
        if self.given_bytes is not None or self.cards is None:
            return asked.budget(self.given_bytes or 0)
        return asked.budget(self.cards.central_bytes(asked))

    def _near(self, asked: Capacity, count: int) -> int:
        """Return about how many would fit, were each of ``count`` as large as the next."""
        return count * max(0, self._budget_bytes(asked)) // max(1, asked.needed_bytes)

    def _nearer(self, first: tuple[int, Capacity], second: tuple[int, Capacity]) -> int:
        """Return where the room of two loads would end on a line through both."""
        (count, asked), (other_count, other) = first, second
        room, other_room = (self._budget_bytes(each) - each.needed_bytes for each in (asked, other))
        if room == other_room:
            return other_count
        return other_count + other_room * (other_count - count) // (room - other_room)

    def capacity(self, workload: Workload) -> Capacity:
        """Return what the engine makes of another load."""
        prepared = self.prepared
        request = prepared.request
        return prepared.engine.capacity(
            prepared.architecture,
            workload,
            request.dtypes,
            version=request.engine_version,
            args=request.engine_args,
            setup=prepared.setup,
        )

    def holds(self, workload: Workload) -> bool:
        """Whether a load fits, with every estimate at its central value."""
        return self.is_held(self.capacity(workload), workload)

    def longest(self, asked: Capacity) -> Reach:
        """Return the longest context of as many sequences as were asked for."""
        load = self.prepared.request.workload
        limit = self.prepared.architecture.context_limit_tokens
        told = asked.max_context_tokens
        bounds = [(told, "flag"), (limit if told is None else None, "model"), (MAX_TOKENS, "engine")]
        most, by = min(((n, word) for n, word in bounds if n is not None), key=lambda bound: bound[0])

        def of(tokens: int) -> Workload:
            prefix = min(load.shared_prefix_tokens, tokens)
            return replace(load, context_tokens=tokens, shared_prefix_tokens=prefix)

        near = min(max(1, self._near(asked, load.context_tokens)), most)
        if 1 < near < most:
            near = self._nearer((load.context_tokens, asked), (near, self.capacity(of(near))))
        found = largest(most, lambda tokens: self.holds(of(tokens)), near)
        if found < most:
            more = of(found + 1)
            by = "flag" if is_refused(self.capacity(more), more) else "memory"
        return Reach(found, by)

    def widest(self, asked: Capacity) -> Reach:
        """Return the most sequences of the context that was asked for."""
        told = asked.max_sequences
        limit: int = getattr(asked, "engine_max_sequences", MAX_SEQUENCES)
        most, by = (limit, "engine") if told is None else (told, "flag")
        load = self.prepared.request.workload

        def fits(count: int) -> bool:
            return self.is_held(asked.with_sequences(count), replace(load, sequences=count))

        found = largest(most, fits, self._near(asked, load.sequences))
        if found < most:
            more = found + 1
            by = "flag" if is_refused(asked.with_sequences(more), replace(load, sequences=more)) else "memory"
        return Reach(found, by)


def is_refused(asked: Capacity, load: Workload) -> bool:
    """Whether the engine's flags refuse a load, however much memory there is."""
    sequences, tokens = asked.max_sequences, asked.max_context_tokens
    return (sequences is not None and load.sequences > sequences) or (
        tokens is not None and load.context_tokens > tokens
    )


def keep_free(search: Search, kept_bytes: int) -> tuple[Search, tuple[Note, ...]]:
    """Return the search with the engine's share lowered until memory stays free on every GPU.

    Raises:
        InvalidRequestError: then nothing is left for the engine.
    """
    cards, prepared = search.cards, search.prepared
    if cards is None:
        return search, ()
    asked = search.capacity(prepared.request.workload)
    base, free = cards.share_base_bytes(asked), cards.free_bytes(asked)
    has_no_pool = search.available(asked).central_bytes <= 0  # nothing to lower: the verdict says what lacks
    if base is None or free >= kept_bytes or has_no_pool:
        return search, ()
    size, before = format_bytes(kept_bytes), cards.share(asked)
    if prepared.setup.utilization is not None and "utilization" in prepared.engine.told(
        prepared.request.engine_args
    ):
        text = f"--reserve {size} is not kept: the engine's flags state its share"
        return search, (Note("reserve_not_kept", "warning", text, (("size", size),), (kept_bytes,)),)
    share = floor((before - Fraction(kept_bytes - free, max(1, base))) * _STEPS) / _STEPS
    if share <= 0:
        raise InvalidRequestError(
            f"--reserve {size} leaves the engine nothing of the GPU",
            hint="reserve less, or take a larger GPU",
            field="reserve",
        )
    told = replace(prepared, setup=replace(prepared.setup, utilization=str(share)))
    text = (
        f"to keep {size} of each GPU free, the engine's share is lowered from {float(before):g} to {share:g}"
    )
    values = (("size", size), ("before", f"{float(before):g}"), ("share", f"{share:g}"))
    note = Note("reserve_lowers_share", "info", text, values, (kept_bytes,))
    return replace(search, prepared=told, cards=replace(cards, prepared=told)), (note,)


def largest(most: int, fits: Callable[[int], bool], near: int | None = None) -> int:
    """Return the largest number up to ``most`` that fits, 0 if 1 does not; what fits never resumes.

    Without a guess the ends are asked first: mostly all of it fits, or nothing does.

    Args:
        near: a guess; the better it is, the fewer numbers are tried.

    >>> largest(1000, lambda n: n <= 300), largest(10, lambda n: n <= 300), largest(10, lambda n: False)
    (300, 10, 0)
    >>> largest(1000, lambda n: n <= 300, 290)
    300
    """
    if near is not None and most > 0:
        return _between(*_around(min(max(near, 1), most), most + 1, fits), fits)
    if most <= 0 or fits(most):
        return max(0, most)
    if most == 1 or not fits(1):
        return 0
    return _between(1, most, fits)


def _around(near: int, high: int, fits: Callable[[int], bool]) -> tuple[int, int]:
    """Return a number that fits (or 0) and one that does not (or ``high``), in steps that widen."""
    low, at, step = 0, near, max(1, near // 512)
    is_up = fits(at)
    while True:
        low, high = (at, high) if is_up else (low, at)
        at = min(low + step, high - 1) if is_up else max(high - step, low + 1)
        if not low < at < high:
            return low, high
        if fits(at) != is_up:
            return (low, at) if is_up else (at, high)
        step *= 4


def _between(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number that fits, of one that does and one that does not."""
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


__all__ = ["Search", "is_refused", "keep_free", "largest"]
