"""TensorRT-LLM in the commands: what sequences set aside, and the pool of ``fit``, against start-up logs."""

from __future__ import annotations

import pytest

import kvgauge
from kvgauge.arithmetic import evaluate
from kvgauge.engines import parse_engine
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.models import Model, load
from support import golden_lines
from trtllm_fieldlogs import ANY_MODEL, RECORDS, records
from vllm_records import CONFIGS, shared_architecture

GIB = 1 << 30
GOLDEN = golden_lines("tensorrt_llm_logs.jsonl")[1:]
ENGINE = "tensorrt-llm"
MODELS = (
    "Qwen/Qwen3-8B", "Qwen/Qwen3.5-27B", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3.2",
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "nvidia/Gemma-4-26B-A4B-NVFP4",
)  # fmt: skip
#: A log prints its pool to 0.01 GiB.
HALF_STEP = 0.005


def sized(name: str, **words):
    """Return ``size`` of a model of the catalogue."""
    return kvgauge.size(name, **{"engine": ENGINE, "no_weights": True, "offline": True, **words})


def fitted(model, **words):
    """Return ``fit`` of a model."""
    return kvgauge.fit(model, **{"engine": ENGINE, "no_weights": True, "offline": True, **words})


def nearest_tokens(model, args: str, pool_gib: float, tokens: int, version: str | None = None) -> int:
    """Return the tokens of the pool inside a log's rounding that comes nearest."""
    engine = ENGINE if version is None else f"{ENGINE}@{version}"
    low, high = (
        fitted(
            model, engine=engine, engine_args=args, kv_memory=int((pool_gib + step) * GIB)
        ).pool.capacity_tokens
        for step in (-HALF_STEP, HALF_STEP)
    )
    return min(max(tokens, low), high)


@pytest.mark.parametrize("row", [r for r in GOLDEN if r["tokens"]], ids=lambda row: row["log"])
def test_tokens_of_start_up_logs(row):
    assert nearest_tokens(row["model"], row["args"], row["kv_gib"], row["tokens"]) == row["tokens"]


@pytest.mark.skipif(not RECORDS.is_file(), reason="the wider records are not here")
def test_every_record_through_the_public_call():
    count = 0
    for record in records():
        tokens, pool = record["tokens"], record["kv_gib"]
        if not tokens or pool is None or not {"kv_tokens", "kv_bytes_per_token"} & set(record["usable_for"]):
            continue
        name = (record.get("config_ref") or ANY_MODEL).replace("/", "--", 1)
        path = next(f for folder in ("real", "logs") if (f := CONFIGS / folder / f"{name}.json").is_file())
        model = Model(load(path).raw, shared_architecture(name))
        args = record["engine_args"] or ""
        block = "" if "tokens_per_block" in args else " tokens_per_block=64"
        words = ["", " --kv_cache_dtype fp8", " --kv_cache_dtype float16"]
        tried = [
            f"{args}{more}{own}" for more in ("", block) for own in (words if "dtype" not in args else [""])
        ]
        assert tokens in {nearest_tokens(model, one, pool, tokens) for one in tried}, record["id"]
        count += 1
    assert count >= 6


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("spread", [{}, {"tp": 2, "pp": 2}], ids=str)
def test_bytes_hold_at_every_length_and_on_every_rank(name, spread):
    for words in ({}, {"kv_dtype": "fp8"}, {"engine_args": "max_attention_window=[128,32768]"}):
        found = sized(name, context=3000, sequences=3, **spread, **words)
        for tokens in (0, 1, 31, 32, 33, 700, 5001):
            other = sized(name, context=tokens, **{"max_model_len": 5001, **spread, **words})
            again = sized(name, context=3000, **{"max_model_len": 5001, **spread, **words})
            assert other.cache.bytes_per_sequence == again.cache.bytes_at(tokens)
        for rank, size in enumerate(found.cache.per_rank_bytes):
            own = [a for a in found.allocations if a["rank"] == rank and a["name"] != "reserved"]
            assert sum(a["bytes"] for a in own) == size
            assert all(a["bytes"] > 0 for a in own)
        assert sum(layer.total_bytes for layer in found.cache.layers) == found.cache.total_bytes


@pytest.mark.parametrize("name", MODELS)
def test_a_rank_holds_what_the_plan_prices(name):
    found = sized(name, context=8192, engine_args="--max_batch_size 8")
    request = fitted(name, context=8192, kv_memory=8 * GIB, engine_args="--max_batch_size 8")
    assert found.cache.per_rank_bytes[0] == request.pool.bytes_per_request


@pytest.mark.parametrize("name", MODELS)
def test_the_least_pool_and_the_most_that_fits(name):
    words = {"context": 5000, "engine_args": "--max_batch_size 64"}
    found = fitted(name, sequences=3, kv_memory=30 * GIB, **words)
    needed, most = found.verdict.required_bytes, found.max_sequences.count
    assert fitted(name, sequences=3, kv_memory=needed, **words).verdict.fits
    assert not fitted(name, sequences=3, kv_memory=needed - 1, **words).verdict.fits
    assert fitted(name, sequences=most, kv_memory=30 * GIB, **words).verdict.fits
    assert not fitted(name, sequences=most + 1, kv_memory=30 * GIB, **words).verdict.fits
    assert found.devices[0].pool_bytes <= 31 * GIB


def test_pools():
    found = fitted("Qwen/Qwen3-8B", context=1000, kv_memory=10 * GIB)
    assert (found.pool.num_blocks, found.pool.block_size_tokens) == (10 * GIB // 147456 // 32, 32)
    assert found.pool.bytes_per_block == 32 * 147456
    assert found.pool.capacity_tokens == 32 * found.pool.num_blocks
    assert found.pool.page_size_tokens is None
    limited = fitted("Qwen/Qwen3-8B", kv_memory=10 * GIB, engine_args=f"max_gpu_total_bytes={GIB}")
    assert limited.pool.num_blocks == GIB // 147456 // 32
    assert limited.verdict.available_bytes == GIB
    older = fitted("Qwen/Qwen3-8B", kv_memory=10 * GIB, engine="trtllm@0.20.0")
    assert older.pool.block_size_tokens == 64
    states = fitted("Qwen/Qwen3.5-27B", kv_memory=40 * GIB, engine_args="--max_batch_size 16")
    assert (states.pool.state_slots, states.pool.max_running_requests) == (17, 16)
    assert "states_assumed" in {note.code for note in states.notes}


def test_states_of_the_batch_come_out_of_the_pool_first():
    found = fitted("Qwen/Qwen3.5-27B", kv_memory=40 * GIB)
    assert not found.verdict.fits
    assert found.verdict.required_bytes > 2048 * 153944064
    assert (found.pool.num_blocks, found.devices[0].pool_bytes) == (0, 0)
    assert "states_set_aside" in {note.code for note in found.notes}


def test_limits_that_flags_set():
    found = fitted("Qwen/Qwen3-8B", context=1000, kv_memory=10 * GIB, engine_args="max_tokens=5000")
    assert (found.pool.capacity_tokens, found.max_sequences.count, found.max_sequences.limited_by) == (
        4992, 4, "flag"
    )  # fmt: skip
    assert (found.max_context.count, found.max_context.limited_by) == (4992, "flag")
    batch = fitted("Qwen/Qwen3-8B", context=10, sequences=9, kv_memory=GIB, engine_args="--max_batch_size 8")
    assert (batch.verdict.fits, batch.verdict.limiting) == (False, "flag")
    more = fitted("Qwen/Qwen3-8B", context=10, sequences=3000, kv_memory=80 * GIB)
    assert "--max_batch_size 3000" in more.launch_command


def test_flags_go_before_options_and_groups_are_replicas():
    found = sized("Qwen/Qwen3-8B", context=100, tp=2, engine_args="--tp_size 4 --kv_cache_dtype fp8")
    assert found.request.parallelism.tensor == 4
    assert found.cache.per_rank_bytes[0] == 128 * 36 * 2 * 2 * 128
    args = "--tp_size 4 --enable_attention_dp true"
    groups = fitted("Qwen/Qwen3-8B", context=32, sequences=4, kv_memory=GIB, engine_args=args)
    assert (groups.request.parallelism.tensor, groups.request.parallelism.data) == (1, 4)
    assert groups.verdict.required_bytes == 32 * 147456
    with pytest.raises(InvalidRequestError, match="groups"):
        sized("Qwen/Qwen3-8B", tp=4, engine_args="--enable_attention_dp true")
    with pytest.raises(FeatureUnsupportedError, match="reused"):
        sized("Qwen/Qwen3-8B", shared_prefix=10, engine_args="enable_block_reuse=false")


def test_names():
    for name in ("trtllm", "trt-llm", "tensorrt_llm", "TensorRT-LLM"):
        assert parse_engine(name) == ("tensorrt-llm", None)
    assert "engine_version_newer" in {n.code for n in sized("Qwen/Qwen3-8B", engine="trtllm@2.0.0").notes}
    assert [s // (32 * 4096) for s in sized("Qwen/Qwen3-8B", context=9, pp=5).cache.per_rank_bytes] == [
        8, 7, 7, 7, 7
    ]  # fmt: skip


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", MODELS)
def test_explanations_evaluate(name, lang):
    for words in ({}, {"tp": 2, "pp": 2, "sequences": 3}):
        explanation = kvgauge.explain(sized(name, context=3000, **words), lang=lang)
        for step in explanation.steps:
            assert evaluate(step.formula, step.symbols) == step.value_bytes, step
            for symbol, formula in step.definitions:
                assert evaluate(formula, step.symbols) == step.symbols[symbol]
            assert "{" not in step.title + step.text
