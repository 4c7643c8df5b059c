"""Replay figures of vLLM's start-up logs: the plan of a record's flags and version, given the printed pool.

    python tests/vllm_fieldlogs.py        prints, by quantity and hardness, how many agree, and every other one

A log rounds its pool to 0.01 GiB, so a figure agrees when some number of blocks inside that rounding gives it.
Where a record leaves a default open (``assumed``: the token rule, prefix caching), the choices are tried.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from kvgauge.engines.vllm import VllmPlan, VllmSettings, plan
from kvgauge.engines.vllm.devices import DEFAULT_GPU, gpu_class, gpu_of_memory
from kvgauge.engines.vllm.flags import parse_flags
from kvgauge.errors import KvgaugeError
from support import SHARED
from vllm_records import shared_architecture

RECORDS = SHARED / "data" / "fieldlogs" / "vllm.jsonl"
QUANTITIES = ("kv_bytes_per_token", "num_blocks", "kv_tokens", "max_concurrency", "kv_needed")
GIB = 1 << 30
HALF_STEP = 0.005
#: Records with a figure that does not agree, and the term behind it.
CAUSES = {
    "vllm-055": "the author rounds to 150K tokens",
    "vllm-059": "two nodes: the printed GiB is another rank's than the smallest, which the pool follows",
    "vllm-083": "no public shape for the model here: the config lacks the kernel of its convolutions",
    "vllm-088": "426 / 179 blocks: fp8 KV and 3 drafted tokens, which the excerpt hides",
    "vllm-091": "layers of a draft model that the excerpt does not name",
    "vllm-136": "unexplained: 2,670 blocks of 557,056 bytes a layer, half of what the same host shows elsewhere",
    "vllm-160": "589 blocks of 2,128 a group: fp8 KV and 2 drafted tokens, which the excerpt hides",
    "vllm-204": "a fork, and grouping of compressed caches before 0.24 is not known",
    "vllm-206": "another platform; model inferred from its bytes",
    "vllm-221": "a sample log inside a test file, composed",
    "vllm-236": "layers of the draft model are not stated",
    "vllm-237": "layers of the draft model are not stated",
    "vllm-238": "layers of the draft model are not stated",
    "vllm-299": "tokens and blocks agree; the concurrency was printed for another rank's blocks",
    "vllm-335": "4,263 / 243 blocks: 2 drafted tokens, against the note of the record",
    "vllm-341": "no public shape for the model here: the config lacks the ratio of its index",
    "vllm-342": "another batch than the default of the card; the excerpt hides it",
    "vllm-374": "how index keys of several tokens are grouped beside states is not known",
    "vllm-387": "547 / 170 blocks of 1,600: a grain of 64 tokens, as --block-size 64 gives; not in the excerpt",
    "vllm-396": "936 / 176 blocks: 2 drafted tokens, which the excerpt hides",
    "vllm-441": "the author rounds the GiB",
    "vllm-465": "a draft model and an index in 4 bits, neither stated with its shape",
    "vllm-468": "a draft model, neither stated with its shape nor its tokens",
    "vllm-476": "the token line is another rank's than the GiB line, as the log itself shows",
}
#: Versions on either side of a rule that a record leaves open.
OPEN_VERSIONS = ("0.19.1", "0.22.1", "0.25.1", "0.33.0")


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
    try:
        tried = list(candidates(record))
    except KvgaugeError as error:
        return [outcome(record, q, "refused", why=error.message) for q in wanted]
    for settings in tried:
        try:
            found = plan(shared_architecture(record["config_ref"].replace("/", "--", 1)), settings)
        except KvgaugeError as error:
            outcomes = [outcome(record, q, "refused", why=error.message) for q in wanted]
        else:
            outcomes = [_judge(record, q, found) for q in wanted]
        if not best or _agreeing(outcomes) > _agreeing(best):
            best = outcomes
    return best


def _agreeing(outcomes: list[Outcome]) -> float:
    return sum({"exact": 1.0, "within": 0.1}.get(o.status, 0.0) for o in outcomes)


def candidates(record: dict) -> Iterator[VllmSettings]:
    """Yield the settings that a record may have meant."""
    assumed = " ".join(record.get("assumed") or ())
    settings = replace(parse_flags(record["engine_args"] or ""), gpu=_gpu(record))
    if "tp = number of GPUs" in assumed and record["gpu_count"]:
        settings = replace(settings, tensor=record["gpu_count"])
    if "kv_cache_dtype fp8" in assumed:
        settings = replace(settings, kv_dtype="fp8")
    version = _version(record)
    is_open = version is None or "token rule" in assumed or "by date" in assumed
    versions = (version, *OPEN_VERSIONS) if is_open else (version,)
    # A mode of states is only asked for where prefixes are cached.
    is_left_open = "prefix caching default" in assumed or settings.state_cache_mode is not None
    caching = (None, True, False) if is_left_open else (settings.prefix_caching,)
    batches = (
        (None, 2048, 4096, 8192, 16384)
        if "max_num_batched_tokens default" in assumed
        else (settings.max_batched_tokens,)
    )
    for one, cached, batch in product(dict.fromkeys(versions), caching, batches):
        if one is not None:
            yield replace(settings, version=one, prefix_caching=cached, max_batched_tokens=batch)


def _version(record: dict) -> str | None:
    for text in (record["engine_version"], record.get("engine_version_by_date")):
        match = re.match(r"\d+\.\d+(?:\.\d+)?(?:\.post\d+)?(?:rc\d+)?(?:\.dev\d+)?", text or "")
        if match:
            return match[0]
    return None


def _gpu(record: dict):
    named = gpu_class(record["gpu"] or "")
    total = record["total_gpu_gib"]
    return named or (gpu_of_memory(int(total * GIB)) if total else DEFAULT_GPU)


def outcome(record: dict, quantity: str, status: str, predicted=None, measured=None, why="") -> Outcome:
    """Return one outcome, with how far its inputs are stated."""
    soft = record["soft"] and quantity in (record.get("soft_for") or QUANTITIES)
    return Outcome(record["id"], quantity, "soft" if soft else "hard", status, predicted, measured, why)


def _judge(record: dict, quantity: str, found: VllmPlan) -> Outcome:
    judge = {
        "kv_bytes_per_token": _bytes_per_token,
        "num_blocks": _num_blocks,
        "kv_tokens": _tokens,
        "max_concurrency": _concurrency,
        "kv_needed": _needed,
    }[quantity]
    measured, predictions = judge(record, found)
    if measured is None or not predictions:
        return outcome(record, quantity, "skipped", why="a needed figure is not in the record")
    nearest = min(predictions, key=lambda p: abs(p - measured))
    exact = abs(nearest - measured) <= _ROUNDING[quantity]
    close = abs(nearest - measured) <= 0.005 * abs(measured)
    return outcome(record, quantity, "exact" if exact else "within" if close else "off", nearest, measured)


_ROUNDING = {
    "kv_bytes_per_token": 0.5,
    "num_blocks": 0,
    "kv_tokens": 0,
    "max_concurrency": 0.00501,
    "kv_needed": 0.00501,
}


def _blocks(record: dict, found: VllmPlan) -> range:
    """Return the numbers of blocks that a record allows."""
    if record["gpu_blocks"]:
        return range(record["gpu_blocks"], record["gpu_blocks"] + 1)
    pool, size = record["kv_available_gib"], found.stage_bytes_per_block
    if pool is None or not size:
        return range(0)
    step = HALF_STEP if round(pool, 1) != pool or pool < 30 else 0.05
    return range(int((pool - step) * GIB) // size, int((pool + step) * GIB) // size + 1)


def _printed(record: dict, found: VllmPlan) -> list[tuple[int, float]]:
    exact = [replace(found, num_blocks_override=blocks).pool(0) for blocks in _blocks(record, found)]
    return [(pool.capacity_tokens, pool.max_concurrency) for pool in exact]


def _tokens(record: dict, found: VllmPlan):
    measured = record["kv_tokens"]
    if measured is None and record["gpu_blocks"] and found.rules.tokens != "concurrency":
        measured = record["gpu_blocks"] * found.block_size_tokens
    return measured, [tokens for tokens, _ in _printed(record, found)]


def _concurrency(record: dict, found: VllmPlan):
    printed = _printed(record, found)
    if record["kv_tokens"] is not None:
        same = [row for row in printed if row[0] == record["kv_tokens"]]
        # A pool of one kind follows from its tokens; the printed GiB may be another rank's.
        by_tokens = _from_tokens(record, found) if not printed or len(found.groups) == 1 else []
        printed = same or by_tokens or printed
    return record["max_concurrency"], [concurrency for _, concurrency in printed]


def _from_tokens(record: dict, found: VllmPlan) -> list[tuple[int, float]]:
    """Return what printed tokens say of the concurrency where no pool is printed."""
    tokens, longest = record["kv_tokens"], found.schedule.max_model_tokens
    if found.rules.tokens == "concurrency" or not found.rules.concurrency_by_blocks:
        return [(tokens, tokens / longest)]
    groups = max(1, len(found.groups))
    smallest = min(group.block_size_tokens for group in found.groups)
    first = tokens // (smallest * found.requests.context_ranks) * groups
    return [(tokens, blocks / found.blocks_per_request) for blocks in range(first, first + groups)]


def _bytes_per_token(record: dict, found: VllmPlan):
    measured = (record.get("extra") or {}).get("bytes_per_token")
    whole = [g for g in found.groups if g.kind in ("full", "latent")]
    predicted = sum(
        g.num_layers * g.page_bytes / g.block_size_tokens
        if g.bytes_per_block != g.page_bytes
        else g.page_bytes / g.block_size_tokens
        for g in whole
    )
    if measured is not None:
        return measured, [predicted]
    tokens = record["kv_tokens"] or (record["gpu_blocks"] or 0) * found.block_size_tokens
    pool = record["kv_available_gib"]
    if not tokens or pool is None:
        return None, []
    if len(found.groups) == 1:
        ours = found.stage_bytes_per_block / found.block_size_tokens / found.requests.context_ranks
    else:
        ours = pool * GIB / max(1, found.pool(int(pool * GIB)).capacity_tokens)
    low, high = (
        (pool - HALF_STEP) * GIB / (tokens + found.block_size_tokens * found.requests.context_ranks),
        (pool + HALF_STEP) * GIB / tokens,
    )
    measured = pool * GIB / tokens
    return measured, [measured if low <= ours <= high else ours]


def _num_blocks(record: dict, found: VllmPlan):
    pool, size = record["kv_available_gib"], found.stage_bytes_per_block
    if pool is None:
        return None, []
    return record["gpu_blocks"], list(
        range(int((pool - HALF_STEP) * GIB) // size, int((pool + HALF_STEP) * GIB) // size + 1)
    )


def _needed(record: dict, found: VllmPlan):
    return record["kv_needed_gib"], [found.stage_bytes_per_block * found.blocks_per_request / GIB]


def main() -> None:
    """Print the table and every figure that does not agree."""
    outcomes = [o for record in records() for o in replay(record)]
    table = Counter((o.quantity, o.hardness, o.status) for o in outcomes)
    for quantity, hardness in product(QUANTITIES, ("hard", "soft")):
        row = {s: table[quantity, hardness, s] for s in ("exact", "within", "off", "refused", "skipped")}
        print(f"{quantity:20} {hardness:5}", row)
    for o in outcomes:
        if o.status != "exact":
            print(
                o.record,
                o.quantity,
                o.hardness,
                o.status,
                "predicted",
                o.predicted,
                "measured",
                o.measured,
                o.why,
            )


if __name__ == "__main__":
    main()
