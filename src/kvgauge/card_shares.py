"""How each engine deals out the memory of a card: what comes off, and what is left for cache and state.

Every engine takes memory in its own order. vLLM: a share of the card, less weights and what it budgets.
SGLang: the static fraction of what is free before loading, less weights; activations and graphs live in the
rest. TensorRT-LLM: a share of what is free after weights and activations. llama.cpp: everything that weights,
compute buffers and the driver's context leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kvgauge.units import GIB

if TYPE_CHECKING:
    from kvgauge.engines.pools import Capacity
    from kvgauge.engines.sglang.capacity import SglangCapacity
    from kvgauge.engines.tensorrt_llm.capacity import TrtllmCapacity
    from kvgauge.engines.vllm.engine import VllmCapacity
    from kvgauge.estimate import Estimate, Running
    from kvgauge.preparing import Prepared

    Sizes = Mapping[str | Estimate, int]

#: Keys of the two sizes that are no terms.
MEMORY, WEIGHTS = "memory", "weights"
#: What is taken before a model is loaded.
_BEFORE = frozenset({"context", "groups"})

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


class Rules(NamedTuple):
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


def total(sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    """Return what terms come to."""
    return sum(sizes[term] for term in terms)


def _vllm_left(asked: VllmCapacity, sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    share = ceil(sizes[MEMORY] * _vllm_share(asked))
    return share - sizes[WEIGHTS] - total(sizes, tuple(term for term in terms if term.budgeted))


def _vllm_share(asked: VllmCapacity) -> Fraction:
    """Return ``gpu_memory_utilization``: as told, else this version's default."""
    return Fraction(asked.settings.utilization or asked.plan.rules.utilization)


def _sglang_left(asked: SglangCapacity, sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    before = _before(sizes, terms)
    slack = before * (1 - Fraction(str(asked.plan.mem_fraction_static)))
    loaded = sizes[WEIGHTS] + total(sizes, tuple(term for term in terms if term.name == _LOADING))
    return int(before - loaded - slack) - int(asked.plan.memory.image_reserve_bytes)


def _before(sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    """Return what is free before a model is loaded."""
    return sizes[MEMORY] - total(sizes, tuple(term for term in terms if term.name in _BEFORE))


def _trtllm_left(asked: TrtllmCapacity, sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    free = _after(sizes, terms)
    return free if free < 0 else int(asked.plan.quota(free))


def _after(sizes: Sizes, terms: tuple[Estimate, ...]) -> int:
    return sizes[MEMORY] - sizes[WEIGHTS] - total(sizes, terms)


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


def tenth(weights_bytes: int) -> Estimate:
    """Return what the rule of thumb takes beside weights and cache; a rule has no range."""
    from kvgauge.engines.theory_pool import OVERHEAD_SHARE  # noqa: PLC0415 - of one engine
    from kvgauge.estimate import Estimate  # noqa: PLC0415 - as above

    size = int(OVERHEAD_SHARE * weights_bytes)
    because = "a tenth of the weights, by a rule of thumb"
    return Estimate("rule", "runtime", size, size, size, "assumed", 0, because)


RULES: Mapping[str, Rules] = MappingProxyType(
    {
        "theory": Rules(_llama_left, lambda term: True, _theory_running),
        "vllm": Rules(
            _vllm_left, lambda term: term.budgeted, _vllm_running,
            lambda sizes, terms: sizes[MEMORY], _vllm_share,
        ),
        "sglang": Rules(
            _sglang_left, lambda term: term.name == _LOADING, _sglang_running,
            _before, lambda asked: Fraction(str(asked.plan.mem_fraction_static)),
        ),
        "tensorrt-llm": Rules(
            _trtllm_left, lambda term: True, _trtllm_running, _after, lambda asked: asked.plan.free_fraction
        ),
        "llama.cpp": Rules(_llama_left, lambda term: True, _llama_running),
    }
)  # fmt: skip


__all__ = ["MEMORY", "RULES", "WEIGHTS", "Rules", "loading", "tenth", "total"]
