"""SGLang in the commands: what sequences set aside, and the pool that ``fit`` answers, against its own plans."""

from __future__ import annotations

import pytest

import kvgauge
from kvgauge.models import Model, load
from sglang_records import ORACLE, oracle_rows
from support import golden_lines
from vllm_records import CONFIGS, shared_architecture

GIB = 1 << 30
GOLDEN = golden_lines("sglang_0.5.23_pools.jsonl")[1:]
ENGINE = "sglang@0.5.23"
MODELS = (
    "Qwen/Qwen3-8B", "Qwen/Qwen3.5-27B", "google/gemma-3-27b-it", "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V3.2", "zai-org/GLM-5.2-FP8",
    "MiniMaxAI/MiniMax-M3", "nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "meta-llama/Llama-3.2-11B-Vision-Instruct", "nvidia/Gemma-4-26B-A4B-NVFP4", "XiaomiMiMo/MiMo-V2-Flash",
    "LiquidAI/LFM2-1.2B",
)  # fmt: skip


def facts_of(model, row: dict, budgets: list[int]) -> dict:
    """Return what ``fit`` answers in the words of a golden row."""
    found = [
        kvgauge.fit(
            model, kv_memory=f"{gib}GiB", engine=ENGINE, gpu=row["gpu"], tp=row["tp"], context=row["context"],
            kv_dtype=row["kv_dtype"], no_weights=True, offline=True,
        )
        for gib in budgets
    ]  # fmt: skip
    details = found[0].details
    state = [details["state_bytes_per_slot"], details["state_slots_per_request"]]
    return {
        "cell": details["cell_size"],
        "page": found[0].pool.page_size_tokens,
        "fraction": found[0].pool.mem_fraction_static,
        "chunk": details["chunked_prefill_size"],
        "graph_batch": details["cuda_graph_max_bs"],
        "state": None if None in state else state,
        "pools": [
            [gib, r.pool.capacity_tokens, r.pool.swa_tokens, r.pool.state_slots, r.pool.max_running_requests]
            for gib, r in zip(budgets, found, strict=True)
        ],
    }


@pytest.mark.parametrize(
    "row", GOLDEN[::3], ids=lambda row: f"{row['model']}-{row['gpu'].split()[1]}-{row['tp']}"
)
def test_pools_equal_the_engines_own(row):
    facts = facts_of(row["model"], row, [pool[0] for pool in row["pools"]])
    assert facts == {name: row[name] for name in facts}


@pytest.mark.skipif(not ORACLE.is_file(), reason="the wider records are not here")
def test_every_record_through_the_public_call():
    unequal, count = [], 0
    for model, row, stated in oracle_rows():
        count += 1
        folders = (CONFIGS / "real", CONFIGS / "logs")
        path = next(f for folder in folders if (f := folder / f"{model}.json").is_file())
        own = Model(load(path).raw, shared_architecture(model))
        facts = facts_of(own, row, [pool[0] for pool in stated["pools"]])
        if facts != {name: stated[name] for name in facts}:
            unequal.append((model, row))
    assert not unequal
    assert count >= 400
