"""SGLang in the commands: what sequences set aside, and the pool that ``fit`` answers, against its own plans."""

from __future__ import annotations

import pytest

import kvgauge
from kvgauge.arithmetic import evaluate
from kvgauge.engines import parse_engine
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
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


def sized(name: str, **words):
    """Return ``size`` of a model of the catalogue."""
    return kvgauge.size(name, **{"engine": ENGINE, "no_weights": True, "offline": True, **words})


def fitted(name: str, **words):
    """Return ``fit`` of a model of the catalogue."""
    return kvgauge.fit(name, engine=ENGINE, no_weights=True, offline=True, **words)


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


# -- what a load sets aside -----------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("spread", [{}, {"tp": 2, "pp": 2}], ids=str)
def test_bytes_hold_at_every_length_and_on_every_rank(name, spread):
    for words in ({}, {"mtp": 1}, {"kv_dtype": "fp8"}):
        try:
            found = sized(name, context=3000, sequences=3, **spread, **words)
        except KvgaugeError:
            continue
        for tokens in (0, 1, 127, 128, 129, 700, 5001):
            other = sized(name, context=tokens, **spread, **words)
            assert other.cache.bytes_per_sequence == found.cache.bytes_at(tokens)
        for rank, size in enumerate(found.cache.per_rank_bytes):
            own = [a for a in found.allocations if a["rank"] == rank and a["name"] != "reserved"]
            assert sum(a["bytes"] for a in own) == size
            assert all(a["bytes"] > 0 for a in own)
        assert sum(layer.total_bytes for layer in found.cache.layers) == found.cache.total_bytes
        # Fp8 reaches this one's keys of blocks, which theory keeps in the design's 16 bits.
        index_too = name == "MiniMaxAI/MiniMax-M3" and "kv_dtype" in words
        assert index_too or found.cache.total_bytes >= found.theory.total_bytes


@pytest.mark.parametrize("name", MODELS)
def test_a_rank_holds_what_the_plan_prices(name):
    found = sized(name, context=8192)
    request = fitted(name, context=8192, kv_memory=4 * GIB)
    assert found.cache.per_rank_bytes[0] == request.pool.bytes_per_request


def test_what_is_set_aside():
    parts = {a["name"]: a["bytes"] for a in sized("openai/gpt-oss-20b", context=32768).allocations}
    assert parts == {
        "sliding": 128 * 12 * 2048, "full": 32768 * 12 * 2048, "in_flight": (128 + 1 + 1) * 12 * 2048,
        "reserved": 24 * 2048,
    }  # fmt: skip
    # Not one of the classes with a window pool: every row is kept, and none of them is in flight.
    parts = {a["name"]: a["bytes"] for a in sized("google/gemma-3-27b-it", context=32768).allocations}
    assert parts["beyond_window"] == 52 * (32768 - 1024) * 8192
    assert "in_flight" not in parts
    parts = {a["name"]: a["bytes"] for a in sized("MiniMaxAI/MiniMax-M3", context=1000).allocations}
    cell = 60 * 2048 + 57 * 256
    assert parts["padding"] == 24 * cell
    assert parts["reserved"] == 128 * cell
    parts = {a["name"]: a["bytes"] for a in sized("Qwen/Qwen3.5-27B", context=1000).allocations}
    assert parts["recurrent"] == 153944064
    assert parts["state_copies"] == 4 * 153944064
    whole = {
        a["name"]: a["bytes"] for a in sized("nvidia/Llama-3_3-Nemotron-Super-49B-v1", context=10).allocations
    }
    assert whole["padding"] == 31 * 4096 * 10


def test_a_shared_prefix_is_kept_once_where_there_is_a_radix_cache():
    found = sized("Qwen/Qwen3-8B", context=1000, sequences=4, shared_prefix=600)
    assert found.cache.total_bytes == (4 * 1000 - 3 * 600) * 147456
    with pytest.raises(FeatureUnsupportedError, match="radix"):
        sized("Qwen/Qwen3-8B", shared_prefix=600, engine_args="--disable-radix-cache")


# -- the pool -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_least_pool_and_the_most_that_fits(name):
    found = fitted(name, context=5000, sequences=3, kv_memory=30 * GIB)
    needed = found.verdict.required_bytes
    assert fitted(name, context=5000, sequences=3, kv_memory=needed).verdict.fits
    assert not fitted(name, context=5000, sequences=3, kv_memory=needed - 1).verdict.fits
    most = found.max_sequences.count
    assert fitted(name, context=5000, sequences=most, kv_memory=30 * GIB).verdict.fits
    assert not fitted(name, context=5000, sequences=most + 1, kv_memory=30 * GIB).verdict.fits
    longest = found.max_context.count
    assert fitted(name, context=longest, sequences=3, kv_memory=30 * GIB).verdict.fits
    assert found.pool.capacity_tokens is None or found.devices[0].pool_bytes <= 31 * GIB


def test_limits_that_flags_set():
    found = fitted("Qwen/Qwen3-8B", context=1000, kv_memory="20GiB", engine_args="--max-total-tokens 5500")
    assert (found.pool.capacity_tokens, found.max_sequences.count, found.max_sequences.limited_by) == (
        5500, 5, "flag"
    )  # fmt: skip
    assert (found.max_context.count, found.max_context.limited_by) == (5500, "flag")
    told = fitted("Qwen/Qwen3-8B", context=1000, sequences=9, kv_memory="20GiB",
                  engine_args="--max-running-requests 8")  # fmt: skip
    assert (told.verdict.fits, told.verdict.limiting, told.max_sequences.count) == (False, "flag", 8)


def test_more_requests_than_the_default_are_told():
    found = fitted("Qwen/Qwen3.5-27B", context=100, sequences=60, mtp=3, kv_memory="80GiB")
    assert found.pool.max_running_requests <= 60
    assert "--max-running-requests 60" in found.launch_command
    assert "--speculative-algorithm NEXTN --speculative-num-steps 3" in found.launch_command


def test_attention_groups_are_replicas():
    args = "--tp-size 8 --dp-size 4 --enable-dp-attention"
    found = fitted("Qwen/Qwen3-8B", context=1000, sequences=8, kv_memory="20GiB", engine_args=args)
    assert (found.request.parallelism.tensor, found.request.parallelism.data) == (2, 4)
    assert found.verdict.required_bytes == 2 * 1000 * 147456 // 2
    assert "attention_groups_assumed" in {note.code for note in found.notes}
    assert args in found.launch_command
    with pytest.raises(InvalidRequestError, match="groups"):
        sized("Qwen/Qwen3-8B", tp=8, dp=4, engine_args="--enable-dp-attention")


def test_flags_go_before_options():
    found = sized("Qwen/Qwen3-8B", context=100, kv_dtype="bf16", tp=2,
                  engine_args="--tp 4 --kv-cache-dtype fp8_e4m3 --context-length 512")  # fmt: skip
    assert found.request.parallelism.tensor == 4
    assert found.cache.per_rank_bytes[0] == 100 * 36 * 2 * 2 * 128
    assert {n.values[0][1] for n in found.notes if n.code == "engine_flag_wins"} == {"--tp", "--kv-dtype"}
    assert found.cache.demand.details["max_model_len"] == 512
    alone = sized("Qwen/Qwen3-8B", engine_args="--context-length 512")
    assert alone.request.workload.context_tokens == 512
    drafted = sized("Qwen/Qwen3.5-27B", engine_args="--speculative-algorithm NEXTN")
    assert drafted.request.workload.mtp == 3


def test_stages_are_the_engines_own():
    found = sized("Qwen/Qwen3-8B", context=100, pp=5)
    assert [size // (100 * 4096) for size in found.cache.per_rank_bytes] == [7, 7, 7, 7, 8]


def test_words_of_the_engine():
    assert parse_engine("sgl@0.5.23") == ("sglang", "0.5.23")
    assert sized("Qwen/Qwen3-8B", context=100, kv_dtype="mxfp8").cache.total_bytes == 100 * 76032
    same = sized("openai/gpt-oss-20b", context=100, kv_dtype="bf16").cache.total_bytes
    assert same == sized("openai/gpt-oss-20b", context=100).cache.total_bytes
    with pytest.raises(InvalidRequestError, match="K and V"):
        sized("Qwen/Qwen3-8B", k_dtype="bf16", v_dtype="fp8")
    with pytest.raises(FeatureUnsupportedError, match="decode context"):
        sized("Qwen/Qwen3-8B", tp=16, dcp=2)
    newer = sized("Qwen/Qwen3-8B", engine="sglang@0.9.0")
    assert "engine_version_newer" in {note.code for note in newer.notes}


def test_what_is_assumed_is_said():
    codes = {n.code for n in sized("Qwen/Qwen3-8B", tp=2).notes}
    assert "weight_cut_assumed" in codes
    drafted = sized(
        "Qwen/Qwen3-8B", engine_args="--speculative-algorithm EAGLE3 --speculative-draft-model-path a/b"
    )
    assert "drafter_priced_assumed" in {n.code for n in drafted.notes}
    assert drafted.grade == "assumed"
    assert {a["name"] for a in drafted.allocations if a["kind"] == "cache"} == {"full", "draft", "reserved"}


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


@pytest.mark.parametrize("replicas", [3, 5, 7])
def test_any_number_of_attention_groups_is_searched_through(replicas):
    """The most sequences that a flag can state are a multiple of the groups."""
    result = kvgauge.fit(
        "MiniMaxAI/MiniMax-M2", engine="sglang", gpu=f"H200:{replicas}", dp=replicas, ep=replicas, offline=True,
        context=1024,
    )  # fmt: skip
    assert result.max_sequences.count > 0
