"""What a card leaves an engine for cache and state: the engine's own identity, with a range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from math import hypot
from typing import TYPE_CHECKING, NamedTuple, cast

from kvgauge.card_shares import MEMORY, RULES, WEIGHTS, Rules, loading, tenth, total
from kvgauge.device_buffers import cache_of, compute_of
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.host_weights import on_devices
from kvgauge.loaded_weights import loaded_weights
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.engines.llamacpp.capacity import LlamaCapacity
    from kvgauge.engines.pools import Capacity
    from kvgauge.estimate import Estimate, Running
    from kvgauge.hardware import MemoryRange
    from kvgauge.preparing import Prepared
    from kvgauge.weight_answer import WeightAnswer

    Sizes = Mapping[str | Estimate, int]

#: Share that loaded weights may be off by: tensors, tables and rounding are known, kernels' copies are not.
WEIGHTS_OFF = 0.01


class Spread(NamedTuple):
    """Bytes of a pool: at least, as a rule, at most; below 0 where already other things do not fit."""

    low_bytes: int
    central_bytes: int
    high_bytes: int


@dataclass(frozen=True, slots=True)
class Rank:
    """One GPU.

    Args:
        terms: what the engine holds or reckons with beside weights and pool.
        left: for cache and state.
        taken_bytes: of what the engine may use, before the pool.
        inside: the terms among them.
        needed_bytes: of this rank for the load, where ranks differ in it.
    """

    memory: MemoryRange
    weights_bytes: int
    terms: tuple[Estimate, ...]
    left: Spread
    taken_bytes: int
    needed_bytes: int | None = None
    inside: tuple[Estimate, ...] = ()

    @property
    def held(self) -> tuple[Estimate, ...]:
        """The terms that are memory indeed, not only a figure that an engine reckons with."""
        return tuple(term for term in self.terms if term.held)


class _Part(NamedTuple):
    """What one rank holds: loaded weights, what stands beside them, and the load where ranks differ in it."""

    weights_bytes: int
    terms: tuple[Estimate, ...]
    needed_bytes: int | None = None


@dataclass(frozen=True)
class CardBudget:
    """The memory of the cards of one request, for any load of it.

    Args:
        weighed: cut as the engine cuts them.
        reserve_bytes: kept free on each GPU by an engine that takes no share; the others' share is lowered.
    """

    prepared: Prepared
    memory: MemoryRange
    weighed: WeightAnswer
    reserve_bytes: int = 0
    _terms: dict[Running, tuple[Estimate, ...]] = field(default_factory=dict, compare=False, repr=False)
    _loaded: list[tuple[int, ...]] = field(default_factory=list, compare=False, repr=False)
    _ranks: dict[int, tuple[Capacity, tuple[Rank, ...]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def rules(self) -> Rules:
        """How the engine deals memory out.

        Raises:
            FeatureUnsupportedError: that is not known of this engine.
        """
        name = self.prepared.request.engine
        if name not in RULES:
            raise FeatureUnsupportedError(
                f"{name} has no pool of cache that a load could fit in",
                hint="--engine vllm has one; 'kvgauge engines' lists the engines",
                field="engine",
            )
        return RULES[name]

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Bytes of the weights of each rank, as the engine counts them once they are loaded."""
        if not self._loaded:
            self._loaded.append(loaded_weights(self.prepared, self.weighed))
        return on_devices(self.prepared, self.weighed, self._loaded[0])

    def knowing(self, like: CardBudget) -> CardBudget:
        """Return this budget with what one of the same weights has worked out: terms, and loaded bytes."""
        return replace(self, _terms=like._terms, _loaded=like._loaded)

    def ranks(self, asked: Capacity) -> tuple[Rank, ...]:
        """Return every rank under a load.

        Args:
            asked: the engine's capacity for it; a verdict asks several times in a row.
        """
        known = self._ranks.get(id(asked))
        if known is None or known[0] is not asked:
            known = (asked, self._found(asked))
            self._ranks.clear()
            self._ranks[id(asked)] = known
        return known[1]

    def _found(self, asked: Capacity) -> tuple[Rank, ...]:
        alike: dict[_Part, Rank] = {}
        for part in (parts := self._parts(asked)):
            if part not in alike:
                alike[part] = self._rank(asked, part.weights_bytes, part.terms, part.needed_bytes)
        return tuple(alike[part] for part in parts)

    def _parts(self, asked: Capacity) -> tuple[_Part, ...]:
        """Return what each rank holds under a load."""
        if self.prepared.request.engine == "theory":
            return tuple(_Part(size, (tenth(size),)) for size in self.weights)
        running = self.rules.running(self.prepared, asked)
        if running not in self._terms:
            from kvgauge.estimate import estimate  # noqa: PLC0415 - a given pool needs none

            found = estimate(self.prepared.architecture, self.weighed.stored, running)
            self._terms[running] = (*found, loading()) if running.engine == "sglang" else found
        terms = self._terms[running]
        if self.prepared.engine.reads_gguf:
            told = cast("LlamaCapacity", asked)
            return tuple(
                _Part(size, (*terms, *compute_of(told, rank)), cache_of(told, rank))
                for rank, size in enumerate(self.weights)
            )
        return tuple(_Part(size, terms) for size in self.weights)

    def _rank(
        self, asked: Capacity, weights_bytes: int, terms: tuple[Estimate, ...], needed: int | None = None
    ) -> Rank:
        rules, memory = self.rules, self.memory
        off = int(WEIGHTS_OFF * weights_bytes)
        sizes = self._central(weights_bytes, terms)
        central = rules.left(asked, sizes, terms)
        ends: list[tuple[str | Estimate, int, int]] = [
            (MEMORY, memory.low_bytes - self._kept, memory.high_bytes - self._kept),
            (WEIGHTS, weights_bytes + off, weights_bytes - off),
            *((term, term.high_bytes, term.low_bytes) for term in terms),
        ]
        down, up = (
            hypot(
                *(
                    rules.left(asked, {**sizes, what: worse if side else better}, terms) - central
                    for what, worse, better in ends
                )
            )
            for side in (True, False)
        )
        left = Spread(int(central - down), central, int(central + up))
        inside = tuple(term for term in terms if rules.takes(term))
        taken = weights_bytes + total(sizes, inside)
        return Rank(memory, weights_bytes, terms, left, taken, needed, inside)

    @property
    def _kept(self) -> int:
        return self.reserve_bytes if self.rules.share_of is None else 0

    def _central(self, weights_bytes: int, terms: tuple[Estimate, ...]) -> dict[str | Estimate, int]:
        sizes: dict[str | Estimate, int] = {term: term.central_bytes for term in terms}
        return sizes | {MEMORY: self.memory.central_bytes - self._kept, WEIGHTS: weights_bytes}

    def available(self, asked: Capacity) -> Spread:
        """Return the bytes of the pool that every rank has room for.

        Where ranks differ in what they need, what the tightest one has to spare decides.
        """
        ranks = self.ranks(asked)
        if all(rank.needed_bytes is None for rank in ranks):
            return Spread(*(min(sizes) for sizes in zip(*(rank.left for rank in ranks), strict=True)))
        needed = asked.needed_bytes
        spare = [tuple(size - (rank.needed_bytes or 0) for size in rank.left) for rank in ranks]
        return Spread(*(needed + min(sizes) for sizes in zip(*spare, strict=True)))

    def central_bytes(self, asked: Capacity) -> int:
        """Return the central value of ``available`` alone: a search asks it of many loads."""
        left = self.rules.left
        parts = dict.fromkeys(self._parts(asked))
        rooms = [
            left(asked, self._central(part.weights_bytes, part.terms), part.terms) - (part.needed_bytes or 0)
            for part in parts
        ]
        if all(part.needed_bytes is None for part in parts):
            return min(rooms)
        return asked.needed_bytes + min(rooms)

    def tightest(self, asked: Capacity) -> Rank:
        """Return the rank that has least to spare."""
        return min(self.ranks(asked), key=lambda rank: rank.left.central_bytes - (rank.needed_bytes or 0))

    def share_base_bytes(self, asked: Capacity) -> int | None:
        """Return the bytes that the engine's share is one of; None where it has no share."""
        rules, rank = self.rules, self.tightest(asked)
        if rules.share_of is None:
            return None
        return rules.share_of(self._central(rank.weights_bytes, rank.terms), rank.terms)

    def share(self, asked: Capacity) -> Fraction:
        """Return the share that the engine takes: as told, else its default."""
        share = self.rules.share
        return Fraction(1) if share is None else share(asked)

    def room_bytes(self, asked: Capacity) -> int:
        """Return what nothing else takes of the fullest GPU, below 0 where it is overdrawn."""
        return min(_room(rank) for rank in self.ranks(asked))

    def free_bytes(self, asked: Capacity) -> int:
        """Return what stays free on the fullest GPU beside the pool, below 0 where it is overdrawn.

        An engine that allocates what it is told has no pool beyond what the load takes of each rank.
        """
        told = [
            _room(rank) - rank.needed_bytes for rank in self.ranks(asked) if rank.needed_bytes is not None
        ]
        if told:
            return min(told)
        pool = max(0, asked.budget(self.available(asked).central_bytes))
        return self.room_bytes(asked) - pool


def _room(rank: Rank) -> int:
    """Return what nothing but the pool takes of a GPU, below 0 where it is overdrawn."""
    return rank.memory.central_bytes - rank.weights_bytes - sum(term.central_bytes for term in rank.held)


__all__ = ["CardBudget", "Rank", "Spread", "loading"]
