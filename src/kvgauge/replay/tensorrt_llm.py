"""Replay TensorRT-LLM: the plan of a record's flags, given the pool or the tokens that its log prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.tensorrt_llm import TrtllmPlan, TrtllmSettings, plan
from kvgauge.engines.tensorrt_llm.flags import parse_flags
from kvgauge.models import load
from kvgauge.replay.figures import Figure, Skip, needed
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.units import GIB

HALF_STEP = 0.005
#: Stands in where a record names no model: blocks and quota do not depend on one.
_ANY_MODEL = "meta-llama/Llama-3.1-8B-Instruct"
#: Tokens of a block in engines built before the PyTorch backend, where the record does not say it.
_UNNAMED = ("num_blocks", "pool")


@dataclass(frozen=True)
class TrtllmReplay:
    """One record and the plan of its settings."""

    record: Record
    found: TrtllmPlan

    def pool_and_tokens(self) -> tuple[float, int]:
        """Return the printed GiB and tokens."""
        tokens = self.record.whole("tokens")
        pool = needed(self.record.number("kv_gib"), "kv_gib")
        if not tokens or pool <= 0:
            raise Skip("null", "tokens")
        return pool, tokens


@lru_cache(maxsize=1)
def _any_model() -> ModelArchitecture:
    return load(_ANY_MODEL, offline=True).architecture


def replays(record: Record, finder: ModelFinder) -> TrtllmReplay:
    """Return the plan of a record.

    Raises:
        Skip: no public shape. KvgaugeError: the engine, as it is known here, refuses the settings.
    """
    named = record.text("config_ref") is not None or not set(record.usable_for) <= set(_UNNAMED)
    architecture = finder.model(record).architecture if named else _any_model()
    return TrtllmReplay(record, plan(architecture, settings_of(record)))


def settings_of(record: Record) -> TrtllmSettings:
    """Return what the engine was told, the rest left to its defaults."""
    settings = parse_flags(record.text("engine_args") or "")
    changes: dict[str, object] = {"version": (record.text("engine_version") or "").partition("/")[0] or None}
    if record.text("kv_dtype") in ("fp16", "float16"):
        changes["kv_dtype"] = "float16"
    if "kv_cache_dtype fp8" in record.assumed:
        changes["kv_dtype"] = "fp8"
    if settings.tokens_per_block is None and record.whole("tokens_per_block"):
        changes["tokens_per_block"] = record.whole("tokens_per_block")
    return replace(settings, **changes)  # type: ignore[arg-type]


def bytes_per_token(replay: TrtllmReplay) -> Figure:
    """Bytes of the pool over its tokens."""
    pool, tokens = replay.pool_and_tokens()
    each = float(replay.found.bytes_per_token)
    return Figure(pool * GIB / tokens, each, HALF_STEP * GIB / tokens, because=f"{each:,.10g} B a token")


def kv_tokens(replay: TrtllmReplay) -> Figure:
    """Tokens of the pools inside the rounding, in whole blocks."""
    pool, tokens = replay.pool_and_tokens()
    low, high = (
        replay.found.pool(int((pool + step) * GIB)).capacity_tokens for step in (-HALF_STEP, HALF_STEP)
    )
    block = replay.found.tokens_per_block
    inside = min(max(tokens // block * block, low), high)
    return Figure(tokens, inside, because=f"blocks of {block} tokens")


def num_blocks(replay: TrtllmReplay) -> Figure:
    """Blocks of the printed tokens."""
    blocks, tokens = replay.record.whole("blocks"), replay.record.whole("tokens")
    if not blocks or not tokens:
        raise Skip("null", "tokens" if blocks else "blocks")
    return Figure(blocks, tokens / replay.found.tokens_per_block)


def pool(replay: TrtllmReplay) -> Figure:
    """Whole blocks of the share of what is free, both printed to 0.01 GiB."""
    free = needed(replay.record.number("available_gib", within="extra"), "extra.available_gib")
    measured = needed(replay.record.number("kv_gib"), "kv_gib")
    found = replay.found
    block = found.bytes_per_token * found.tokens_per_block / GIB
    ours = found.quota(int(free * GIB)) / GIB
    return Figure(measured, ours, 2 * HALF_STEP + block, because="a share of the free memory")


def cache_size(replay: TrtllmReplay) -> Figure:
    """MiB of the printed tokens."""
    pool, tokens = replay.pool_and_tokens()
    return Figure(pool * 1024, tokens * float(replay.found.bytes_per_token) / (1 << 20), HALF_STEP * 1024)


FIGURES: Mapping[str, Callable[[TrtllmReplay], Figure]] = MappingProxyType({
    "kv_bytes_per_token": bytes_per_token,
    "kv_tokens": kv_tokens,
    "num_blocks": num_blocks,
    "kv_cache_mib": cache_size,
    "pool": pool,
})  # fmt: skip
