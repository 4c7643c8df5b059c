"""What loading takes of a device under SGLang, and the tokens of a pool from end to end, against start-up logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kvgauge
from kvgauge.engines import sglang_load
from kvgauge.engines.release_days import released_by
from kvgauge.engines.torch_memory import allocated_bytes, reserved_bytes
from kvgauge.readers.hf.rotary import read_rotary

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "golden" / "sglang_loading.jsonl").read_text().splitlines()
]
GIB, MIB = 1 << 30, 1 << 20


def loaded(row):
    model = kvgauge.load(row["model"], offline=True)
    weights = kvgauge.size(model, engine=row["engine"], tp=row["tp"]).weights
    rotary = read_rotary(model.raw.config)
    kind = model.architecture.model_type
    return sglang_load.loaded_bytes(weights.rank_tensors(0), rotary, model_type=kind) / GIB


@pytest.mark.parametrize("row", [row for row in ROWS if "loaded_gib" in row], ids=lambda row: row["model"])
def test_what_loading_takes_of_free_memory(row):
    assert loaded(row) == pytest.approx(row["loaded_gib"], abs=row["within_gib"] + 0.005)


@pytest.mark.parametrize("row", [row for row in ROWS if "tokens" in row], ids=lambda row: row["model"])
def test_tokens_from_card_share_and_weights(row):
    answer = kvgauge.fit(
        row["model"], gpu=row["gpu"], engine=row["engine"], tp=row["tp"], context=4096,
        engine_args=row.get("args", ""), suggestions=False,
    )  # fmt: skip
    assert answer.pool.capacity_tokens == pytest.approx(row["tokens"], rel=row["within_fraction"])
    measured = row["tokens"] * answer.details["cell_size"]
    assert answer.left.low_bytes <= measured <= answer.left.high_bytes


@pytest.mark.parametrize(
    "sizes", [[1], [MIB] * 5, [3 * MIB] * 7, [int(12.5 * MIB)] * 3, [511, 40 * MIB, 2 * MIB]]
)
def test_segments_hold_what_is_allocated(sizes):
    assert sum(sizes) <= allocated_bytes(sizes) <= reserved_bytes(sizes)
    assert reserved_bytes(sizes) % (2 * MIB) == 0


def test_the_release_of_a_day():
    assert released_by("sglang", "2025-10-05") == "0.5.2"
    assert released_by("sglang", "2025-10-06 12:00:00") == "0.5.3"
    assert released_by("vllm", "2025-10-06") is None
