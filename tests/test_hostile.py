"""Hostile and foolish input: every reader and option answers or refuses, never crashes, never hangs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from strategies import models
from support import config_of

JUNK: list[Any] = [
    None, True, 0, -1, 3, 10**9, 10**18, 10**400, 0.0, 1.5, math.nan, math.inf, "", "4096", "full_attention",
    "M" * 20_000, [], [None], [-1], [1] * 20_000, ["mystery"] * 4, [[1]], {}, {"kv_n_heads": "x"},
    {"layers": [0], "window_size": -4}, "float8",
]  # fmt: skip

#: One model of each mechanism, whose every field is mutated.
SPECIMENS = [
    "Qwen/Qwen3-8B",
    "zai-org/GLM-5.2",
    "Qwen/Qwen3.5-35B-A3B",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "google/gemma-4-E2B-it",
    "deepseek-ai/DeepSeek-V4-Flash",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "moonshotai/Kimi-K3",
    "MiniMaxAI/MiniMax-M3",
    "XiaomiMiMo/MiMo-V2-Flash",
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
    "jet-ai/Jet-Nemotron-2B",
    "openai/whisper-large-v3",
    "meta-llama/Llama-3.2-11B-Vision-Instruct",
    "LiquidAI/LFM2-1.2B",
    "tiiuae/Falcon-H1-0.5B-Instruct",
    "apple/OpenELM-270M",
    "databricks/dbrx-base",
    "fla-hub/gla-1B",
]

json_values = st.recursive(
    st.one_of(st.sampled_from(JUNK), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=12), inner, max_size=6),
    max_leaves=20,
)


def answers_or_refuses(config: dict[str, Any], **options: Any) -> None:
    """An answer adds up; a refusal has a code, one line and an exit code of the contract."""
    try:
        result = kvgauge.size(config, **options)
        answer = result.to_dict()["cache"]
    except kvgauge.KvgaugeError as error:
        assert error.code
        assert error.message
        assert "\n" not in error.message
        assert len(error.message) < 600
        assert error.exit_code in (1, 2, 4)
        return
    assert 0 <= answer["total_bytes"] < 1 << 200
    assert sum(layer["bytes"] for layer in answer["layers"]) == answer["total_bytes"]


def levels(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every object of a config, outermost first."""
    found = [config]
    for value in config.values():
        if isinstance(value, dict):
            found += levels(value)
    return found


@pytest.mark.parametrize("model", SPECIMENS)
def test_every_field_replaced_by_junk(model):
    fields = [(depth, key) for depth, level in enumerate(levels(config_of(model))) for key in level]
    for depth, key in fields:
        for junk in JUNK:
            config = config_of(model)
            levels(config)[depth][key] = junk
            answers_or_refuses(config)


@pytest.mark.parametrize("model", SPECIMENS)
def test_every_field_removed(model):
    fields = [(depth, key) for depth, level in enumerate(levels(config_of(model))) for key in level]
    for depth, key in fields:
        config = config_of(model)
        del levels(config)[depth][key]
        answers_or_refuses(config)


@given(config=st.dictionaries(st.text(max_size=20), json_values, max_size=12))
def test_arbitrary_objects(config):
    answers_or_refuses(config)


FIELD_NAMES = [
    "model_type", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size",
    "layer_types", "sliding_window", "use_sliding_window", "max_window_layers", "kv_lora_rank", "qk_rope_head_dim",
    "index_head_dim", "compress_ratios", "hybrid_override_pattern", "linear_num_value_heads", "linear_attn_config",
    "mamba_n_heads", "mamba_d_state", "block_configs", "text_config", "attn_config", "per_layer_config",
    "num_kv_shared_layers", "use_cla", "cla_share_factor", "cross_attention_layers", "quantization_config",
    "torch_dtype", "is_encoder_decoder", "decoder", "encoder", "num_nextn_predict_layers", "attention_chunk_size",
    "no_rope_layers", "sliding_window_pattern", "sparse_attention_config", "efficient_attention_config", "attn",
]  # fmt: skip
MODEL_TYPES = [
    "llama",
    "qwen3",
    "deepseek_v4",
    "nemotron_h",
    "gemma3",
    "t5",
    "bert",
    "rwkv",
    "whisper",
    "",
    "x",
]


@settings(max_examples=300)
@given(
    config=st.dictionaries(st.sampled_from(FIELD_NAMES), json_values | st.integers(1, 64), max_size=14),
    model_type=st.sampled_from(MODEL_TYPES),
)
def test_known_fields_with_arbitrary_values(config, model_type):
    answers_or_refuses({"model_type": model_type, **config})


@settings(max_examples=200)
@given(
    config=models,
    options=st.fixed_dictionaries(
        {},
        optional={
            "context": st.one_of(st.sampled_from(JUNK), st.text(max_size=8), st.integers()),
            "sequences": st.sampled_from([*JUNK, 7]),
            "encoder_tokens": st.sampled_from(JUNK),
            "image_tokens": st.sampled_from(JUNK),
            "shared_prefix": st.sampled_from(JUNK),
            "kv_dtype": st.sampled_from(
                ["bf16", "fp8", "q4_0", "iq4_nl", "nvfp4", "fp8_ds_mla", "", "zz", "q8_k", "mxfp4"]
            ),
            "state_dtype": st.sampled_from(["bf16", "fp8", "f32", "q8_0", "x"]),
            "index_dtype": st.sampled_from(["bf16", "fp8", "mxfp4", "x"]),
            "mtp": st.sampled_from([0, 1, -1, 65, True, "1"]),
            "tp": st.sampled_from([0, 1, 2, 3, 8, 10**9, -1, "2", True]),
            "pp": st.sampled_from([1, 2, 5, 0, 5000]),
            "dcp": st.sampled_from([1, 2, 3]),
            "engine": st.sampled_from(
                ["theory", "transformers", "vllm", "x", "", "theory@1", "transformers@0.1"]
            ),
            "engine_args": st.sampled_from(
                ["", "cache=static", "cache=static max_cache_len=-1", "--x", "\0"]
            ),
        },
    ),
)
def test_arbitrary_options(config, options):
    try:
        result = kvgauge.size(config, **options)
        result.to_dict()
    except kvgauge.KvgaugeError as error:
        assert error.message
        assert error.exit_code in (1, 2, 4)


def test_absurd_depth_is_refused_at_once():
    config = {**config_of("Qwen/Qwen3-8B"), "num_hidden_layers": 10**18}
    with pytest.raises(kvgauge.KvgaugeError, match="num_hidden_layers"):
        kvgauge.size(config)


@pytest.mark.parametrize("value", [0, -3, 1.5, math.nan, math.inf, "thirty", True, [1], 10**30])
@pytest.mark.parametrize(
    "field", ["num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim"]
)
def test_impossible_shapes_name_the_field(field, value):
    config = {**config_of("Qwen/Qwen3-8B"), field: value}
    with pytest.raises(kvgauge.KvgaugeError, match=field) as caught:
        kvgauge.size(config)
    assert caught.value.code == "invalid_field"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"layer_types": ["full_attention"] * 35}, "layer_types"),
        ({"layer_types": ["full_attention"] * 35 + ["banana"]}, "layer_types"),
        ({"num_attention_heads": 7}, "num_key_value_heads"),
        ({"layer_types": ["sliding_attention"] * 36}, "sliding_window"),
        ({"layer_types": ["mlp"] * 36}, "layer"),
        ({"num_kv_shared_layers": 36}, "num_kv_shared_layers"),
        ({"torch_dtype": "float3"}, "torch_dtype"),
        ({"use_sliding_window": "yes"}, "use_sliding_window"),
    ],
)
def test_contradictions_name_the_field(changes, named):
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        kvgauge.size({**config_of("Qwen/Qwen3-8B"), **changes})
    assert named in str(caught.value) + str(caught.value.field)


def codes(result: kvgauge.SizeResult) -> set[str]:
    return {note.code for note in result.notes}


def test_an_override_that_nothing_reads_is_named():
    outside = kvgauge.size("Qwen/Qwen3.5-35B-A3B", overrides={"num_key_value_heads": 8})
    (note,) = (n for n in outside.notes if n.code == "override_without_effect")
    assert "text_config.num_key_value_heads" in note.message
    assert "override_without_effect" in codes(
        kvgauge.size("Qwen/Qwen3-8B", overrides={"num_key_value_headz": 4})
    )
    inside = kvgauge.size("Qwen/Qwen3.5-35B-A3B", overrides={"text_config.num_key_value_heads": 8})
    assert "override_without_effect" not in codes(inside)
    assert inside.cache.growth_bytes_per_token == 4 * outside.cache.growth_bytes_per_token


@pytest.mark.parametrize("options", [{"image_tokens": 5}, {"encoder_tokens": 5}, {"state_dtype": "bf16"}])
def test_an_option_that_nothing_answers_to_is_named(options):
    assert "option_without_effect" in codes(kvgauge.size("Qwen/Qwen3-8B", **options))


def test_a_window_without_a_pattern_in_an_unknown_design_is_refused():
    config = {**config_of("Qwen/Qwen3-8B"), "model_type": "brand_new", "sliding_window": 2048}
    config.pop("use_sliding_window", None)
    with pytest.raises(kvgauge.KvgaugeError, match="layer_types"):
        kvgauge.size(config)


def test_a_list_longer_than_the_model_is_cut_and_said():
    config = {**config_of("Qwen/Qwen3-8B"), "layer_types": ["full_attention"] * 40}
    result = kvgauge.size(config)
    assert result.cache.total_bytes == kvgauge.size("Qwen/Qwen3-8B").cache.total_bytes
    assert "list_longer_than_layers" in codes(result)


def test_an_adapter_is_no_model():
    with pytest.raises(kvgauge.KvgaugeError, match="adapter"):
        kvgauge.size({"peft_type": "LORA", "base_model_name_or_path": "x"})


def test_what_is_assumed_is_graded_so():
    exact = kvgauge.size("Qwen/Qwen3-8B")
    inferred = kvgauge.size({**config_of("Qwen/Qwen3-8B"), "model_type": "brand_new"})
    assert (exact.grade, inferred.grade) == ("exact", "assumed")
    assert {a["grade"] for a in inferred.allocations} == {"assumed"}
    staged = kvgauge.size("nvidia/NVIDIA-Nemotron-Nano-9B-v2", pp=4)
    assert "layer_order_unknown" in codes(staged)
    assert staged.grade == "assumed"


def test_a_static_cache_too_small_for_the_load_is_said():
    result = kvgauge.size("Qwen/Qwen3-8B", engine="transformers", engine_args="cache=static max_cache_len=64")
    assert "static_cache_too_small" in codes(result)
