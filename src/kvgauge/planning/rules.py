"""What is looked at: counts, bounds and words of each engine, from ``data/planning.json``."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import lru_cache

from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.launching import gpus_per_machine
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class EngineRules:
    """How an engine can be spread, and what it can be told to shrink.

    Args:
        name: of the engine.
        axes: options of parallelism that it has: tp, pp, dp, ep, dcp.
        replicas: ``any``; ``attention``: one engine has none but attention groups, one a rank; ``none``.
        max_pipeline: most pipeline stages that are looked at.
        kv_word: the KV dtype of half the bytes, in its own words.
        schemes: quantisations of weights that it runs, for checkpoints that are not in one.
        needs_architecture: it runs on cards whose architecture (compute capability, gfx name) is known.
    """

    name: str
    axes: frozenset[str]
    replicas: str
    max_pipeline: int
    kv_word: str
    schemes: tuple[str, ...]
    needs_architecture: bool


@dataclass(frozen=True, slots=True)
class PlanRules:
    """What holds for every engine.

    Args:
        margin: of what the engine may use of a GPU, kept beside the load.
        machine_gpus: GPUs of one machine, inside which tensor parallelism stays.
        counts: numbers of GPUs that are looked at: of one machine, then of several.
        max_tensor: most tensor-parallel ranks.
        clustered_kinds: kinds of devices that are looked at in several machines too.
        lone_kinds: kinds of devices that are used one by one.
        nvidia_formats: formats of weights that are looked at on NVIDIA's cards alone: engines have no kernels
            for them elsewhere.
        weights_only_kinds: kinds that no engine known here runs on: what is said of them is how many hold
            the weights.
    """

    margin: Fraction
    machine_gpus: int
    counts: tuple[int, ...]
    max_tensor: int
    clustered_kinds: frozenset[str]
    lone_kinds: frozenset[str]
    weights_only_kinds: frozenset[str]
    nvidia_formats: frozenset[str]


@lru_cache(maxsize=1)
def plan_rules() -> PlanRules:
    """Return the rules of every engine."""
    row = json.loads(read_data("planning.json"))
    return PlanRules(
        Fraction(row["margin_fraction"]),
        gpus_per_machine(),
        tuple(row["counts"]),
        row["max_tensor"],
        frozenset(row["clustered_kinds"]),
        frozenset(row["lone_kinds"]),
        frozenset(row["weights_only_kinds"]),
        frozenset(row["nvidia_formats"]),
    )


@lru_cache(maxsize=8)
def engine_rules(name: str) -> EngineRules:
    """Return the rules of an engine.

    Raises:
        FeatureUnsupportedError: it is no server.

    >>> sorted(engine_rules("llama.cpp").axes), engine_rules("vllm").kv_word
    (['pp'], 'fp8')
    """
    row = json.loads(read_data("planning.json"))["engines"].get(name)
    if row is None:
        raise FeatureUnsupportedError(
            f"{name} is no server that plan could lay out over GPUs",
            hint="--engine vllm, sglang, tensorrt-llm or llama.cpp is one",
            field="engine",
        )
    return EngineRules(
        name,
        frozenset(row["axes"]),
        row["replicas"],
        row["max_pipeline"],
        row["kv"],
        tuple(row["weights"]),
        row["needs_architecture"],
    )


__all__ = ["EngineRules", "PlanRules", "engine_rules", "plan_rules"]
