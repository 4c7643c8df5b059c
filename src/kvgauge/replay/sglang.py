"""Replay SGLang: the plan of a record's flags and version, given the tokens and slots that its log prints.

A log rounds K, V and states to 0.01 GiB each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kvgauge.engines.release_days import released_by
from kvgauge.engines.sglang import SglangPlan, SglangSettings, plan
from kvgauge.engines.sglang.flags import parse_flags
from kvgauge.engines.sglang.memory import static_bytes
from kvgauge.engines.vllm.devices import DEFAULT_GPU, gpu_class
from kvgauge.replay.figures import Figure, Skip, needed
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.units import GIB, MIB

HALF_STEP = 0.005
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?(?:\.post\d+)?")


@dataclass(frozen=True)
class SglangReplay:
    """One record and the plan of its settings."""

    record: Record
    found: SglangPlan

    def cache(self) -> tuple[float, float]:
        """Return (GiB of keys and values, rounding): two figures of two decimals, or one."""
        both = self.record.number("kv_gb")
        if both is not None:
            return both, HALF_STEP
        keys = needed(self.record.number("k_gb"), "k_gb")
        return keys + needed(self.record.number("v_gb"), "v_gb"), 2 * HALF_STEP

    def tokens(self) -> int:
        """Return the printed tokens."""
        printed = self.record.whole("tokens")
        if not printed:
            raise Skip("null", "tokens")
        return printed


def replays(record: Record, finder: ModelFinder) -> SglangReplay:
    """Return the plan of a record.

    Raises:
        Skip: no public shape. KvgaugeError: the engine, as it is known here, refuses the settings.
    """
    return SglangReplay(record, plan(finder.model(record).architecture, settings_of(record)))


def settings_of(record: Record) -> SglangSettings:
    """Return what the engine was told, the rest left to the defaults of its version."""
    settings = parse_flags(record.text("engine_args") or "")
    version = next(
        (m[0] for name in ("engine_version", "engine_version_by_date")
         if (m := _VERSION.match(record.text(name) or ""))),
        released_by("sglang", record.text("date") or ""),
    )  # fmt: skip
    changes: dict[str, object] = {
        "gpu": gpu_class(record.text("gpu") or "") or DEFAULT_GPU,
        "version": version,
    }
    if _groups(record, settings):
        changes["dp_attention"] = True
    if "fp8" in record.assumed and settings.kv_dtype == "auto":
        changes["kv_dtype"] = "fp8_e4m3"
    return replace(settings, **changes)  # type: ignore[arg-type]


def _groups(record: Record, settings: SglangSettings) -> bool:
    """Whether data-parallel groups lie inside the tensor ranks: stated, or cards are too few else."""
    if settings.data == 1 or settings.tensor % settings.data:
        return False
    stated = "dp attention" in (record.text("note") or "").lower()
    cards = record.whole("gpu_count") or 0
    return (
        stated
        or bool(record.flag("dp_attention", within="extra"))
        or 0 < cards < settings.tensor * settings.data
    )


def bytes_per_token(replay: SglangReplay) -> Figure:
    """GiB of keys and values over the slots; a page more is allocated than is printed as usable."""
    printed, rounding = replay.cache()
    slots = replay.tokens() + replay.found.page_size_tokens
    ours = replay.found.printed_bytes_per_token
    return Figure(
        printed * GIB / slots,
        float(ours),
        rounding * GIB / replay.tokens() + ours / slots,
        because=_each(replay),
    )


def _each(replay: SglangReplay) -> str:
    return f"{float(replay.found.printed_bytes_per_token):,.10g} B a token"


def cache_size(replay: SglangReplay) -> Figure:
    """MiB of keys and values for the printed tokens."""
    printed, rounding = replay.cache()
    found = replay.found
    page = found.page_size_tokens * found.printed_bytes_per_token / MIB
    ours = replay.tokens() * found.printed_bytes_per_token / MIB + page
    return Figure(printed * 1024, ours, rounding * 1024 + page, because=_each(replay))


def state_size(replay: SglangReplay) -> Figure:
    """MiB of the recurrent state for the printed slots; one more is allocated."""
    record = replay.record
    parts = [needed(record.number(name), name) for name in ("conv_gb", "ssm_gb")]
    slots = record.whole("mamba_cache_size")
    if not slots or replay.found.state is None:
        raise Skip("null", "mamba_cache_size")
    spare = replay.found.state.slot_bytes / MIB
    return Figure(sum(parts) * 1024, replay.found.state_bytes(slots) / MIB, 2 * HALF_STEP * 1024 + spare)


def pool(replay: SglangReplay) -> Figure:
    """GiB left for keys and values: of the memory free before loading, all but the fraction stays free."""
    printed, rounding = replay.cache()
    states = [replay.record.number(name) for name in ("conv_gb", "ssm_gb")]
    if any(states):  # they come out of the same budget
        printed += sum(filter(None, states))
        rounding += 2 * HALF_STEP
    before = needed(replay.record.number("avail_mem_before_load_gb"), "avail_mem_before_load_gb")
    after = needed(replay.record.number("avail_mem_after_load_gb"), "avail_mem_after_load_gb")
    ours = static_bytes(int(after * GIB), int(before * GIB), replay.found.mem_fraction_static) / GIB
    return Figure(printed, ours, rounding + 2 * HALF_STEP, because="free memory and the static fraction")


FIGURES: Mapping[str, Callable[[SglangReplay], Figure]] = MappingProxyType({
    "kv_bytes_per_token": bytes_per_token,
    "kv_cache_mib": cache_size,
    "state_mib": state_size,
    "pool": pool,
})  # fmt: skip
