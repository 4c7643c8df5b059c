"""``accuracy``: replay recorded measurements through the code of the commands. The public call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kvgauge.data import data_file
from kvgauge.errors import KvgaugeError, MissingFieldError, UnknownArchitectureError
from kvgauge.replay import llamacpp, memory, plain, sglang, sglang_tokens, tensorrt_llm, vllm, weights
from kvgauge.replay.figures import Figure, Skip
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.outcomes import AccuracyResult, Outcome
from kvgauge.replay.reading import read_records
from kvgauge.replay.records import QUANTITIES, Record

EVIDENCE = "evidence.jsonl"
Predictor = Callable[[Record, ModelFinder], Figure]


class _Engine(NamedTuple):
    """How one engine is replayed: its plan, the figures of a plan, the figures that need none."""

    replays: Callable[[Record, ModelFinder], Any]
    figures: Mapping[str, Callable[[Any], Figure]]
    others: Mapping[str, Predictor] = MappingProxyType({})


_WEIGHTS: Mapping[str, Predictor] = MappingProxyType({"weights": weights.weights})
_ENGINES: Mapping[str, _Engine] = MappingProxyType({
    "vllm": _Engine(vllm.replays, vllm.FIGURES, MappingProxyType({
        **_WEIGHTS, "pool": memory.pool, "activation": memory.activation, "graphs": memory.graphs,
    })),
    "sglang": _Engine(sglang.replays, sglang.FIGURES, MappingProxyType({
        **_WEIGHTS, "kv_tokens": sglang_tokens.kv_tokens,
    })),
    "tensorrt-llm": _Engine(tensorrt_llm.replays, tensorrt_llm.FIGURES, MappingProxyType(dict(_WEIGHTS))),
    "llama.cpp": _Engine(llamacpp.replays, llamacpp.FIGURES, MappingProxyType(dict(_WEIGHTS))),
})  # fmt: skip
_PLAIN = _Engine(plain.replays, plain.FIGURES)

#: Fields that a quantity is printed in -> it was measured, though its inputs may not be known.
_PRINTED: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "kv_bytes_per_token": ("kv_tokens", "tokens"), "kv_tokens": ("kv_tokens", "tokens"),
    "max_concurrency": ("max_concurrency",), "num_blocks": ("gpu_blocks", "blocks"),
    "kv_needed": ("kv_needed_gib",), "kv_cache_mib": ("kv_mib", "kv_gb", "k_gb"),
    "state_mib": ("rs_mib", "ssm_gb"),
    "weights": ("weights_gib", "weights_gb"), "pool": ("kv_available_gib",),
    "activation": ("activation_peak_gib",), "graphs": ("graph_gib",), "compute": ("compute_mib",),
})  # fmt: skip


def accuracy(path: str | Path | None = None, *, configs: str | Path | None = None) -> AccuracyResult:
    """Replay recorded measurements and return every figure beside its prediction.

    Args:
        path: one JSON object a line, as ``docs/accuracy.md`` describes; None: the records that ship.
        configs: a folder of configs, looked in before the folders beside ``path`` and the catalogue.

    Raises:
        KvgaugeError: the file can't be read, or a line is no record.

    >>> found = accuracy()
    >>> sum(row.status == "exact" for row in found.outcomes) > 300
    True
    """
    file = Path(path) if path is not None else None
    finder = ModelFinder.beside(file, Path(configs) if configs is not None else None)
    records = read_records(file if file is not None else data_file(EVIDENCE))
    found = tuple(outcomes(records, finder))
    if file is not None:
        return AccuracyResult(found, file.name)
    from kvgauge.overhead_accuracy import cross_validation, summaries  # noqa: PLC0415 - of the shipped records

    return AccuracyResult(found, EVIDENCE, tuple(summaries(cross_validation())))


def outcomes(records: Iterable[Record], finder: ModelFinder) -> Iterator[Outcome]:
    """Yield the outcome of every quantity of every record, in the order of the records."""
    for record in records:
        engine = _ENGINES.get(record.family, _PLAIN)
        wanted = set(record.usable_for)
        plan = _Once(engine, record, finder)
        for quantity in QUANTITIES:
            if quantity in wanted:
                found = _outcome(plan, engine, quantity)
                if "usable_for" in record.fields or found.skip != "null":
                    yield found
            elif any(record.number(name) is not None or record.inner(name) for name in _PRINTED[quantity]):
                yield Outcome.of(record, quantity, skip=_untied(record))


class _Once:
    """The plan of a record, made when it is asked for first."""

    def __init__(self, engine: _Engine, record: Record, finder: ModelFinder) -> None:
        self.engine, self.record, self.finder = engine, record, finder
        self._made: Any = None
        self._failed: Exception | None = None

    def get(self) -> Any:  # noqa: ANN401 - each engine has its own
        if self._made is None and self._failed is None:
            try:
                self._made = self.engine.replays(self.record, self.finder)
            except (Skip, KvgaugeError) as error:
                self._failed = error
        if self._failed is not None:
            raise self._failed
        return self._made


def _outcome(plan: _Once, engine: _Engine, quantity: str) -> Outcome:
    record = plan.record
    try:
        return Outcome.of(record, quantity, _figure(plan, engine, quantity))
    except Skip as skip:
        return Outcome.of(record, quantity, skip=skip)
    except (MissingFieldError, UnknownArchitectureError) as error:
        return Outcome.of(record, quantity, skip=Skip("no_shape", error.message))
    except KvgaugeError as error:
        return Outcome.refused(record, quantity, error.message)
    except (ArithmeticError, ValueError, LookupError) as error:
        # Figures of a record may be anything; one that no formula holds is none.
        return Outcome.of(record, quantity, skip=Skip("null", type(error).__name__))


def _figure(plan: _Once, engine: _Engine, quantity: str) -> Figure:
    if quantity in engine.figures:
        return engine.figures[quantity](plan.get())
    if quantity in engine.others:
        return engine.others[quantity](plan.record, plan.finder)
    raise Skip("later", quantity)


def _untied(record: Record) -> Skip:
    """Return why a figure that was measured is not replayed."""
    doubts = record.doubts
    if "fixture" in doubts:
        return Skip("fixture")
    if record.text("config_ref") is None and not record.inner("gguf_metadata"):
        return Skip("no_shape")
    return Skip("soft") if record.fields.get("soft") is True or doubts else Skip("null")
