"""Replay figures of TensorRT-LLM's start-up logs: the plan of a record's flags, given the printed pool.

    python tests/trtllm_fieldlogs.py        prints, by quantity and hardness, how many agree, and every
    other one

A log rounds its pool to 0.01 GiB, so tokens agree when some pool inside that rounding gives them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.tensorrt_llm import TrtllmPlan, TrtllmSettings, plan
from kvgauge.engines.tensorrt_llm.flags import parse_flags
from kvgauge.errors import KvgaugeError
from support import SHARED
from vllm_records import shared_architecture

RECORDS = SHARED / "data" / "fieldlogs" / "trtllm.jsonl"
QUANTITIES = ("kv_bytes_per_token", "kv_tokens", "num_blocks", "pool")
GIB = 1 << 30
HALF_STEP = 0.005
#: Records with a figure that does not agree, and the term behind it.
CAUSES: dict[str, str] = {}
#: Stands in where a record names no model: blocks and quota do not depend on one.
ANY_MODEL = "meta-llama--Llama-3.1-8B-Instruct"


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
            found = plan(_model(record), settings)
        except KvgaugeError as error:
            outcomes = [_outcome(record, q, "refused", why=error.message) for q in wanted]
        else:
            outcomes = [_judge(record, q, found) for q in wanted]
        exact = sum(o.status == "exact" for o in outcomes)
        if not best or exact > sum(o.status == "exact" for o in best):
            best = outcomes
    return best


def _model(record: dict) -> ModelArchitecture:
    return shared_architecture((record.get("config_ref") or ANY_MODEL).replace("/", "--", 1))


def candidates(record: dict) -> Iterator[TrtllmSettings]:
    """Yield the settings that a record may have meant."""
    assumed = " ".join(record.get("assumed") or ())
    settings = parse_flags(record["engine_args"] or "")
    version = (record["engine_version"] or "").partition("/")[0] or None
    if record["kv_dtype"] in ("fp16", "float16"):
        settings = replace(settings, kv_dtype="float16")
    words = (settings.kv_dtype, "fp8") if "fp8" in assumed else (settings.kv_dtype,)
    blocks = (settings.tokens_per_block,) if settings.tokens_per_block else (32, 64)
    for word, block in product(words, blocks):
        yield replace(settings, version=version, kv_dtype=word, tokens_per_block=block)


def _outcome(record: dict, quantity: str, status: str, predicted=None, measured=None, why="") -> Outcome:
    soft = record["soft"] and quantity in (record.get("soft_for") or QUANTITIES)
    return Outcome(record["id"], quantity, "soft" if soft else "hard", status, predicted, measured, why)


def _judge(record: dict, quantity: str, found: TrtllmPlan) -> Outcome:
    judge = {
        "kv_bytes_per_token": _bytes_per_token,
        "kv_tokens": _tokens,
        "num_blocks": _blocks,
        "pool": _pool,
    }[quantity]
    measured, predicted, rounding = judge(record, found)
    if measured is None:
        return _outcome(record, quantity, "skipped", why="a needed figure is not in the record")
    off = abs(predicted - measured)
    close = off <= 0.005 * abs(measured)
    return _outcome(
        record,
        quantity,
        "exact" if off <= rounding else "within" if close else "off",
        float(predicted),
        float(measured),
    )


def _bytes_per_token(record: dict, found: TrtllmPlan):
    tokens, pool = record["tokens"], record["kv_gib"]
    if not tokens or pool is None:
        return None, 0, 0
    return pool * GIB / tokens, found.bytes_per_token, HALF_STEP * GIB / tokens


def _tokens(record: dict, found: TrtllmPlan):
    """Tokens of the pools inside the rounding; the nearest counts."""
    tokens, pool = record["tokens"], record["kv_gib"]
    if not tokens or pool is None:
        return None, 0, 0
    low, high = (found.pool(int((pool + step) * GIB)).capacity_tokens for step in (-HALF_STEP, HALF_STEP))
    whole = tokens % found.tokens_per_block == 0
    return tokens, min(max(tokens, low), high) if whole else 0, 0


def _blocks(record: dict, found: TrtllmPlan):
    """Blocks follow from the printed tokens."""
    if not record["blocks"] or not record["tokens"]:
        return None, 0, 0
    return record["blocks"], record["tokens"] / found.tokens_per_block, 0


def _pool(record: dict, found: TrtllmPlan):
    free = (record["extra"] or {}).get("available_gib")
    if free is None or record["kv_gib"] is None:
        return None, 0, 0
    # The pool is whole blocks of the quota, both printed to 0.01 GiB.
    quota = found.quota(int(free * GIB))
    return record["kv_gib"], quota / GIB, 2 * HALF_STEP + found.bytes_per_token * found.tokens_per_block / GIB


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
