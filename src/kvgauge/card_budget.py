"""What a card leaves an engine for cache and state: the engine's own identity, with a range.

vLLM: a share of the card, less weights and what it budgets. SGLang: the static fraction of what is free
before loading, less weights; activations and graphs live in the rest. TensorRT-LLM: a share of what is free
after weights and activations. llama.cpp: what weights, compute buffers and the driver's context leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, hypot
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kvgauge.device_buffers import cache_of, compute_of
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.host_weights import on_devices
from kvgauge.loaded_weights import loaded_weights
from kvgauge.units import GIB
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.engines.llamacpp.capacity import LlamaCapacity
    from kvgauge.engines.pools import Capacity
    from kvgauge.engines.sglang.capacity import SglangCapacity
    from kvgauge.engines.tensorrt_llm.capacity import TrtllmCapacity
    from kvgauge.engines.vllm.engine import VllmCapacity
    from kvgauge.estimate import Estimate, Running
    from kvgauge.hardware import MemoryRange
    from kvgauge.preparing import Prepared
    from kvgauge.weight_answer import WeightAnswer

    Sizes = Mapping[str | Estimate, int]

#: Share that loaded weights may be off by: tensors, tables and rounding are known, kernels' copies are not.
WEIGHTS_OFF = 0.01
_MEMORY, _WEIGHTS = "memory", "weights"
#: What is taken before a model is loaded.
_BEFORE = frozenset({"context", "groups"})


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


#: What SGLang finds gone after loading beside its tensors' segments (its "mem usage"): least, median, most
#: of seven start-up logs (sglang-001, -011, -019, -035, -066, sgl-project/sglang#4826, #18263).
_LOADING = "loading"
_LOADING_GIB = (0.0, 0.01, 0.2)


def loading() -> Estimate:
    """Return what SGLang finds gone after loading beside the tensors."""
    from kvgauge.estimate import Estimate  # noqa: PLC0415 - a given pool needs none

    low, central, high = (int(size * GIB) for size in _LOADING_GIB)
    words = "kernels and workspaces that come with the weights"
    return Estimate(_LOADING, "runtime", central, low, high, "measured", 7, words, "seven start-up logs")


class _Rules(NamedTuple):
    """How an engine deals memory out.

    Args:
        left: bytes of the pool from memory, weights and terms.
        takes: which terms come off what it may use before the pool.
        running: how it is run, for the terms.
        share_of: the bytes that its share is a share of; None where it has no share.
        share: as told, else the default of the version.
    """

    left: Callable[[Any, Sizes, tuple[Estimate, ...]], int]
    takes: Callable[[Estimate], bool]
    running: Callable[[Prepared, Any], Running]
    share_of: Callable[[Sizes, tuple[Estimate, ...]], int] | None = None
    share: Callable[[Any], Fraction] | None = None


def _total(sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    return sum(sizes[term] for term in terms)


def _vllm_left(asked: VllmCapacity, sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    share = ceil(sizes[_MEMORY] * _vllm_share(asked))
    return share - sizes[_WEIGHTS] - _total(sizes, tuple(term for term in terms if term.budgeted))


def _vllm_share(asked: VllmCapacity) -> Fraction:
    """Return ``gpu_memory_utilization``: as told, else this version's default."""
    return Fraction(asked.settings.utilization or asked.plan.rules.utilization)


def _sglang_left(asked: SglangCapacity, sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    before = _before(sizes, terms)
    slack = before * (1 - Fraction(str(asked.plan.mem_fraction_static)))
    loaded = sizes[_WEIGHTS] + _total(sizes, tuple(term for term in terms if term.name == _LOADING))
    return int(before - loaded - slack) - int(asked.plan.memory.image_reserve_bytes)


def _before(sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    """Return what is free before a model is loaded."""
    return sizes[_MEMORY] - _total(sizes, tuple(term for term in terms if term.name in _BEFORE))


def _trtllm_left(asked: TrtllmCapacity, sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    free = _after(sizes, terms)
    return free if free < 0 else int(asked.plan.quota(free))


def _after(sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    return sizes[_MEMORY] - sizes[_WEIGHTS] - _total(sizes, terms)


def _llama_left(asked: Capacity, sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    del asked
    return _after(sizes, terms)


def _vllm_running(prepared: Prepared, asked: VllmCapacity) -> Running:
    from kvgauge.overhead_running import vllm_running  # noqa: PLC0415 - one engine is loaded

    return vllm_running(prepared.architecture, asked.settings, prepared.model.raw.config)


def _sglang_running(prepared: Prepared, asked: SglangCapacity) -> Running:
    from kvgauge.overhead_running import sglang_running  # noqa: PLC0415 - as above

    return sglang_running(prepared.architecture, asked.plan.settings)


def _trtllm_running(prepared: Prepared, asked: TrtllmCapacity) -> Running:
    from kvgauge.overhead_running import tensorrt_llm_running  # noqa: PLC0415 - as above

    return tensorrt_llm_running(prepared.architecture, asked.plan.settings)


def _llama_running(prepared: Prepared, asked: Capacity) -> Running:
    del prepared, asked
    from kvgauge.overhead_drivers import Running  # noqa: PLC0415 - as above

    return Running("llama.cpp", None, 0, 0, 0)


def _theory_running(prepared: Prepared, asked: Capacity) -> Running:
    del prepared, asked
    from kvgauge.overhead_drivers import Running  # noqa: PLC0415 - as above

    return Running("theory", None, 0, 0, 0)


def _tenth(weights_bytes: int) -> Estimate:
    """Return what the rule of thumb takes beside weights and cache; a rule has no range."""
    from kvgauge.engines.theory_pool import OVERHEAD_SHARE  # noqa: PLC0415 - of one engine
    from kvgauge.estimate import Estimate  # noqa: PLC0415 - as above

    size = int(OVERHEAD_SHARE * weights_bytes)
    because = "a tenth of the weights, by a rule of thumb"
    return Estimate("rule", "runtime", size, size, size, "assumed", 0, because)


_RULES: Mapping[str, _Rules] = MappingProxyType(
    {
        "theory": _Rules(_llama_left, lambda term: True, _theory_running),
        "vllm": _Rules(
            _vllm_left, lambda term: term.budgeted, _vllm_running,
            lambda sizes, terms: sizes[_MEMORY], _vllm_share,
        ),
        "sglang": _Rules(
            _sglang_left, lambda term: term.name == _LOADING, _sglang_running,
            _before, lambda asked: Fraction(str(asked.plan.mem_fraction_static)),
        ),
        "tensorrt-llm": _Rules(
            _trtllm_left, lambda term: True, _trtllm_running, _after, lambda asked: asked.plan.free_fraction
        ),
        "llama.cpp": _Rules(_llama_left, lambda term: True, _llama_running),
    }
)  # fmt: skip


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
    def rules(self) -> _Rules:
        """How the engine deals memory out.

        Raises:
            FeatureUnsupportedError: that is not known of this engine.
        """
        name = self.prepared.request.engine
        if name not in _RULES:
            raise FeatureUnsupportedError(
                f"{name} has no pool of cache that a load could fit in",
                hint="--engine vllm has one; 'kvgauge engines' lists the engines",
                field="engine",
            )
        return _RULES[name]

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
        rules = self.rules
        if self.prepared.request.engine == "theory":
            return tuple(self._rank(asked, size, (_tenth(size),)) for size in self.weights)
        running = rules.running(self.prepared, asked)
        if running not in self._terms:
            from kvgauge.estimate import estimate  # noqa: PLC0415 - a given pool needs none

            found = estimate(self.prepared.architecture, self.weighed.stored, running)
            self._terms[running] = (*found, loading()) if running.engine == "sglang" else found
        terms = self._terms[running]
        if self.prepared.engine.reads_gguf:
            told = cast("LlamaCapacity", asked)
            return tuple(
                self._rank(asked, size, (*terms, *compute_of(told, rank)), cache_of(told, rank))
                for rank, size in enumerate(self.weights)
            )
        alike = {size: self._rank(asked, size, terms) for size in set(self.weights)}
        return tuple(alike[size] for size in self.weights)

    def _rank(
        self, asked: Capacity, weights_bytes: int, terms: tuple[Estimate, ...], needed: int | None = None
    ) -> Rank:
        rules, memory = self.rules, self.memory
        off = int(WEIGHTS_OFF * weights_bytes)
        sizes = self._central(weights_bytes, terms)
        central = rules.left(asked, sizes, terms)
        ends: list[tuple[str | Estimate, int, int]] = [
            (_MEMORY, memory.low_bytes - self._kept, memory.high_bytes - self._kept),
            (_WEIGHTS, weights_bytes + off, weights_bytes - off),
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
        taken = weights_bytes + _total(sizes, inside)
        return Rank(memory, weights_bytes, terms, left, taken, needed, inside)

    @property
    def _kept(self) -> int:
        return self.reserve_bytes if self.rules.share_of is None else 0

    def _central(self, weights_bytes: int, terms: tuple[Estimate, ...]) -> dict[str | Estimate, int]:
        sizes: dict[str | Estimate, int] = {term: term.central_bytes for term in terms}
        return sizes | {_MEMORY: self.memory.central_bytes - self._kept, _WEIGHTS: weights_bytes}

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
