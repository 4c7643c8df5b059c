"""Recorded figures of what a GPU holds beside weights and pool, and how their engines were run.

``data/overhead_evidence.jsonl`` has one figure a line: ``id`` of the log, ``engine`` and ``version`` (null:
not known), ``quantity`` (activation, non_torch, graphs, graph_estimate: vLLM's own guess of them, context:
what is gone of a card before the engine counts, buffers, pool), ``gib``, ``model`` (whose shapes hold) and
``family``; then how it was run: ``gpu``, ``capability``, ``memory_gib`` (total, as the runtime reports it),
``batched_tokens``, ``sequences``, ``max_model_tokens``, ``tensor``, ``nodes``, ``linked`` (by NVLink),
``expert_parallel``, ``speculative_tokens``, ``eager``, ``graph_sizes``, ``weights_gib``, ``utilization``;
``drafter``: what drafts, in vLLM's word; ``scope`` of a pool: ``set`` (the 60-run set on H100, and the
article), ``terms`` (the log prints every term), ``other``; ``count``: a figure that several models showed;
``source``; ``fit``: false for what only checks, ``note`` says why. A field that is left out is its default,
or not known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kvgauge.architecture import ModelArchitecture
from kvgauge.data import read_data
from kvgauge.overhead_drivers import (
    Running,
    Widths,
    captures_wide,
    graph_sizes,
    is_quantised,
    packs_experts,
    widths_of,
)
from kvgauge.overhead_encoder import image_item_tokens, image_token_bytes
from kvgauge.overhead_runner import is_second_runner
from kvgauge.stored_weights import StoredWeights
from kvgauge.units import GIB
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from kvgauge.models import Model

EVIDENCE = "overhead_evidence.jsonl"


@dataclass(frozen=True, slots=True)
class Record:
    """A recorded figure and how its engine was run."""

    id: str
    quantity: str
    figure_bytes: float
    family: str
    running: Running
    widths: Widths | None
    packed_experts: bool
    second_runner: bool
    fitted: bool
    count: int
    source: str
    facts: dict[str, Any]


@lru_cache(maxsize=1)
def evidence() -> tuple[Record, ...]:
    """Return all records; the models' shapes come from the shipped catalogue."""
    return tuple(_record(json.loads(line)) for line in read_data(EVIDENCE).splitlines())


@lru_cache(maxsize=64)
def _model(name: str) -> Model:
    from kvgauge.models import load  # noqa: PLC0415 - only a fit reads models

    return load(name, offline=True)


def running_of(row: dict[str, Any]) -> Running:
    """Return how the engine of an evidence row was run."""
    capability = row.get("capability")
    drafted = row.get("speculative_tokens", 0)
    sequences = row.get("sequences") or 0
    tokens = row.get("batched_tokens") or 0
    config: Mapping[str, object] = _model(row["model"]).raw.config if row.get("model") else {}
    return Running(
        row["engine"],
        row.get("version"),
        tokens,
        min(sequences, tokens) if tokens else sequences,
        row.get("max_model_tokens") or tokens,
        tensor=row.get("tensor", 1),
        nodes=row.get("nodes", 1),
        expert_parallel=row.get("expert_parallel", False),
        eager=row.get("eager", False),
        graph_sizes=row.get("graph_sizes") or _default_sizes(row, sequences, drafted),
        speculative_tokens=drafted,
        capability=(capability[0], capability[1]) if capability else None,
        linked=row.get("linked"),
        image_token_bytes=image_token_bytes(config),
        image_item_tokens=image_item_tokens(config),
        drafter=row.get("drafter", "mtp") if drafted else "",
    )


def _default_sizes(row: dict[str, Any], sequences: int, drafted: int) -> int:
    if row["engine"] != "vllm":
        return 0
    capability = row.get("capability")
    kind = str(_model(row["model"]).raw.config.get("model_type", "")) if row.get("model") else ""
    wide = captures_wide(row.get("version"), capability[0] if capability else 0, kind)
    return graph_sizes(row.get("version"), sequences, drafted, wide=wide)


def _record(row: dict[str, Any]) -> Record:
    running = running_of(row)
    widths, packed, second = None, False, False
    if row.get("model"):
        model = _model(row["model"])
        stored = _stored(row["model"], row.get("weights"))
        if stored is not None:
            widths = widths_of(model.architecture, stored, running)
            packed = packs_experts(stored.families)
            experts, quantised = widths is not None and widths.has_experts, is_quantised(stored.families)
            second = is_second_runner(model.architecture, running, experts=experts, quantised=quantised)
    return Record(
        row["id"],
        row["quantity"],
        row["gib"] * GIB,
        row.get("family", ""),
        running,
        widths,
        packed,
        second,
        row["fit"],
        row.get("count", 1),
        row["source"],
        row,
    )


@lru_cache(maxsize=64)
def _stored(name: str, scheme: str | None) -> StoredWeights | None:
    model = _model(name)
    return (model.weighed if scheme is None else model.weighed_as(scheme)).stored


#: Shapes of nothing, for records that name no model.
_NO_MODEL = ModelArchitecture("", "", (), 0, "bf16")


def stored_of(record: Record) -> tuple[ModelArchitecture, StoredWeights | None]:
    """Return the shapes and the weights of a record's model; empty ones where none is named."""
    name = record.facts.get("model")
    if not name:
        return _NO_MODEL, None
    return _model(name).architecture, _stored(name, record.facts.get("weights"))


def loaded_weights(record: Record) -> int | None:
    """Return the bytes that a rank had loaded: as the record says, else what vLLM counts after loading."""
    printed = record.facts.get("weights_gib")
    if printed is not None:
        return int(printed * GIB)
    from kvgauge.engines.vllm_load import loaded_bytes  # noqa: PLC0415 - few records leave them out
    from kvgauge.engines.vllm_weights import shard_policy  # noqa: PLC0415
    from kvgauge.readers.hf.rotary import read_rotary  # noqa: PLC0415
    from kvgauge.weight_ranks import rank_tensors  # noqa: PLC0415

    architecture, stored = stored_of(record)
    if stored is None:
        return None
    policy = shard_policy(
        model_type=architecture.model_type,
        compute_capability=record.running.capability or (9, 0),
        model_dtype=architecture.model_dtype,
        version=record.running.version,
    )
    held = rank_tensors(
        stored, Parallelism(record.running.tensor), num_layers=architecture.num_layers, policy=policy
    )
    rotary = read_rotary(_model(record.facts["model"]).raw.config)
    return loaded_bytes(held, rotary, model_type=architecture.model_type, version=record.running.version)
