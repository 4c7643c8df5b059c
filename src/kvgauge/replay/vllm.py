"""Replay vLLM: the plan of a record's flags and version, given the pool or the blocks that its log prints.

A log rounds its pool to 0.01 GiB: a figure that follows from the pool is exact where a number of blocks
inside
that rounding gives it. What a record leaves open is the engine's default of its version; nothing is tried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from kvgauge.engines.vllm import VllmPlan, VllmSettings, plan
from kvgauge.engines.vllm.cache_spec import SpecKind
from kvgauge.engines.vllm.devices import DEFAULT_GPU, GpuClass, gpu_class, gpu_of_memory
from kvgauge.engines.vllm.flags import parse_flags
from kvgauge.engines.vllm.versions import OLDEST, parse_version
from kvgauge.errors import KvgaugeError
from kvgauge.hardware import parse_gpu
from kvgauge.replay.figures import Figure, Skip, nearest, needed
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.units import GIB

#: Half of the last digit of a printed size in GiB, and of a printed concurrency.
HALF_STEP = 0.005
#: A pool whose first decimal ends it is taken for rounded there, if it is large.
_ROUGH, _ROUGH_FROM = 0.05, 30
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?(?:\.post\d+)?(?:rc\d+)?(?:\.dev\d+)?")
#: What a build without tags calls itself.
_NO_VERSION = re.compile(r"0\.[01]\.(?:0\.)?dev|0\.0\.")
_GIB = re.compile(r"(\d{1,4}(?:\.\d{1,3})?) ?GiB")
_TOKENS, _GROUPS = "concurrency", ("full", "latent")


@dataclass(frozen=True)
class VllmReplay:
    """One record and the plan of its settings."""

    record: Record
    found: VllmPlan

    @cached_property
    def pool(self) -> float | None:
        """The printed pool of a rank in GiB."""
        return self.record.number("kv_available_gib")

    @cached_property
    def block_bytes(self) -> int:
        """Bytes of one block on the fullest stage."""
        return self.found.stage_bytes_per_block

    def blocks_of_pool(self) -> range:
        """Return the numbers of blocks that the printed pool allows."""
        pool, size = self.pool, self.block_bytes
        whole = self.record.number("kv_bytes", within="extra")
        if whole and size:
            return range(int(whole) // size, int(whole) // size + 1)
        if pool is None or pool <= 0 or not size:
            raise Skip("null", "kv_available_gib")
        step = HALF_STEP if round(pool, 1) != pool or pool < _ROUGH_FROM else _ROUGH
        return range(int((pool - step) * GIB) // size, int((pool + step) * GIB) // size + 1)

    def blocks(self) -> range:
        """Return the numbers of blocks that the log allows: what it prints, else of its pool."""
        printed = self.record.whole("gpu_blocks")
        if printed:
            return range(printed, printed + 1)
        times = self.record.number("max_concurrency")
        if self.pool is None and times and self.found.rules.concurrency_by_blocks:
            each = self.found.blocks_per_request
            return range(int((times - HALF_STEP) * each), int((times + HALF_STEP) * each) + 1)
        return self.blocks_of_pool()

    def printed(self, blocks: int) -> tuple[int, float]:
        """Return tokens and concurrency as this version prints them for so many blocks."""
        pool = replace(self.found, num_blocks_override=max(1, blocks)).pool(0)
        return pool.capacity_tokens, pool.max_concurrency

    def blocks_nearest(self, blocks: range, measured: float, index: int) -> int:
        """Return the number of blocks whose tokens (index 0) or concurrency (1) are nearest to the log's."""
        if len(blocks) == 1:
            return blocks[0]
        one, two = self.printed(blocks[0])[index], self.printed(blocks[-1])[index]
        if two == one:
            return blocks[0]
        guess = blocks[0] + round((measured - one) / (two - one) * (len(blocks) - 1))
        width = 2 * max(1, len(self.found.groups))
        close = [b for b in range(guess - width, guess + width + 1) if blocks[0] <= b <= blocks[-1]]
        choices = close or [blocks[0], blocks[-1]]
        return min(choices, key=lambda b: abs(self.printed(b)[index] - measured))


def replays(record: Record, finder: ModelFinder) -> VllmReplay:
    """Return the plan of a record.

    Raises:
        Skip: no public shape. KvgaugeError: the engine, as it is known here, refuses the settings.
    """
    return VllmReplay(record, plan(finder.model(record).architecture, settings_of(record)))


def settings_of(record: Record) -> VllmSettings:
    """Return what the engine was told, the rest left to the defaults of its version."""
    settings = replace(parse_flags(record.text("engine_args") or ""), gpu=card_of(record))
    assumed = record.assumed
    changes: dict[str, object] = {"version": version_of(record)}
    count = record.whole("gpu_count")
    if "number of gpus" in assumed and count:
        changes["tensor"] = count
    if "kv_cache_dtype fp8" in assumed:
        changes["kv_dtype"] = "fp8"
    if record.flag("expert_parallel", within="extra"):
        changes["expert_parallel"] = True
    caching = record.flag("prefix_caching", within="extra")
    if settings.prefix_caching is None and caching is not None:
        changes["prefix_caching"] = caching
    return replace(settings, **changes)  # type: ignore[arg-type]


def version_of(record: Record) -> str | None:
    """Return the version that a record states, else the one of its date, else None: the newest known."""
    for name in ("engine_version", "engine_version_by_date"):
        match = _VERSION.match(record.text(name) or "")
        if match and not _NO_VERSION.match(match[0]):
            # Versions before the oldest known keep blocks as it does.
            is_older = parse_version(match[0]) < parse_version(OLDEST)
            return OLDEST if is_older else match[0]
    return None


def card_of(record: Record) -> GpuClass:
    """Return the class of the card: by its name, else its memory, else the one rules were checked on."""
    total, name = total_gib(record), record.text("gpu") or ""
    known = gpu_class(name)
    if known is None and total and total > 0:
        return gpu_of_memory(int(total * GIB))
    return known or _of_catalogue(name) or DEFAULT_GPU


def _of_catalogue(name: str) -> GpuClass | None:
    """Return the class of a card that only the catalogue of accelerators knows."""
    try:
        device, _ = parse_gpu(name)
    except KvgaugeError:
        return None
    return GpuClass(device.name, device.compute_capability, device.memory_bytes)


def total_gib(record: Record) -> float | None:
    """Return the memory of the card in GiB: printed, of its class, or as its name says it."""
    stated = record.number("total_gpu_gib")
    if stated is not None:
        return stated
    name = record.text("gpu") or ""
    known = gpu_class(name)
    if known is not None:
        return known.memory_bytes / GIB
    written = _GIB.search(name)
    return float(written[1]) if written else None


def bytes_per_token(replay: VllmReplay) -> Figure:
    """Bytes of the pool over the tokens that the log prints, or bytes a token that it states."""
    record, found = replay.record, replay.found
    stated = record.number("bytes_per_token", within="extra")
    if stated is not None:
        return Figure(stated, _whole_rows(found), 0.5, because="layers that keep every token")
    tokens = record.number("kv_tokens") or (record.whole("gpu_blocks") or 0) * found.block_size_tokens
    if not tokens and record.number("kv_needed_gib") is not None:
        return _bytes_of_request(replay)
    tokens = tokens or record.number("estimated_max_len") or 0
    pool = needed(replay.pool, "kv_available_gib")
    if not tokens or pool <= 0:
        raise Skip("null", "kv_tokens")
    if len(found.groups) == 1:
        ours = replay.block_bytes / found.block_size_tokens / found.requests.context_ranks
    else:
        ours = pool * GIB / max(1, found.pool(int(pool * GIB)).capacity_tokens)
    measured = pool * GIB / tokens
    # The rest of the pool that makes no block, and the last digit of the GiB.
    step = found.block_size_tokens * found.requests.context_ranks
    rounding = max(
        (pool + HALF_STEP) * GIB / tokens - measured,
        measured - (pool - HALF_STEP) * GIB / (tokens + step),
    )
    return Figure(measured, ours, rounding, because=f"{replay.block_bytes:,} B a block")


def _bytes_of_request(replay: VllmReplay) -> Figure:
    """Return bytes a token of what one longest request needs, of a refusal."""
    found = replay.found
    longest = found.schedule.max_model_tokens
    stated = needed(replay.record.number("kv_needed_gib"), "kv_needed_gib")
    ours = replay.block_bytes * found.blocks_per_request / longest
    step = (HALF_STEP + 1e-5) * GIB / longest
    return Figure(stated * GIB / longest, ours, step, because=f"{replay.block_bytes:,} B a block")


def _whole_rows(found: VllmPlan) -> float:
    return sum(
        group.num_layers * group.page_bytes / group.block_size_tokens
        if group.bytes_per_block != group.page_bytes
        else group.page_bytes / group.block_size_tokens
        for group in found.groups
        if group.kind in _GROUPS
    )


def num_blocks(replay: VllmReplay) -> Figure:
    """Blocks of the printed pool."""
    measured = needed(replay.record.whole("gpu_blocks"), "gpu_blocks")
    tokens = replay.record.number("kv_tokens")
    if replay.pool is None and tokens and replay.found.rules.tokens != _TOKENS:
        groups = len(replay.found.groups) if replay.found.rules.tokens == "by_group" else 1
        first = int(tokens) // replay.found.block_size_tokens * groups
        return Figure(measured, nearest(range(first, first + groups), measured), because="tokens / block")
    return Figure(
        measured, nearest(replay.blocks_of_pool(), measured), because=f"pool / {replay.block_bytes:,} B"
    )


def tokens(replay: VllmReplay) -> Figure:
    """Tokens of the printed blocks or pool, as this version counts them."""
    record, found = replay.record, replay.found
    blocks = record.whole("gpu_blocks")
    measured = record.number("kv_tokens")
    if measured is None and blocks and found.rules.tokens != _TOKENS:
        measured = blocks * found.block_size_tokens  # V0 prints the blocks alone
    measured = needed(measured, "kv_tokens")
    allowed = replay.blocks()
    best = replay.blocks_nearest(allowed, measured, 0)
    return Figure(measured, replay.printed(best)[0], because=_how(found))


def _how(found: VllmPlan) -> str:
    if found.rules.tokens == _TOKENS:
        return f"blocks / {found.blocks_per_request:,} a request x {found.schedule.max_model_tokens:,}"
    return "blocks / groups x block" if found.rules.tokens == "by_group" else "blocks x block"


def concurrency(replay: VllmReplay) -> Figure:
    """Concurrency of the longest request, of the printed tokens where they tell the blocks."""
    record, found = replay.record, replay.found
    measured = needed(record.number("max_concurrency"), "max_concurrency")
    because = f"{found.blocks_per_request:,} blocks a request of {found.schedule.max_model_tokens:,}"
    stated = record.number("kv_tokens")
    choices = (
        _of_tokens(replay, stated)
        if stated is not None
        else [replay.printed(replay.blocks_nearest(replay.blocks(), measured, 1))[1]]
    )
    best = min(choices, key=lambda found: abs(found - measured))
    return Figure(measured, best, HALF_STEP + 1e-5, because=because)


def _of_tokens(replay: VllmReplay, tokens: float) -> list[float]:
    """Return what printed tokens say of the concurrency."""
    record, found = replay.record, replay.found
    longest = found.schedule.max_model_tokens
    if found.rules.tokens == _TOKENS or not found.rules.concurrency_by_blocks:
        return [tokens / longest] if longest else [0.0]
    if record.whole("gpu_blocks") or (replay.pool or 0) > 0:
        allowed = replay.blocks()
        same = replay.blocks_nearest(allowed, tokens, 0)
        if replay.printed(same)[0] == tokens or len(found.groups) != 1:
            width = len(found.groups)
            near = [b for b in range(same - width, same + width + 1) if allowed[0] <= b <= allowed[-1]]
            return [row[1] for b in near if (row := replay.printed(b))[0] == replay.printed(same)[0]]
    groups = max(1, len(found.groups))
    smallest = min((group.block_size_tokens for group in found.groups), default=1)
    first = int(tokens) // (smallest * found.requests.context_ranks) * groups
    per_request = max(1, found.blocks_per_request)
    return [blocks / per_request for blocks in range(first, first + groups)]


def pool_needed(replay: VllmReplay) -> Figure:
    """GiB that one longest request needs."""
    measured = needed(replay.record.number("kv_needed_gib"), "kv_needed_gib")
    found = replay.found
    ours = replay.block_bytes * found.blocks_per_request / GIB
    return Figure(measured, ours, HALF_STEP + 1e-5, because=f"{found.blocks_per_request:,} blocks")


def cache_size(replay: VllmReplay) -> Figure:
    """MiB of the blocks that are printed."""
    measured = needed(replay.record.number("kv_mib"), "kv_mib")
    blocks = needed(replay.record.whole("gpu_blocks"), "gpu_blocks")
    return Figure(measured, blocks * replay.block_bytes / (1 << 20), 0.5)


def state_size(replay: VllmReplay) -> Figure:
    """MiB of one page of every recurrent layer."""
    measured = needed(replay.record.number("rs_mib"), "rs_mib")
    states = [g for g in replay.found.spec_groups if g.sample.kind is SpecKind.RECURRENT]
    return Figure(measured, sum(g.bytes_per_block for g in states) / (1 << 20), 0.5)


FIGURES: Mapping[str, Callable[[VllmReplay], Figure]] = MappingProxyType({
    "kv_bytes_per_token": bytes_per_token,
    "num_blocks": num_blocks,
    "kv_tokens": tokens,
    "max_concurrency": concurrency,
    "kv_needed": pool_needed,
    "kv_cache_mib": cache_size,
    "state_mib": state_size,
})  # fmt: skip
