"""vLLM in the commands: what sequences set aside, and the pool that ``fit`` answers, against its own plans."""

from __future__ import annotations

import json

import pytest

import kvgauge
from kvgauge.errors import FeatureUnsupportedError
from support import golden_lines
from vllm_records import CONFIGS, LONGEST, ORACLE, SETUP_FAILURE

GIB = 1 << 30
GOLDEN = golden_lines("vllm_0.33_pools.jsonl")[1:]
BIG = "Qwen/Qwen3-8B"
MODELS = (
    BIG, "google/gemma-3-27b-it", "Qwen/Qwen3.5-35B-A3B", "deepseek-ai/DeepSeek-V4-Flash",
    "deepseek-ai/DeepSeek-V3.2", "openai/gpt-oss-20b", "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct", "openai/whisper-large-v3",
)  # fmt: skip


def keywords_of(row: dict) -> dict:
    """Return the keywords of ``fit`` for a golden row, or a record in its words."""
    words = {
        "engine": "vllm@0.33.0", "gpu": row["gpu"], "context": LONGEST, "tp": row["tp"], "pp": row["pp"],
        "kv_dtype": row["kv_dtype"], "mtp": row["mtp_tokens"], "no_weights": True,
    }  # fmt: skip
    return words | ({} if row["prefix_caching"] else {"engine_args": "--no-enable-prefix-caching"})


@pytest.mark.parametrize("row", GOLDEN[::5], ids=lambda row: f"{row['model']}-{row['gpu'].split()[-1]}")
def test_pools_equal_the_engines_own(row):
    words = keywords_of(row)
    if row.get("refused"):
        with pytest.raises(FeatureUnsupportedError):
            kvgauge.fit(row["model"], kv_memory="20GiB", offline=True, **words)
        return
    for gib, blocks, tokens, concurrency in row["pools"]:
        found = kvgauge.fit(row["model"], kv_memory=f"{gib}GiB", offline=True, **words).pool
        assert (found.num_blocks, found.capacity_tokens, found.max_concurrency) == (
            blocks,
            tokens,
            concurrency,
        )
        assert (found.block_size_tokens, found.bytes_per_block) == (row["block_size"], row["bytes_per_block"])
        assert found.blocks_per_request == sum(group[-1] for group in row["groups"])


@pytest.mark.skipif(not ORACLE.is_dir(), reason="the wider records are not here")
def test_every_record_through_the_public_call():
    unequal, count = [], 0
    for name in ("vllm_0.33.jsonl", "vllm_0.33_variants.jsonl"):
        for line in (ORACLE / name).read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "ModelConfig" in record.get("error", "") or SETUP_FAILURE in record.get("error", ""):
                continue
            count += 1
            if _of_record(record) != _stated(record):
                unequal.append((record["model"], record["gpu"], record.get("variant")))
    assert not unequal
    assert count > 500


def _of_record(record: dict) -> list | None:
    variant = record.get("variant", "")
    row = {
        **record, "kv_dtype": record["kv_dtype_arg"], "prefix_caching": variant != "prefix caching off",
        "mtp_tokens": int(variant.split()[1]) if variant.startswith("MTP") else None,
    }  # fmt: skip
    folders = (CONFIGS / "real", CONFIGS / "logs")
    path = next(f for folder in folders if (f := folder / f"{record['model']}.json").is_file())
    side = path.with_name(f"{record['model']}.hf_quant_config.json")
    model = _with_side_file(path, side) if side.is_file() else path
    try:
        pools = [
            kvgauge.fit(model, kv_memory=int(gib) << 30, **keywords_of(row)).pool
            for gib in record.get("budgets_gib", {"20": None})
        ]
    except FeatureUnsupportedError:
        return None
    return [
        [p.block_size_tokens, p.bytes_per_block, p.blocks_per_request, p.num_blocks, p.capacity_tokens,
         p.max_concurrency]
        for p in pools
    ]  # fmt: skip


def _with_side_file(path, side):
    from kvgauge.models import Model, load
    from kvgauge.readers import read_architecture

    model = load(path)
    quantization = json.loads(side.read_text(encoding="utf-8"))
    return Model(model.raw, read_architecture(model.raw.config, quantization))


def _stated(record: dict) -> list | None:
    if "error" in record:
        return None
    return [
        [record["block_size"], record["pool_bytes_per_block"], record["blocks_per_request"], budget["num_blocks"],
         budget["kv_cache_size_tokens"], budget["max_concurrency"]]
        for budget in record["budgets_gib"].values()
    ]  # fmt: skip
