"""Which setting that a log does not show would explain a figure that does not agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvgauge.replay.outcomes import Outcome
from kvgauge.replay.records import Record
from kvgauge.replay.replaying import outcomes
from kvgauge.verification.asking import RANK_FLAGS, Asked

#: Engine -> flags tried one at a time where the log leaves them open.
_TRIED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "vllm": (
        ("--kv-cache-dtype", "fp8"), ("--enable-prefix-caching", ""), ("--no-enable-prefix-caching", ""),
        *(("--speculative-config", f'{{"method": "mtp", "num_speculative_tokens": {n}}}') for n in (1, 2,
        3, 4)),
        *(("--tensor-parallel-size", str(n)) for n in (2, 4, 8, 1)),
        *(("--max-num-batched-tokens", str(n)) for n in (2048, 4096, 8192, 16384)),
        ("--kv-cache-dtype", "nvfp4"), ("--block-size", "64"),
    ),
    "sglang": (
        ("--kv-cache-dtype", "fp8_e4m3"), *(("--tp-size", str(n)) for n in (2, 4, 8, 1)),
        ("--mamba-ssm-dtype", "bfloat16"),
    ),
    "tensorrt-llm": (("--kv_cache_dtype", "fp8"), *(("--tp_size", str(n)) for n in (2, 4, 8))),
    "llama.cpp": (
        ("--swa-full", ""), ("-ctk", "q8_0"), ("-np", "1"), ("-np", "4"),
        *(("-ub", str(n)) for n in (512, 1024, 2048, 4096)),
    ),
}  # fmt: skip
#: Versions on either side of a rule, tried where the log states none.
_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("0.19.1", "0.22.1", "0.28.0"), "sglang": ("0.5.3", "0.5.8"),
    "llama.cpp": ("b8000", "b6500", "2025-06", "b5200", "b4500"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Explanation:
    """A setting that makes figures agree which do not else."""

    setting: str
    quantities: frozenset[str]


def explain(asked: Asked, found: tuple[Outcome, ...]) -> Explanation | None:
    """Return the first setting under which most of the figures that rules give agree; None if none helps."""
    off = {each.quantity for each in found if each.by_rule and each.status in ("off", "within")}
    agreeing = {each.quantity for each in found if each.by_rule and each.status == "exact"}
    if not off:
        return None
    best: Explanation | None = None
    for setting, record in _others(asked):
        tried = {e.quantity for e in outcomes([record], asked.finder) if e.status == "exact"}
        # What agreed without the setting has to agree with it.
        met = frozenset(off & tried) if agreeing <= tried else frozenset()
        if len(met) > (len(best.quantities) if best is not None else 0):
            best = Explanation(setting, met)
    return best


def _says_ranks(asked: Asked) -> bool:
    """Whether log or user say the ranks, which then explain nothing."""
    told = {word.partition("=")[0] for word in asked.told_args.split()}
    return bool(RANK_FLAGS & {*asked.log_args, *asked.own_args, *told})


def _others(asked: Asked) -> Iterator[tuple[str, Record]]:
    fields = asked.record.fields
    for flag, value in _TRIED.get(asked.record.family, ()):
        if flag in RANK_FLAGS and _says_ranks(asked):
            continue
        changed = asked.with_flag(flag, value)
        if changed != fields.get("engine_args"):
            yield f"{flag} {value}".strip(), Record({**fields, "engine_args": changed})
    if fields.get("engine_version"):
        return
    for version in _VERSIONS.get(asked.record.family, ()):
        yield f"{asked.record.family} {version}", Record({**fields, "engine_version": version})
