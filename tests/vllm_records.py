"""Records of vLLM 0.33's own plans, read into settings of ours; used by the tests of the engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm import Speculation, VllmPlan, VllmSettings
from kvgauge.engines.vllm.devices import gpu_class
from kvgauge.readers import read_architecture
from support import SHARED, config_of

ORACLE = SHARED / "data" / "oracle"
CONFIGS = SHARED / "data" / "configs"
LONGEST = 32768

#: A KV cache that this set-up could not bring up, though the engine would: types that its libraries lack.
SETUP_FAILURE = "Value error, The checkpoint you are trying to load"


def settings_of(row: dict) -> VllmSettings:
    """Return the settings of a golden row or of a record in its words."""
    card = gpu_class(row["gpu"])
    assert card is not None
    return VllmSettings(
        version="0.33.0",
        gpu=card,
        tensor=row["tp"],
        pipeline=row["pp"],
        kv_dtype=row["kv_dtype"],
        max_model_tokens=LONGEST,
        prefix_caching=None if row["prefix_caching"] else False,
        speculation=Speculation(row["mtp_tokens"]),
    )


def facts_of(plan: VllmPlan, budgets: list[int]) -> dict:
    """Return what a record states, from our plan."""
    pools = [(gib, plan.pool(gib << 30)) for gib in budgets]
    return {
        "block_size": plan.block_size_tokens,
        "bytes_per_block": plan.pool_bytes_per_block,
        "groups": [
            [g.num_layers, g.block_size_tokens, g.page_bytes, g.blocks_per_request] for g in plan.groups
        ],
        "batch": [plan.schedule.batched_tokens, plan.schedule.sequences, plan.schedule.in_flight_tokens],
        "pools": [[gib, pool.num_blocks, pool.capacity_tokens, pool.max_concurrency] for gib, pool in pools],
    }


@lru_cache
def catalogue_architecture(model: str) -> ModelArchitecture:
    """Return a model of the catalogue, as it is read with its side file."""
    from kvgauge.models import load

    assert config_of(model)
    return load(model, offline=True).architecture


@lru_cache
def shared_architecture(file: str) -> ModelArchitecture:
    """Return a config of the shared folder, read with the quantisation file beside it."""
    path = next(
        p for p in (CONFIGS / "real" / f"{file}.json", CONFIGS / "logs" / f"{file}.json") if p.is_file()
    )
    side = path.with_name(f"{file}.hf_quant_config.json")
    return read_architecture(_json(path), _json(side) if side.is_file() else None)


def _json(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def oracle_rows() -> Iterator[tuple[str, dict, dict | None]]:
    """Yield (config file, row in our words, facts or None where the engine refuses); set-up failures left out."""
    for name in ("vllm_0.33.jsonl", "vllm_0.33_variants.jsonl"):
        for line in (ORACLE / name).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "ModelConfig" in record.get("error", ""):
                continue
            variant = record.get("variant", "")
            row = {
                "gpu": record["gpu"], "tp": record["tp"], "pp": record["pp"],
                "kv_dtype": record["kv_dtype_arg"],
                "prefix_caching": variant != "prefix caching off",
                "mtp_tokens": int(variant.split()[1]) if variant.startswith("MTP") else 0,
            }  # fmt: skip
            yield record["model"], row, None if "error" in record else _facts(record)


def _facts(record: dict) -> dict:
    return {
        "block_size": record["block_size"],
        "bytes_per_block": record["pool_bytes_per_block"],
        "groups": [[g["layers"], g["block"], g["page"], g["blocks_per_request"]] for g in record["groups"]],
        "batch": [record["max_num_batched_tokens"], record["max_num_seqs"], record["max_in_flight_tokens"]],
        "pools": [
            [int(gib), b["num_blocks"], b["kv_cache_size_tokens"], b["max_concurrency"]]
            for gib, b in record["budgets_gib"].items()
        ],
    }
