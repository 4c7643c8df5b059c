"""What to change: from what failed, and from what the figures of a log leave room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kvgauge.architecture import Note
from kvgauge.engines.llamacpp import plan as llama_plan
from kvgauge.engines.vllm import VllmPlan, plan
from kvgauge.errors import KvgaugeError
from kvgauge.estimate import estimate
from kvgauge.overhead_running import vllm_running
from kvgauge.replay import vllm
from kvgauge.replay.figures import Skip
from kvgauge.replay.llamacpp import replays as llama_replays
from kvgauge.replay.records import Record
from kvgauge.units import GIB, MIB
from kvgauge.verification.answer import Advice
from kvgauge.verification.asking import Asked
from kvgauge.verification.facts import Start
from kvgauge.verification.refitting import refit

#: Advice on batches where the peak of a profiling pass takes more than this.
_LARGE_PEAK = GIB
_FAILED_POOL = frozenset({"pool_too_small", "no_pool"})


def advise(start: Start, asked: Asked) -> tuple[Advice, ...]:
    """Return what to change, the most telling first; nothing where the model is not known."""
    found: list[Advice] = []
    if asked.model is None:
        hint = asked.missing.message if asked.missing is not None else "the log names no model"
        found.append(
            _advice("verify_name_model", f"give the model with --model MODEL: {hint}", {}, hint=hint)
        )
        return tuple(found)
    try:
        if asked.record.family == "vllm":
            found += _vllm(start, asked)
        elif asked.record.family == "llama.cpp":
            found += _llama(start, asked)
        elif asked.record.family == "sglang":
            found += (*_sglang(start, asked.record), *refit(start, asked))
    except (Skip, KvgaugeError, ArithmeticError, ValueError):
        return tuple(found)
    return tuple(found)


def _advice(code: str, message: str, effect: dict[str, float], **values: str) -> Advice:
    return Advice(code.removeprefix("verify_"), Note(code, "info", message, tuple(values.items())), effect)


def _vllm(start: Start, asked: Asked) -> Iterator[Advice]:
    found = vllm.replays(asked.record, asked.finder).found
    pool = asked.record.number("kv_available_gib")
    failed = bool(_FAILED_POOL & set(start.failures))
    room = int(max(0.0, pool or 0.0) * GIB)
    if failed and room:
        yield from _shorter(found, room)
    if failed:
        yield from _more_share(found, asked.record, room)
    if "share_not_free" in start.failures:
        yield from _less_share(asked.record)
    if "sequences_exceed_blocks" in start.failures and room:
        blocks = asked.record.whole("gpu_blocks") or found.pool(room).num_blocks
        text = f"--max-num-seqs {blocks} at most: each running sequence holds a page of state"
        yield _advice("verify_sequences", text, {"max_num_seqs": blocks}, blocks=str(blocks))
    refitted = refit(start, asked)
    yield from refitted
    if len(refitted) < 2:  # else fit has weighed these beside others
        yield from _batch(asked, found)
        yield from _fp8(asked, found, room)
    yield from _capacity(found)


def _capacity(found: VllmPlan) -> Iterator[Advice]:
    """Say where the token line is no capacity, and where more ranks hold no more."""
    if len(found.groups) > 1:
        blocks, longest = found.blocks_per_request, found.schedule.max_model_tokens
        short = found.blocks_for(1)
        text = (
            f"the token line is no capacity: a request takes {short} blocks however short, {blocks} at "
            f"{longest:,} tokens, of layers in {len(found.groups)} groups"
        )
        yield _advice(
            "verify_token_line", text, {"blocks_of_one_token": short, "blocks_of_longest": blocks},
            short=str(short), blocks=str(blocks), longest=f"{longest:,}", groups=str(len(found.groups)),
        )  # fmt: skip
    if found.tensor_ranks > 1 and any(group.kind == "latent" for group in found.groups):
        ranks = str(found.tensor_ranks)
        text = (
            f"latents are held whole on each of {ranks} ranks: "
            "--data-parallel-size shares requests out instead"
        )
        yield _advice("verify_replicated", text, {"ranks": found.tensor_ranks}, ranks=ranks)


def _shorter(found: VllmPlan, room: int) -> Iterator[Advice]:
    longest = found.longest_that_fits(room)
    if 0 < longest < found.schedule.max_model_tokens:
        text = f"--max-model-len {longest} is the longest that starts in this pool"
        yield _advice("verify_shorter", text, {"max_model_tokens": longest}, longest=str(longest))


def _more_share(found: VllmPlan, record: Record, room: int) -> Iterator[Advice]:
    """Say what share of the card the longest request needs."""
    total, share = vllm.total_gib(record), record.number("gpu_memory_utilization")
    needed = found.stage_bytes_per_block * (found.blocks_per_request + found.rules.held_back_blocks)
    lacking = (
        max(0.0, (needed - room) / GIB) if room else needed / GIB - (record.number("kv_available_gib") or 0)
    )
    lacks = f"{lacking:.2f} GiB"
    if not total or not share:
        if room and lacking > 0:
            text = f"{lacks} more of pool are needed"
            yield _advice("verify_lacks", text, {"pool_gib": lacking}, lacks=lacks)
        return
    wanted = share + lacking / total
    if wanted <= 0.98:
        shown = f"{wanted + 0.005:.2f}"
        text = f"{lacks} more of pool are needed: --gpu-memory-utilization {shown} has them"
        yield _advice(
            "verify_share", text, {"pool_gib": lacking, "utilization": float(shown)}, lacks=lacks, share=shown
        )
    else:
        text = f"{lacks} more of pool are needed, more than the card has: more ranks, or fewer bits"
        yield _advice("verify_ranks", text, {"pool_gib": lacking}, lacks=lacks)


def _less_share(record: Record) -> Iterator[Advice]:
    """Say what share of the card is free."""
    total, free = vllm.total_gib(record), record.inner("extra").get("free_gib")
    if not total or not isinstance(free, int | float) or not 0 < free < total:
        return
    shown = f"{int(100 * free / total) / 100:.2f}"
    size = f"{free:.2f} GiB"
    text = f"{size} are free: --gpu-memory-utilization {shown} at most, or end what else uses the card"
    yield _advice("verify_free_share", text, {"utilization": float(shown)}, size=size, share=shown)


def _batch(asked: Asked, found: VllmPlan) -> Iterator[Advice]:
    """Say what half the batched tokens would free."""
    model = asked.model
    settings = vllm.settings_of(asked.record)
    tokens = found.schedule.batched_tokens
    if model is None or tokens < 4096 or model.weighed.stored is None:
        return
    halved = replace(settings, max_batched_tokens=tokens // 2)
    now, then = (
        next(t.central_bytes for t in estimate(model.architecture, model.weighed.stored,
             vllm_running(model.architecture, told)) if t.name == "activations")
        for told in (settings, halved)
    )  # fmt: skip
    peak = asked.record.number("activation_peak_gib")
    freed = now - then
    if max(now, int((peak or 0) * GIB)) < _LARGE_PEAK or freed < 256 * MIB:
        return
    size = f"{freed / GIB:.1f} GiB"
    text = (
        f"--max-num-batched-tokens {tokens // 2} instead of {tokens} "
        f"frees about {size} of activations for the pool"
    )
    yield _advice(
        "verify_batch", text, {"freed_bytes": freed, "max_num_batched_tokens": tokens // 2},
        half=str(tokens // 2), tokens=str(tokens), size=size,
    )  # fmt: skip


def _fp8(asked: Asked, found: VllmPlan, room: int) -> Iterator[Advice]:
    settings = vllm.settings_of(asked.record)
    if (
        found.kv_dtype not in ("auto", "bfloat16", "float16")
        or not settings.gpu.has_native_fp8
        or asked.model is None
    ):
        return
    try:
        packed = plan(asked.model.architecture, replace(settings, kv_dtype="fp8"))
    except KvgaugeError:
        return
    before = found.stage_bytes_per_block * found.blocks_per_request
    after = packed.stage_bytes_per_block * packed.blocks_per_request
    if not before or after >= before:
        return
    share = f"{100 * after / before:.0f} %"
    text = f"--kv-cache-dtype fp8 needs {share} of the bytes for one longest request"
    tokens = packed.pool(room).capacity_tokens if room else 0
    yield _advice("verify_fp8", text, {"bytes_fraction": after / before, "tokens": tokens}, share=share)


def _sglang(start: Start, record: Record) -> Iterator[Advice]:
    before, after = record.number("avail_mem_before_load_gb"), record.number("avail_mem_after_load_gb")
    if "no_pool" in start.failures and before and after:
        least = 1 - after / before
        shown = f"{min(0.99, least + 0.02):.2f}"
        text = (
            f"weights leave {after:.2f} of {before:.2f} GiB: "
            f"--mem-fraction-static above {least:.2f}, such as {shown}"
        )
        yield _advice(
            "verify_fraction", text, {"mem_fraction_static": float(shown)},
            after=f"{after:.2f}", before=f"{before:.2f}", least=f"{least:.2f}", share=shown,
        )  # fmt: skip


def _llama(start: Start, asked: Asked) -> Iterator[Advice]:
    replay = llama_replays(asked.record, asked.finder)
    found, parts = replay.found, replay.parts
    window, main = parts["window"], parts["main"]
    if window and found.sequences > 1 and window > main:
        single = llama_plan(replay.architecture, replace(replay.settings, sequences=1))
        saved = window - replace(replay, found=single).parts["window"]
        size = f"{saved / MIB:,.0f} MiB"
        text = f"the window pool has cells for {found.sequences} slots: -np 1 saves {size}"
        yield _advice("verify_slots", text, {"saved_bytes": saved}, slots=str(found.sequences), size=size)
    buffers = [each for each in found.allocations if each.name == "compute"]
    largest = max((each.bytes for each in buffers), default=0)
    if found.micro_batch_tokens > 512 and largest > 512 * MIB:
        size = f"{largest / MIB:,.0f} MiB"
        text = (
            f"-ub {found.micro_batch_tokens} takes {size} of working buffer; "
            "-ub 512 takes less, at slower prefill"
        )
        yield _advice(
            "verify_micro_batch",
            text,
            {"compute_bytes": largest},
            tokens=str(found.micro_batch_tokens),
            size=size,
        )
    if "out_of_memory" in start.failures and main:
        size = f"{main / MIB:,.0f} MiB"
        text = (
            f"the cache takes {size}: half of it with -ctk q8_0 -ctv q8_0, or in proportion with a shorter -c"
        )
        yield _advice("verify_cache_types", text, {"cache_bytes": main}, size=size)
