"""Start-up logs of llama.cpp, its fork and its shells: caches and states as printed, working buffers in range.

The records lie beside the checkout (``data/fieldlogs/llamacpp.jsonl``); without them the tests are skipped. What is off
has its cause in ``CAUSES``; nothing else may be.
"""

from __future__ import annotations

import json

import pytest

from kvgauge.engines.llamacpp import plan, rules_for, settings_of
from kvgauge.errors import KvgaugeError
from kvgauge.readers.gguf import read_metadata
from kvgauge.readers.gguf.from_config import metadata_of_config
from support import SHARED

DATA = SHARED / "data"
LOGS = DATA / "fieldlogs" / "llamacpp.jsonl"
MIB = 1 << 20

#: Records that the rules do not reproduce, and why.
CAUSES = {
    "llamacpp-003": "the drafts that the state is rolled back by are not stated: 7 states",
    "llamacpp-070": "the drafts that the state is rolled back by are not stated: 5 states",
    "llamacpp-043": "a cache type of a fork",
    "llamacpp-292": "the window pool is as long as the context: --swa-full, or a micro-batch that is not stated",
}
#: Eras to try where the record states no version, newest first.
ERAS = (None, "b8000", "b7000", "b6500", "2025-06", "b5200", "b4500")

pytestmark = pytest.mark.skipif(not LOGS.exists(), reason="the records of logs are not beside the checkout")


def records():
    return [json.loads(line) for line in LOGS.read_text().splitlines()] if LOGS.exists() else []


def usable(quantity: str):
    return [r for r in records() if quantity in (r.get("usable_for") or [])]


def architecture_of(record):
    name = (record.get("config_ref") or "").replace("/", "--") + ".json"
    for folder in ("real", "logs"):
        path = DATA / "configs" / folder / name
        if path.exists():
            config = json.loads(path.read_text())
            # Short configs leave query heads out where a cache does not depend on them.
            config.setdefault("num_attention_heads", config.get("num_key_value_heads"))
            return read_metadata(metadata_of_config({k: v for k, v in config.items() if v is not None}))
    return read_metadata(record["gguf_metadata"]) if record.get("gguf_metadata") else None


def arguments(record) -> str:
    args = record.get("engine_args") or ""
    if "-c" not in args.split() and record.get("cells"):
        args += f" -c {record['cells'] * (record.get('n_stream') or 1)}"
    if "-ctk" in args.split() and "-ctv" not in args.split():
        args += " -ctv " + args.split("-ctk ")[1].split()[0]  # one type where the log prints one
    return args


def eras(record):
    return ("ik", None) if record["engine"].startswith("ik_") else ERAS


def plans(record, architecture, **load):
    for era in eras(record):
        load = {"sequences": record.get("n_seq_max"), **load}
        try:
            yield plan(architecture, settings_of(arguments(record), build=rules_for(era), **load))
        except KvgaugeError:
            continue


def printed(record) -> float:
    return (record.get("kv_mib") or 0) + (record.get("swa_kv_mib") or 0)


def cache_mib(record, answer) -> set[float]:
    """Return the sums that a log may print: with and without pools that it prints apart, or not at all."""
    parts = {"main": 0.0, "swa": 0.0, "index": 0.0}
    for a in answer.allocations:
        if a.kind == "cache":
            kind = "swa" if ".swa" in a.name else "index" if "indexer" in a.name else "main"
            parts[kind] += a.bytes / MIB
    if record.get("swa_kv_mib") is not None:
        both = parts["main"] + parts["swa"] if record.get("kv_mib") else parts["swa"]
        return {both, both + parts["index"]}
    return {parts["main"], parts["main"] + parts["index"], parts["main"] + parts["swa"]}


@pytest.mark.parametrize("record", usable("kv_cache_mib"), ids=lambda r: r["id"])
def test_cache(record):
    architecture = architecture_of(record)
    if architecture is None:
        pytest.skip("the record ties to no public shape that is known here")
    if record["id"] in CAUSES:
        pytest.skip(CAUSES[record["id"]])
    sums = {s for answer in plans(record, architecture) for s in cache_mib(record, answer)}
    assert any(abs(s - printed(record)) < 0.02 for s in sums), (sorted(sums), printed(record))


@pytest.mark.parametrize("record", usable("state_mib"), ids=lambda r: r["id"])
def test_state(record):
    architecture = architecture_of(record)
    if architecture is None or record.get("rs_mib") is None:
        pytest.skip("the record ties to no public shape that is known here, or prints no sum")
    if record["id"] in CAUSES:
        pytest.skip(CAUSES[record["id"]])
    sums = {answer.total_bytes("state") / MIB for answer in plans(record, architecture)}
    slots = {answer.total_bytes("state") / MIB / answer.sequences for answer in plans(record, architecture)}
    assert any(abs(s - record["rs_mib"]) < 0.02 for s in sums | slots), (sums, record["rs_mib"])


def test_working_buffers_on_devices():
    """Of the fork, whose latents need a layer of expanded rows, only other models are held."""
    held, missed = 0, []
    for record in usable("compute"):
        architecture = architecture_of(record)
        buffers = record.get("compute_mib") or {}
        device = max((v for k, v in buffers.items() if v and k != "CPU" and "ost" not in k), default=0)
        latent = architecture is None or architecture.model_type in ("deepseek2", "deci")
        if not device or latent or "-ngl 0" in (record.get("engine_args") or ""):
            continue
        answers = [*plans(record, architecture, sequences=record.get("n_seq_max") or 1)]
        parts = [a for p in answers for a in p.allocations if a.name == "compute" and a.place == "gpu:0"]
        if any(a.low <= device * MIB <= a.high for a in parts):
            held += 1
        else:
            missed.append((record["id"], device, [round(a.bytes / MIB, 1) for a in parts]))
    assert held >= 9
    assert not missed, missed
