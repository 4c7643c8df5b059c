"""Replay figures of SGLang's start-up logs: the plan of a record's flags and version, given the printed tokens.

    python tests/sglang_fieldlogs.py        prints, by quantity and hardness, how many agree, and every other one

A log rounds K, V and states to 0.01 GiB each, so a figure agrees when the plan's lies inside that rounding.
Where a record leaves a default open (``assumed``), the choices are tried.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from kvgauge.engines.sglang import SglangPlan, SglangSettings, plan
from kvgauge.engines.sglang.flags import parse_flags
from kvgauge.engines.sglang.memory import static_bytes
from kvgauge.engines.vllm.devices import DEFAULT_GPU, gpu_class
from kvgauge.errors import KvgaugeError
from support import SHARED
from vllm_records import shared_architecture

RECORDS = SHARED / "data" / "fieldlogs" / "sglang.jsonl"
QUANTITIES = ("kv_bytes_per_token", "kv_cache_mib", "state_mib", "pool")
GIB = 1 << 30
HALF_STEP = 0.005
#: Records with a figure that does not agree, and the term behind it.
CAUSES = {
    "sglang-045": "the line implies an fp8 latent, which neither the flags nor the model's class ask for",
}
#: Versions on either side of a rule that a record leaves open.
OPEN_VERSIONS = ("0.5.3", "0.5.8")


@dataclass(frozen=True)
class Outcome:
    """One figure of one record: ``hard`` where every input is stated."""

    record: str
    quantity: str
    hardness: str
    status: str
    predicted: object = None
    measured: object = None
    why: str = ""


def records() -> list[dict]:
    """Return the records that have a figure of the quantities."""
    rows = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if set(QUANTITIES) & set(row.get("usable_for") or ())]


def replay(record: dict) -> list[Outcome]:
    """Return the outcome of every quantity that the record is usable for."""
    wanted = [q for q in QUANTITIES if q in record["usable_for"]]
    best: list[Outcome] = []
    for settings in candidates(record):
        try:
            found = plan(shared_architecture(record["config_ref"].replace("/", "--", 1)), settings)
        except KvgaugeError as error:
            outcomes = [_outcome(record, q, "refused", why=error.message) for q in wanted]
        else:
            outcomes = [_judge(record, q, found) for q in wanted]
        if not best or _agreeing(outcomes) > _agreeing(best):
            best = outcomes
    return best


def _agreeing(outcomes: list[Outcome]) -> float:
    return sum({"exact": 1.0, "within": 0.1}.get(o.status, 0.0) for o in outcomes)


def candidates(record: dict) -> Iterator[SglangSettings]:
    """Yield the settings that a record may have meant."""
    assumed = " ".join(record.get("assumed") or ())
    settings = replace(parse_flags(record["engine_args"] or ""), gpu=_gpu(record))
    version = record["engine_version"] or record.get("engine_version_by_date")
    groups = (False, True) if settings.data > 1 and settings.tensor % settings.data == 0 else (False,)
    words = ("auto", "fp8_e4m3") if "fp8" in assumed else (settings.kv_dtype,)
    versions = (version,) if version else (None, *OPEN_VERSIONS)
    for one, grouped, word in product(versions, groups, words):
        yield replace(settings, version=one, dp_attention=grouped, kv_dtype=word)


def _gpu(record: dict):
    return gpu_class(record["gpu"] or "") or DEFAULT_GPU


def _outcome(record: dict, quantity: str, status: str, predicted=None, measured=None, why="") -> Outcome:
    soft = record["soft"] and quantity in (record.get("soft_for") or QUANTITIES)
    return Outcome(record["id"], quantity, "soft" if soft else "hard", status, predicted, measured, why)


def _judge(record: dict, quantity: str, found: SglangPlan) -> Outcome:
    judge = {
        "kv_bytes_per_token": _bytes_per_token,
        "kv_cache_mib": _cache,
        "state_mib": _state,
        "pool": _pool,
    }[quantity]
    measured, predicted, rounding = judge(record, found)
    if measured is None:
        return _outcome(record, quantity, "skipped", why="a needed figure is not in the record")
    off = abs(predicted - measured)
    close = off <= 0.005 * abs(measured)
    status = "exact" if off <= rounding else "within" if close else "off"
    return _outcome(record, quantity, status, predicted, measured)


def _printed(record: dict) -> tuple[float | None, float]:
    """Return (GiB of keys and values, rounding): two figures of two decimals, or one."""
    if record["kv_gb"] is not None:
        return record["kv_gb"], HALF_STEP
    if record["k_gb"] is None or record["v_gb"] is None:
        return None, 0.0
    return record["k_gb"] + record["v_gb"], 2 * HALF_STEP


def _bytes_per_token(record: dict, found: SglangPlan):
    printed, rounding = _printed(record)
    tokens = record["tokens"]
    if printed is None or not tokens:
        return None, 0.0, 0.0
    # A page more is allocated than is printed as usable.
    slots = tokens + found.page_size_tokens
    return (
        printed * GIB / slots,
        found.printed_bytes_per_token,
        rounding * GIB / tokens + found.printed_bytes_per_token / slots,
    )


def _cache(record: dict, found: SglangPlan):
    printed, rounding = _printed(record)
    tokens = record["tokens"]
    if printed is None or not tokens:
        return None, 0.0, 0.0
    ours = (tokens + found.page_size_tokens) * found.printed_bytes_per_token / (1 << 20)
    return (
        printed * 1024,
        ours,
        rounding * 1024 + found.page_size_tokens * found.printed_bytes_per_token / (1 << 20),
    )


def _state(record: dict, found: SglangPlan):
    parts = [record["conv_gb"], record["ssm_gb"]]
    if record["mamba_cache_size"] is None or None in parts:
        return None, 0.0, 0.0
    ours = found.state_bytes(record["mamba_cache_size"]) / (1 << 20)
    spare = found.state.slot_bytes / (1 << 20)
    return sum(parts) * 1024, ours, 2 * HALF_STEP * 1024 + spare


def _pool(record: dict, found: SglangPlan):
    printed, rounding = _printed(record)
    before, after = record["avail_mem_before_load_gb"], record["avail_mem_after_load_gb"]
    if printed is None or before is None or after is None:
        return None, 0.0, 0.0
    ours = static_bytes(int(after * GIB), int(before * GIB), found.mem_fraction_static) / GIB
    return printed, ours, rounding + 2 * HALF_STEP


def main() -> None:
    """Print the table and every figure that does not agree."""
    outcomes = [o for record in records() for o in replay(record)]
    table = Counter((o.quantity, o.hardness, o.status) for o in outcomes)
    for quantity, hardness in product(QUANTITIES, ("hard", "soft")):
        row = {s: table[quantity, hardness, s] for s in ("exact", "within", "off", "refused", "skipped")}
        print(f"{quantity:20} {hardness:5}", row)
    for o in outcomes:
        if o.status != "exact":
            print(o.record, o.quantity, o.hardness, o.status, o.predicted, o.measured, o.why)


if __name__ == "__main__":
    main()
