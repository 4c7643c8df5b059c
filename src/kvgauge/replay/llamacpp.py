"""Replay llama.cpp, its fork and its shells: caches, states and working buffers of a printed load."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.llamacpp import BuildRules, LlamaPlan, LlamaSettings, plan, rules_for, settings_of
from kvgauge.engines.llamacpp.plan import LlamaAllocation
from kvgauge.engines.llamacpp.settings import DEFAULT_BATCH
from kvgauge.errors import KvgaugeError
from kvgauge.replay.figures import Figure, Skip, needed
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.replay.weights import bits_a_weight
from kvgauge.units import MIB

#: A printed size has two decimals; sums of two figures twice that.
HALF_STEP = 0.005
_BUILD = re.compile(r"b?(\d{3,6})\b")
_CACHE_TYPES = re.compile(r"-ct[kv] \S+")
_DATE = re.compile(r"20\d\d-\d\d(?:-\d\d)?")
#: Bytes of V over those of K -> what a build keeps of a latent of 576: none, 512 of V, or heads of 192 and
#: 128.
_LATENT_FORMS = ((0.0, "k"), (512 / 576, "kv"), (128 / 192, "expanded"))
_HOSTS = ("cpu", "host", "blas")
#: Share of a model's bytes from which on what lies on the host is more than its embedding.
_HOST_SHARE = 0.15
_MOST_DEVICES = 64


@dataclass(frozen=True)
class LlamaReplay:
    """One record and the plan of its settings."""

    record: Record
    found: LlamaPlan
    refusal: KvgaugeError | None
    architecture: ModelArchitecture
    settings: LlamaSettings

    def check_cache(self) -> None:
        """Refuse figures of a cache whose type only a fork has; states and buffers do not depend on it."""
        if self.refusal is not None:
            raise self.refusal

    @cached_property
    def parts(self) -> dict[str, int]:
        """Bytes of the caches: ``main``, ``window``, ``index``, and ``state``."""
        parts = dict.fromkeys(("main", "window", "index", "state"), 0)
        for each in self.found.allocations:
            if each.kind == "state":
                parts["state"] += each.bytes
            elif each.kind == "cache":
                name = "window" if ".swa" in each.name else "index" if "indexer" in each.name else "main"
                parts[name] += each.bytes
        return parts

    @property
    def slots(self) -> int:
        """Cells over all streams."""
        return self.found.cells * self.found.streams


def replays(record: Record, finder: ModelFinder) -> LlamaReplay:
    """Return the plan of a record.

    Raises:
        Skip: no public shape. KvgaugeError: the engine, as it is known here, refuses the settings.
    """
    architecture = finder.gguf(record)
    try:
        settings, refusal = load_of(record), None
    except KvgaugeError as error:
        if "-ctk" not in (record.text("engine_args") or ""):
            raise
        plain = _CACHE_TYPES.sub("", record.text("engine_args") or "")
        settings, refusal = load_of(Record({**record.fields, "engine_args": plain})), error
    settings = _with_places(record, architecture, settings)
    return LlamaReplay(record, plan(architecture, settings), refusal, architecture, settings)


def load_of(record: Record) -> LlamaSettings:
    """Return what the engine was told: flags, then figures of the load that the log prints."""
    args = _arguments(record)
    build = build_of(record)
    sequences = record.whole("n_seq_max") or record.whole("rs_seqs") or 1
    settings = settings_of(args, build=build, sequences=sequences)
    if _runs_on_host(record):
        settings = replace(settings, num_gpus=0)
    rollback = record.whole("n_rs_seq", within="extra")
    if rollback is not None:
        settings = replace(settings, rollback_tokens=rollback)
    form = _latents(record)
    return replace(settings, latents=form) if form else settings


def _with_places(record: Record, architecture: ModelArchitecture, settings: LlamaSettings) -> LlamaSettings:
    """Return the devices that a log prints buffers of, and the matrices that lie on the host beside them.

    Flags that keep experts on the host are seldom in an excerpt; the model's buffers show what they did.
    """
    if not settings.num_gpus:
        return settings
    devices = _on_devices(numbers(record.inner("compute_mib")))
    settings = replace(settings, num_gpus=max(settings.num_gpus, min(len(devices), _MOST_DEVICES)))
    model = numbers(record.inner("model_buffer_mib"))
    held = sum(size for name, size in model.items() if name not in _on_devices(model))
    if not devices or held < _HOST_SHARE * sum(model.values()):
        return settings
    bits, stated = bits_a_weight(record), dict(architecture.dimensions)
    wide = stated.get("embedding_length", 0)
    blocks = stated.get("expert_count", 0) * stated.get("expert_feed_forward_length", 0) or stated.get(
        "feed_forward_length", 0
    )
    if bits is None:
        return settings
    whole = settings.gpu_layers is None or settings.gpu_layers > architecture.num_layers
    return replace(
        settings,
        host_matrix_bytes=int(wide * blocks * bits / 8),
        host_output_bytes=0
        if settings.gpu_layers != 0
        else int(wide * stated.get("vocab_size", 0) * bits / 8),
        overrides=(("exps", None),) if whole else settings.overrides,
    )


def _on_devices(sizes: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in sizes.items() if not any(w in name.lower() for w in _HOSTS)}


def _runs_on_host(record: Record) -> bool:
    """Whether every buffer that the log prints lies on the CPU itself, not pinned for a device."""
    printed = {**numbers(record.inner("compute_mib")), **numbers(record.inner("kv_buffer_mib"))}
    return bool(printed) and all(name.upper() in ("CPU", "BLAS") for name in printed)


def _arguments(record: Record) -> str:
    args = record.text("engine_args") or ""
    words = args.split()
    cells = record.whole("cells")
    if "-c" not in words and cells:
        args += f" -c {cells * (record.whole('n_stream') or 1)}"
    if "-ctk" in words and "-ctv" not in words:  # one type where the log prints one
        after = words[words.index("-ctk") + 1 :]
        args += f" -ctv {after[0]}" if after else ""
    batch = words[words.index("-ub") + 1 :][:1] if "-ub" in words and "-b" not in words else []
    if batch and batch[0].isdigit() and int(batch[0]) > DEFAULT_BATCH:
        args += f" -b {batch[0]}"  # a log prints what was taken, and no more than a batch is
    if "-fa" not in words and (record.text("flash_attn") in ("0", "1")):
        args += f" -fa {'on' if record.text('flash_attn') == '1' else 'off'}"
    return args


def build_of(record: Record) -> BuildRules:
    """Return the rules of a build: of its number, else of the day; None of both is the newest known."""
    if (record.text("engine") or "").startswith("ik"):
        return rules_for("ik")
    stated = record.text("engine_version") or ""
    number = None if _DATE.search(stated) else _BUILD.match(stated)
    if number and record.family == "llama.cpp" and "lm studio" not in (record.text("engine") or "").lower():
        return _rules(f"b{number[1]}")
    for name in ("engine_version", "engine_version_by_date", "date"):
        day = _DATE.search(record.text(name) or "")
        if day:
            return _rules(day[0])
    return rules_for(None)


def _rules(version: str) -> BuildRules:
    try:
        return rules_for(version)
    except KvgaugeError:
        return rules_for(None)


def _latents(record: Record) -> str:
    """Return the form of a latent that the log's own K and V lines show, where nothing states the build."""
    printed = record.whole("mla_cached_width", within="hparams")
    args = record.text("engine_args") or ""
    if (record.text("engine") or "").startswith("ik"):
        # The fork prints one c^KV line for K alone, a second one for the transposed V.
        with_v = record.number("kv_t_mib", within="extra") is not None
        return ("kv" if with_v else "k") if printed and "-mla" not in args.split() else ""
    keys, values = record.number("k_mib"), record.number("v_mib")
    if keys is None or values is None or keys <= 0 or _states_build(record):
        return ""
    return next((form for ratio, form in _LATENT_FORMS if abs(values / keys - ratio) < 0.002), "")


def _states_build(record: Record) -> bool:
    return any(record.text(name) for name in ("engine_version", "engine_version_by_date", "date"))


def main_mib(record: Record) -> float | None:
    """Return the size of the cache line: as printed, of its K and V, or of its buffers on all devices."""
    printed = record.number("kv_mib")
    if printed is not None:
        return printed
    keys, values = record.number("k_mib"), record.number("v_mib")
    if keys is not None and values is not None:
        return keys + values
    if record.number("swa_kv_mib") is not None:
        return None
    buffers = numbers(record.inner("kv_buffer_mib"))
    return sum(buffers.values()) if buffers else None


def numbers(found: Mapping[str, object]) -> dict[str, float]:
    """Return the positive figures of an object."""
    return {
        name: float(value) for name, value in found.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e12
    }  # fmt: skip


def _breakdown(record: Record) -> dict[str, float]:
    """Return MiB of working buffers by device, of the breakdown that a log ends with."""
    rows = record.fields.get("breakdown_mib")
    found = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and isinstance(row.get("dev"), str):
            found[str(row["dev"])] = row.get("compute")
    return numbers(found)


def cache_size(replay: LlamaReplay) -> Figure:
    """MiB of the printed cache lines, with the window pool where it is printed or in a total."""
    replay.check_cache()
    record, parts = replay.record, replay.parts
    main, window = main_mib(record), record.number("swa_kv_mib")
    if main is None and window is None:
        raise Skip("null", "kv_mib")
    ours = parts["main"] if main is not None else 0
    if window is not None or (record.whole("cells") is None and record.whole("kv_layers") is None):
        ours += parts["window"]
    lines = (main is not None) + (window is not None)
    return Figure((main or 0) + (window or 0), ours / MIB, 2 * HALF_STEP * lines, because=_cells(replay))


def _cells(replay: LlamaReplay) -> str:
    found = replay.found
    streams = f" x {found.streams} streams" if found.streams > 1 else ""
    return f"{found.cells:,} cells{streams}"


def bytes_per_token(replay: LlamaReplay) -> Figure:
    """Bytes of the growing cache over its cells."""
    replay.check_cache()
    main = needed(main_mib(replay.record), "kv_mib")
    cells = (replay.record.whole("cells") or replay.found.cells) * (
        replay.record.whole("n_stream") or replay.found.streams
    )
    if not cells or not replay.slots:
        raise Skip("null", "cells")
    ours = replay.parts["main"]
    if replay.record.number("swa_kv_mib") is None and replay.record.whole("cells") is None:
        ours += replay.parts["window"]
    return Figure(
        main * MIB / cells, ours / replay.slots, 2 * HALF_STEP * MIB / cells, because=_cells(replay)
    )


def state_size(replay: LlamaReplay) -> Figure:
    """MiB of the recurrent state of all sequences."""
    printed = replay.record.number("rs_mib")
    if printed is None:
        halves = [replay.record.number(name) for name in ("r_mib", "s_mib")]
        printed = None if None in halves else sum(filter(None, halves))
    measured = needed(printed, "rs_mib")
    if not replay.parts["state"]:
        raise Skip("no_shape", "recurrent layers")
    return Figure(
        measured, replay.parts["state"] / MIB, 2 * HALF_STEP, because=f"{replay.found.sequences} sequences"
    )


def compute(replay: LlamaReplay) -> Figure:
    """MiB of the largest working buffer on a device, else on the host."""
    printed = numbers(replay.record.inner("compute_mib")) or _breakdown(replay.record)
    devices = _on_devices(printed)
    buffers = [each for each in replay.found.allocations if each.name == "compute"]
    on_device = [each for each in buffers if each.place.startswith("gpu")] if devices else []
    ours = on_device or [each for each in buffers if not each.place.startswith("gpu")]
    hosts = {name: value for name, value in printed.items() if name not in devices}
    measured = max((devices if on_device else hosts or devices).values(), default=0)
    if not measured or not ours:
        raise Skip("null", "compute_mib")
    best = max(ours, key=lambda each: each.bytes)
    high = max(best.high, _of_all_rows(replay, best))
    return Figure(
        float(measured), best.bytes / MIB, HALF_STEP, best.low / MIB, high / MIB, because=best.because
    )


def _of_all_rows(replay: LlamaReplay, best: LlamaAllocation) -> int:
    """Return the most where neither build nor program is stated: logits of a whole micro-batch."""
    if _states_build(replay.record) or not replay.settings.outputs:
        return 0
    found = plan(replay.architecture, replace(replay.settings, outputs=0))
    return max(each.high for each in found.allocations if (each.name, each.place) == (best.name, best.place))


FIGURES: Mapping[str, Callable[[LlamaReplay], Figure]] = MappingProxyType({
    "kv_bytes_per_token": bytes_per_token,
    "kv_cache_mib": cache_size,
    "state_mib": state_size,
    "compute": compute,
})  # fmt: skip
