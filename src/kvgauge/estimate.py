"""What a GPU holds beside weights and pool: activation peak, graphs, libraries, the driver's context.

Each term is a formula in what it really depends on (``overhead_terms``), its constants fitted to records and
shipped with how many there were (``data/overhead.json``). No share of the weights is taken for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil, hypot
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm.versions import parse_version
from kvgauge.overhead_drivers import Running, Widths, is_quantised, packs_experts, widths_of
from kvgauge.overhead_runner import COUNTS_CONSUMED, SECOND_GUESSES_GRAPHS, is_second_runner, version_of
from kvgauge.overhead_terms import (
    Coefficients,
    Range,
    activation,
    beside_torch,
    captured,
    coefficients,
    estimated_graphs,
    forward_pass,
    joined_ranks,
    logits_bytes,
    sampling_state,
)
from kvgauge.stored_weights import StoredWeights
from kvgauge.values import dataclass

Kind = Literal["activations", "graphs", "runtime", "compute"]

#: From here on an estimate of the graphs is taken off the pool (vllm/envs.py; the log says 0.21).
_ESTIMATES_GRAPHS = parse_version("0.20.0.dev0")
#: The same on cards of other makers (v1/worker/gpu_worker.py).
_OTHERS_ESTIMATE = parse_version("0.26.0.dev0")
#: Of a forward pass that no record stands behind.
_ASSUMED_SPREAD = 0.5
#: Copies of fp32 logits while sampling: themselves and their probabilities.
_SAMPLED = 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """One term.

    Args:
        held: memory that is taken; else a figure that an engine only reckons with.
        budgeted: comes off the engine's share of the card before the pool is sized.
        grade: ``measured`` where records of this kind stand behind the figure, else ``assumed``.
        records: how many.
    """

    name: str
    kind: Kind
    central_bytes: int
    low_bytes: int
    high_bytes: int
    grade: str
    records: int
    because: str
    source: str = ""
    held: bool = True
    budgeted: bool = True


def estimate(
    architecture: ModelArchitecture,
    stored: StoredWeights | None,
    running: Running,
    *,
    constants: Mapping[str, Coefficients] | None = None,
) -> tuple[Estimate, ...]:
    """Return the terms of one rank.

    Args:
        stored: the whole model's weights, for the shapes in them. None, or no embedding among them: terms
            that depend on shapes (activations, graphs) are left out.
        running: how the engine is run, defaults filled in (``overhead_running``).
        constants: others than the shipped ones, by engine.

    >>> import kvgauge
    >>> model = kvgauge.load("Qwen/Qwen3-8B")
    >>> running = Running("vllm", "0.19.0", 8192, 1024, 32768, graph_sizes=51, capability=(9, 0))
    >>> [(e.name, round(e.central_bytes / 2**30, 1)) for e in estimate(model.architecture,
    ...     model.weighed.stored, running)]
    [('activations', 2.2), ('non_torch', 0.2), ('graphs', 0.5), ('context', 0.6)]
    """
    found = (constants or coefficients()).get(running.engine)
    if found is None:
        return ()
    widths, packed, second = None, False, False
    if stored is not None:
        widths = widths_of(architecture, stored, running)
        packed = packs_experts(stored.families)
    if widths is not None and stored is not None:
        quantised = is_quantised(stored.families)
        second = is_second_runner(architecture, running, experts=widths.has_experts, quantised=quantised)
    return tuple(_TERMS[running.engine](widths, running, found, _Kind(packed, second)))


class _Kind(NamedTuple):
    """Args: packed: experts are in less than 8 bits. second: vLLM's second model runner serves."""

    packed: bool
    second: bool


def _vllm(widths: Widths | None, running: Running, found: Coefficients, kind: _Kind) -> Iterator[Estimate]:
    if widths is not None:
        peak = activation(widths, running, found, packed_experts=kind.packed, second=kind.second)
        yield _made("activations", "activations", peak, _peak_words(widths, running, peak))
        if kind.second:
            yield _sampling_state(widths, running)
    ranks = running.tensor * running.pipeline * running.replicas
    beside = beside_torch(running, found["non_torch"])
    words = "libraries and workspaces outside torch" + (", buffers between ranks" if ranks > 1 else "")
    yield _made("non_torch", "runtime", beside, words)
    if widths is not None:
        yield from _vllm_graphs(widths, running, found, kind)
    yield _made("context", "runtime", _plain(found["context"]), "the driver's context", budgeted=False)


def _sampling_state(widths: Widths, running: Running) -> Estimate:
    size = sampling_state(widths, running)
    words = f"counts of {widths.vocabulary:,} words for {running.sequences:,} sequences"
    source = "vllm/v1/worker/gpu/sample/penalties.py"
    # Before, the peak is counted from where they are held already, and they are no weights: none counts them.
    budgeted = version_of(running) >= COUNTS_CONSUMED
    return Estimate(
        "sampling_state", "runtime", size, size, size, "exact", 0, words, source, budgeted=budgeted
    )


def _vllm_graphs(widths: Widths, running: Running, found: Coefficients, kind: _Kind) -> Iterator[Estimate]:
    words = f"{running.graph_sizes} batch sizes x {widths.layers} layers"
    graphs = captured(widths, running, found["graphs"])
    if not graphs.high:
        return
    yield _made("graphs", "graphs", graphs, words, budgeted=False)
    version = version_of(running)
    since = _OTHERS_ESTIMATE if running.is_other_maker else _ESTIMATES_GRAPHS
    if version >= (SECOND_GUESSES_GRAPHS if kind.second else since):
        guess = estimated_graphs(widths, running, found)
        yield _made(
            "graph_estimate", "graphs", guess, f"vllm's own guess before capture: {words}", held=False
        )


def _sglang(widths: Widths | None, running: Running, found: Coefficients, kind: _Kind) -> Iterator[Estimate]:
    del kind
    if widths is not None:
        yield from _forward(widths, running)
        graphs = captured(widths, running, found["graphs"])
        if graphs.high:
            words = f"{running.graph_sizes} batch sizes x {widths.layers} layers"
            yield _made("graphs", "graphs", graphs, words)
    yield _made("buffers", "runtime", _plain(found["buffers"]), "buffers of batches and attention")
    if running.tensor * running.pipeline > 1:
        yield _made("groups", "runtime", joined_ranks(running, found["groups"]), "groups of ranks")
    yield _made("context", "runtime", _plain(found["context"]), "the driver's context")


def _tensorrt_llm(
    widths: Widths | None, running: Running, found: Coefficients, kind: _Kind
) -> Iterator[Estimate]:
    del kind
    if widths is not None:
        yield from _forward(widths, running)
    yield _made("context", "runtime", _plain(found["context"]), "the driver's context")


def _llama_cpp(
    widths: Widths | None, running: Running, found: Coefficients, kind: _Kind
) -> Iterator[Estimate]:
    """Yield what the memory breakdown calls unaccounted; compute buffers are the engine's own rules."""
    del widths, running, kind
    yield _made("context", "runtime", _plain(found["context"]), "the driver's context")


_TERMS: Mapping[
    str, Callable[[Widths | None, Running, Coefficients, _Kind], Iterator[Estimate]]
] = MappingProxyType(
    {"vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt_llm, "llama.cpp": _llama_cpp}
)  # fmt: skip


def _forward(widths: Widths, running: Running) -> Iterator[Estimate]:
    """Yield a forward pass or a step of sampling, whichever holds more: the physics, no record behind it."""
    central = max(
        forward_pass(widths, running.batched_tokens, widths.block), _SAMPLED * logits_bytes(widths, running)
    )
    shown = Range(central * (1 - _ASSUMED_SPREAD), central, central * (1 + _ASSUMED_SPREAD), "assumed", 0)
    words = f"a pass of {running.batched_tokens:,} tokens, or sampling for {running.sequences:,} sequences"
    yield _made("activations", "activations", shown, words)


def _peak_words(widths: Widths, running: Running, peak: Range) -> str:
    if peak.because == "forward":
        return f"a forward pass of {running.batched_tokens:,} tokens, {widths.hidden:,} wide"
    tokens = running.batched_tokens
    if peak.because == "encoder":
        return f"a pass of the encoder for images of {max(tokens, running.image_item_tokens):,} tokens"
    rows = min(running.sequences, tokens)
    return f"logits of {rows:,} sequences x {widths.vocabulary:,} words, beside {tokens:,} tokens"


def _plain(row: Mapping[str, Any]) -> Range:
    grade = "measured" if row["records"] else "assumed"
    return Range(row["low"], row["bytes"], row["high"], grade, row["records"], row["source"])


def _made(
    name: str, kind: Kind, found: Range, because: str, *, held: bool = True, budgeted: bool = True
) -> Estimate:
    central = int(found.central)
    return Estimate(
        name, kind, central, min(central, int(found.low)), max(central, ceil(found.high)), found.grade,
        found.records, because, found.source, held, budgeted,
    )  # fmt: skip


def pool_range(
    memory_bytes: int,
    utilization: str | float,
    weights_bytes: int,
    terms: Iterable[Estimate],
    *,
    weights_off_bytes: int = 0,
    memory_off_bytes: tuple[int, int] = (0, 0),
) -> tuple[int, int, int]:
    """Return (low, central, high) of vLLM's pool on one rank; none is below 0.

    The share of the card that is asked for, less weights and what is budgeted. The terms vary for reasons of
    their own, so their distances add up as squares.

    Args:
        memory_bytes: what the runtime reports as the total.
        weights_bytes: loaded on the rank.
        weights_off_bytes: how far off they may be, either way.
        memory_off_bytes: how much less and more the total may be.

    >>> gib = 1 << 30
    >>> term = Estimate("activations", "activations", 2 * gib, gib, 4 * gib, "measured", 1, "")
    >>> [size / gib for size in pool_range(80 * gib, "0.9", 16 * gib, [term])]
    [52.0, 54.0, 55.0]
    """
    share = ceil(memory_bytes * Fraction(str(utilization)))
    taken = [term for term in terms if term.budgeted]
    central = share - weights_bytes - sum(term.central_bytes for term in taken)
    less, more = (float(Fraction(str(utilization)) * size) for size in memory_off_bytes)
    up = hypot(weights_off_bytes, more, *(term.central_bytes - term.low_bytes for term in taken))
    down = hypot(weights_off_bytes, less, *(term.high_bytes - term.central_bytes for term in taken))
    return max(0, int(central - down)), max(0, central), max(0, int(central + up))


__all__ = ["Estimate", "Running", "estimate", "pool_range"]
