"""Replay the terms of memory that are estimates: vLLM's activation peak, graphs, and the pool left."""

from __future__ import annotations

from collections.abc import Iterable

from kvgauge.card_budget import WEIGHTS_OFF
from kvgauge.engines.vllm.versions import parse_version, rules_for
from kvgauge.errors import KvgaugeError
from kvgauge.estimate import Estimate, estimate, pool_range
from kvgauge.hardware import MemoryRange, parse_gpu
from kvgauge.overhead_runner import COUNTS_CONSUMED
from kvgauge.overhead_running import vllm_running
from kvgauge.replay import weights
from kvgauge.replay.figures import Figure, Skip, needed
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.replay.vllm import HALF_STEP, settings_of, total_gib
from kvgauge.stored_weights import StoredWeights
from kvgauge.units import GIB


def activation(record: Record, finder: ModelFinder) -> Figure:
    """GiB at the peak of the profiling pass, weights apart."""
    peak = record.number("activation_peak_gib")
    whole, loaded = record.number("peak_torch_gib", within="extra"), record.number("weights_gib")
    if peak is None and whole is not None and loaded is not None:
        peak = whole - loaded
    measured = needed(peak, "activation_peak_gib")
    version = settings_of(record).version
    # A log that prints what lies beside torch apart is of an earlier version, whatever its date says.
    is_apart = record.number("non_torch_gib") is not None
    if is_apart or version is None or parse_version(version) < COUNTS_CONSUMED:
        return _of_term(record, finder, measured, "activations")
    return _with_guess(record, finder, measured)


def _with_guess(record: Record, finder: ModelFinder, measured: float) -> Figure:
    """Return the peak as vLLM prints it from 0.27 on: with its guess of the graphs, where it makes one."""
    terms = [t for t in _terms(record, finder) if t.name in ("activations", "graph_estimate")]
    if not any(term.name == "activations" for term in terms):
        raise Skip("no_shape", "activations")
    central, low, high = (
        sum(getattr(term, f"{end}_bytes") for term in terms) / GIB for end in ("central", "low", "high")
    )
    return Figure(measured, central, HALF_STEP, low, high, because="; ".join(t.because for t in terms))


def graphs(record: Record, finder: ModelFinder) -> Figure:
    """GiB of the graphs that are captured; where only the engine's own guess is printed, of that."""
    printed = record.number("graph_gib")
    if printed is not None:
        return _of_term(record, finder, printed, "graphs")
    guess = needed(record.number("graph_est_gib", within="extra"), "graph_gib")
    return _of_term(record, finder, guess, "graph_estimate")


def pool(record: Record, finder: ModelFinder) -> Figure:
    """GiB of the pool: the share of the card, less weights and the terms as they are predicted."""
    measured = needed(record.number("kv_available_gib"), "kv_available_gib")
    memory = needed(_memory(record), "total_gpu_gib")
    settings = settings_of(record)
    told = settings.utilization or rules_for(settings.version).utilization
    share = record.number("gpu_memory_utilization") or float(told)
    loaded = _weights(record, finder)
    total = memory.central_bytes
    low, central, high = pool_range(
        total, str(share), int(loaded * GIB), _terms(record, finder),
        weights_off_bytes=0 if record.number("weights_gib") is not None else int(WEIGHTS_OFF * loaded * GIB),
        memory_off_bytes=(total - memory.low_bytes, memory.high_bytes - total),
    )  # fmt: skip
    return Figure(
        measured, central / GIB, HALF_STEP, low / GIB, high / GIB,
        because=f"{share} of {total / GIB:.2f} GiB, less {loaded:.2f} of weights and the terms beside them",
    )  # fmt: skip


def _memory(record: Record) -> MemoryRange | None:
    """Return the memory of the card: as printed, else of the catalogue's card of that name."""
    printed = record.number("total_gpu_gib")
    if printed is not None:
        return _exactly(printed)
    try:
        return parse_gpu(record.text("gpu") or "")[0].memory
    except KvgaugeError:
        written = total_gib(record)
        return None if written is None else _exactly(written)


def _exactly(gib: float) -> MemoryRange:
    size = int(gib * GIB)
    return MemoryRange(size, size, size, "measured", "the record")


def _weights(record: Record, finder: ModelFinder) -> float:
    """Return GiB of weights: as printed, else as predicted."""
    printed = record.number("weights_gib")
    if printed is not None:
        return printed
    probe = Record({**record.fields, "weights_gib": 1.0})
    return weights.weights(probe, finder).predicted


def _of_term(record: Record, finder: ModelFinder, measured: float, name: str) -> Figure:
    terms = {term.name: term for term in _terms(record, finder)}
    # Versions before the engine's own guess print none; what is captured is the nearest to it.
    found = terms.get(name) or (terms.get("graphs") if name == "graph_estimate" else None)
    if found is None:
        raise Skip("no_shape" if name == "activations" else "null", name)
    return Figure(
        measured, found.central_bytes / GIB, HALF_STEP, found.low_bytes / GIB, found.high_bytes / GIB,
        because=found.because,
    )  # fmt: skip


def _terms(record: Record, finder: ModelFinder) -> Iterable[Estimate]:
    settings = settings_of(record)
    model, scheme = weights.model_of(record, finder)
    stored: StoredWeights | None
    try:
        stored = weights.stored_of(model, scheme)
    except (Skip, KvgaugeError):
        stored = model.weighed.stored  # shapes are the same in every scheme
    running = vllm_running(model.architecture, settings, model.raw.config)
    return estimate(model.architecture, stored, running)
