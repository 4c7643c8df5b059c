"""Records of SGLang 0.5.23's own plans, read into settings of ours; used by the tests of the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kvgauge.engines.sglang import SglangPlan, SglangSettings
from kvgauge.engines.vllm.devices import gpu_class
from support import SHARED

ORACLE = SHARED / "data" / "oracle" / "sglang_0.5.23.jsonl"


def settings_of(row: dict) -> SglangSettings:
    """Return the settings of a golden row."""
    card = gpu_class(row["gpu"])
    assert card is not None
    return SglangSettings(
        version="0.5.23",
        gpu=card,
        tensor=row["tp"],
        kv_dtype=row["kv_dtype"],
        context_tokens=row["context"],
    )


def facts_of(plan: SglangPlan, budgets: list[int]) -> dict:
    """Return what a record states, from our plan."""
    pools = [(gib, plan.pool(gib << 30)) for gib in budgets]
    first = plan.stages[0] if plan.stages else None
    return {
        "cell": plan.cell_bytes,
        "page": plan.page_size_tokens,
        "backend": plan.attention.backend,
        "fraction": plan.mem_fraction_static,
        "chunk": plan.memory.chunk_tokens,
        "graph_batch": plan.memory.graph_max_batch,
        "requests": plan.memory.max_requests,
        "window_ratio": plan.window_ratio,
        "layers": [first.num_layers, first.num_window_layers] if first and plan.has_window_pool else None,
        "state": [plan.state.slot_bytes, plan.state.slots_per_request] if plan.state.slot_bytes else None,
        "pools": [
            [gib, pool.capacity_tokens, pool.swa_tokens, pool.state_slots, pool.max_running_requests]
            for gib, pool in pools
        ],
    }


def oracle_rows() -> Iterator[tuple[str, dict, dict]]:
    """Yield (config file, row in our words, facts); failures of the measuring set-up are left out."""
    for line in ORACLE.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "error" in record:
            continue
        row = {
            "gpu": record["gpu"], "tp": record["tp"], "kv_dtype": record["kv_dtype_arg"],
            "context": record["context_len"],
        }  # fmt: skip
        yield record["model"], row, _facts(record)


def _facts(record: dict) -> dict:
    budgets = record["budgets_gib"]
    first = next(iter(budgets.values()))
    has_state = "state_bytes_per_req" in record
    return {
        "cell": first.get("cell_size", first.get("bytes_per_full_token")),
        "page": record["page_size"],
        "backend": record["attention_backend"],
        "fraction": record["mem_fraction_static"],
        "chunk": record["chunked_prefill_size"],
        "graph_batch": record["decode_graph_max_bs"],
        "requests": record["max_running_requests"],
        "window_ratio": record["swa_full_tokens_ratio"],
        "layers": [record["full_layers"], record["swa_layers"]] if record["swa_layers"] else None,
        "state": [record["state_bytes_per_req"], record["mamba_slots_per_request"]] if has_state else None,
        "pools": [
            [int(gib), b["max_total_num_tokens"], b["swa_tokens"], b.get("max_mamba_cache_size"),
             b["max_running_requests"]]
            for gib, b in budgets.items()
        ],
    }  # fmt: skip
