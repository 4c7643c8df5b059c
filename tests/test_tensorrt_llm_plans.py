"""TensorRT-LLM: quota, blocks, pools by window and states, against start-up logs; what its flags say."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge.engines.tensorrt_llm import TrtllmSettings, plan
from kvgauge.engines.tensorrt_llm.flags import VALUES, parse_flags
from kvgauge.engines.tensorrt_llm.versions import known_versions, parse_version, rules_for
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError, MissingFieldError
from kvgauge.models import load
from support import golden_lines
from trtllm_fieldlogs import CAUSES, RECORDS, records, replay
from vllm_records import catalogue_architecture

GIB = 1 << 30
GOLDEN = golden_lines("tensorrt_llm_logs.jsonl")[1:]
PLAIN = {
    "model_type": "llama", "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_size": 512, "torch_dtype": "bfloat16", "max_position_embeddings": 4096,
}  # fmt: skip
DEFAULT = TrtllmSettings()


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: row["log"])
def test_figures_of_logs(row):
    found = plan(catalogue_architecture(row["model"]), parse_flags(row["args"]))
    step = 0.005 * GIB
    low, high = (int(row["kv_gib"] * GIB + sign * step) for sign in (-1, 1))
    if row["free_gib"] is not None:
        assert low - step <= found.quota(int(row["free_gib"] * GIB)) <= high + step
    if row["tokens"] is not None:
        assert row["tokens"] % found.tokens_per_block == 0
        assert found.pool(low).capacity_tokens <= row["tokens"] <= found.pool(high).capacity_tokens


@pytest.mark.skipif(not RECORDS.is_file(), reason="the wider records are not here")
def test_every_figure_of_the_logs_agrees_or_has_a_cause():
    outcomes = [outcome for record in records() for outcome in replay(record)]
    assert {outcome.record for outcome in outcomes if outcome.status != "exact"} == set(CAUSES)
    exact = Counter(outcome.quantity for outcome in outcomes)
    assert exact["kv_bytes_per_token"] >= 6
    assert exact["pool"] >= 4


def test_the_quota_is_a_share_of_what_is_free():
    found = plan(catalogue_architecture("Qwen/Qwen3-8B"), DEFAULT)
    assert found.quota(10 * GIB) == int(10 * GIB * Fraction(9, 10))
    limited = plan(catalogue_architecture("Qwen/Qwen3-8B"), replace(DEFAULT, max_gpu_bytes=GIB))
    assert limited.quota(10 * GIB) == GIB


def test_blocks_and_tokens():
    pool = plan(catalogue_architecture("Qwen/Qwen3-8B"), DEFAULT).pool(10 * GIB)
    assert pool.num_blocks == 10 * GIB // 147456 // 32
    assert pool.capacity_tokens == pool.num_blocks * 32
    assert pool.kv_bytes <= 10 * GIB
    capped = plan(catalogue_architecture("Qwen/Qwen3-8B"), parse_flags("max_tokens=1000")).pool(10 * GIB)
    assert capped.capacity_tokens == 992
    small = plan(catalogue_architecture("Qwen/Qwen3-8B"), DEFAULT).pool(GIB // 4)
    assert small.longest_tokens == small.capacity_tokens == GIB // 4 // 147456 // 32 * 32


@pytest.mark.parametrize(
    ("model", "args", "size"),
    [("Qwen/Qwen3-8B", "--tp_size 4", 36864), ("Qwen/Qwen3-8B", "--tp_size 16", 36 * 512),
     ("Qwen/Qwen3-8B", "--tp_size 4 --enable_attention_dp", 147456),
     ("Qwen/Qwen3-8B", "--kv_cache_dtype fp8", 73728), ("Qwen/Qwen3-8B", "--kv_cache_dtype nvfp4", 41472),
     ("Qwen/Qwen3-8B", "--pp_size 4", 36864), ("deepseek-ai/DeepSeek-V3", "--tp_size 8", 70272),
     ("nvidia/Gemma-4-26B-A4B-NVFP4", "", 25 * 4096 + 5 * 2048),
     ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "", 49 * 4096),
     ("deepseek-ai/DeepSeek-V3.2", "tokens_per_block=64", 61 * (1152 + 264)),
     ("deepseek-ai/DeepSeek-V3.2", "tokens_per_block=32", 61 * (1152 + 528))],
)  # fmt: skip
def test_bytes_of_a_token(model, args, size):
    assert plan(catalogue_architecture(model), parse_flags(args)).bytes_per_token == size


def test_windows_share_the_quota_equally():
    model = catalogue_architecture("openai/gpt-oss-20b")
    whole = plan(model, DEFAULT)
    assert [group.num_layers for group in whole.groups] == [24]
    split = plan(model, parse_flags("kv_cache_config.max_attention_window='[128, 131072]'"))
    pool = split.pool(8 * GIB)
    assert [(g.window_tokens, g.num_layers) for g in split.groups] == [(128, 12), (131072, 12)]
    assert {blocks for _, blocks in pool.blocks_by_window} == {4 * GIB // (12 * 2048) // 32}
    assert split.assumed == ("windows",)


def test_states_are_reserved_for_the_batch():
    model = catalogue_architecture("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16")
    found = plan(model, parse_flags("--max_batch_size 64"))
    assert found.state_bytes_per_slot == (49082368,)
    pool = found.pool(20 * GIB)
    assert pool.state_slots == 65
    assert pool.num_blocks == (20 * GIB - 64 * 49082368) // 6144 // 32
    kept = plan(model, parse_flags("--max_batch_size 64 mamba_prefix_cache_step=256")).pool(20 * GIB)
    assert kept.state_slots == 65 + kept.capacity_tokens // 256
    assert not plan(model, DEFAULT).pool(20 * GIB).starts


def test_drafting_layers_lie_on_the_last_stage():
    model = catalogue_architecture("deepseek-ai/DeepSeek-V3")
    drafted = plan(model, parse_flags("--pp_size 2 num_nextn_predict_layers=1"))
    assert drafted.groups[0].bytes_per_token == (31 * 1152, 31 * 1152)


def test_what_is_not_known_is_refused():
    with pytest.raises(FeatureUnsupportedError, match=r"compressed|sliding"):
        plan(catalogue_architecture("deepseek-ai/DeepSeek-V4-Flash"), DEFAULT)
    with pytest.raises(FeatureUnsupportedError, match="cross"):
        plan(load("openai/whisper-tiny", offline=True).architecture, DEFAULT)
    with pytest.raises(FeatureUnsupportedError, match="short_convolution"):
        plan(catalogue_architecture("LiquidAI/LFM2-1.2B"), DEFAULT)
    with pytest.raises(FeatureUnsupportedError, match="attention heads"):
        plan(catalogue_architecture("Qwen/Qwen3-8B"), replace(DEFAULT, tensor=3))
    endless = {name: value for name, value in PLAIN.items() if name != "max_position_embeddings"}
    with pytest.raises(MissingFieldError, match="tensorrt-llm"):
        plan(load(endless).architecture, DEFAULT)


def test_versions():
    assert parse_version("0.13.0.dev2024082000") < parse_version("0.13.0")
    assert [rules_for(v).tokens_per_block for v in known_versions()] == [64, 32]
    assert rules_for("9.9.0").tokens_per_block == 32
    with pytest.raises(FeatureUnsupportedError, match=r"0\.8\.0"):
        rules_for("0.5.0")
    with pytest.raises(InvalidRequestError):
        parse_version("main")


def test_flags_are_read_as_the_engine_reads_them():
    found = parse_flags(
        "trtllm-serve org/model --tp_size 2 --kv_cache_free_gpu_memory_fraction=0.85 --max-batch-size 16 "
        "--port 8000 kv_cache_config.tokens_per_block=64 kv_cache_config.enable_block_reuse=false"
    )
    assert found == TrtllmSettings(
        tensor=2, free_fraction="0.85", max_batch=16, tokens_per_block=64, block_reuse=False,
        ignored_flags=("port",),
    )  # fmt: skip


@pytest.mark.parametrize(
    "args",
    ["--tp_size 2 tp_size=4", "--tp_size x", "tokens_per_block=48", "--free_gpu_memory_fraction 1.5", "'",
     "max_attention_window=abc", "--kv_cache_dtype q8_0", "--max_batch_sise 3", "--max_seq_len",
     "enable_block_reuse=perhaps", "max_attention_window=[0]"],
)  # fmt: skip
def test_malformed_flags_are_refused(args):
    with pytest.raises(InvalidRequestError):
        parse_flags(args)


def test_files_of_options_are_not_read():
    with pytest.raises(FeatureUnsupportedError, match="extra_llm_api_options"):
        parse_flags("--extra_llm_api_options options.yml")


@given(
    st.lists(
        st.sampled_from(
            [*VALUES, *(f"--{name}" for name in VALUES), "1", "fp8", "[1,2]", "a=1", "tokens_per_block=32"]
        ),
        max_size=8,
    )
)
def test_any_words_are_read_or_refused(words):
    try:
        parse_flags(" ".join(words))
    except KvgaugeError as error:
        assert error.message


@given(
    st.integers(1, 1 << 20), st.integers(0, 1 << 50), st.sampled_from(["auto", "fp8", "nvfp4"]),
    st.sampled_from([1, 2, 4, 8]), st.lists(st.integers(1, 1 << 22), max_size=4), st.integers(1, 5),
)  # fmt: skip
def test_pools_are_bounded_by_their_bytes(tokens, quota, word, ranks, windows, stages):
    settings = TrtllmSettings(
        max_seq_tokens=tokens, kv_dtype=word, tensor=ranks, attention_windows=tuple(windows), pipeline=stages
    )
    try:
        pool = plan(load(PLAIN).architecture, settings).pool(quota)
    except KvgaugeError:
        return
    assert pool.kv_bytes <= quota
    assert pool.longest_tokens <= tokens
