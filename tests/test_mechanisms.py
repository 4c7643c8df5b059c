"""Designs outside the catalogue, computed by hand from the rules; each was once read wrong or refused."""

from __future__ import annotations

import json

import pytest

import kvgauge
from support import config_of

BASE = {
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 8192,
}


def total(config: dict, context: int = 8192, **options: object) -> int:
    return kvgauge.size(config, context=context, **options).cache.total_bytes


def test_gpt_neo_attention_types():
    config = {"model_type": "gpt_neo", "num_layers": 24, "hidden_size": 2048, "num_heads": 16, "window_size": 256,
              "attention_types": [[["global", "local"], 12]], "torch_dtype": "bfloat16"}  # fmt: skip
    assert total(config, 2048) == 12 * 8192 * (2048 + 256)


def test_mpt_multi_query():
    config = {"model_type": "mpt", "n_layers": 32, "d_model": 4096, "n_heads": 32, "torch_dtype": "bfloat16",
              "attn_config": {"attn_type": "multiquery_attention"}}  # fmt: skip
    assert total(config) == 32 * 2 * 128 * 2 * 8192


@pytest.mark.parametrize("changes", [{}, {"expand": 16}, {"expand": None}])
def test_mamba_inner_width_is_stated(changes):
    # arXiv 2312.00752 shapes as Transformers stores them: intermediate_size is the inner width.
    config = {"model_type": "falcon_mamba", "num_hidden_layers": 64, "hidden_size": 4096, "intermediate_size": 8192,
              "state_size": 16, "conv_kernel": 4, "torch_dtype": "bfloat16", **changes}  # fmt: skip
    assert total(config) == 64 * (8192 * 16 * 4 + 8192 * 3 * 2)


def test_rwkv6_heads():
    config = {"model_type": "rwkv6", "num_hidden_layers": 32, "hidden_size": 2560, "num_heads": 40}
    assert total(config) == 32 * (40 * 64 * 64 * 4 + 2 * 2560 * 2)


def test_indexer_schedule_without_an_offset():
    config = config_of("zai-org/GLM-5.2")
    for name in ("indexer_types", "index_skip_topk_offset"):
        config.pop(name, None)
    config |= {"index_topk_freq": 4}
    owners = [layer.index for layer in kvgauge.size(config).cache.layers if layer.kind == "index"]
    assert owners[:4] == [0, 1, 5, 9]


def test_llama4_chunks_by_class_default_only_where_the_file_is_abbreviated():
    config = config_of("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    true = total(config, 131_072)
    del config["text_config"]["attention_chunk_size"]
    assert total(config, 131_072) == true == 7_650_410_496


def test_smollm3_windows_where_rope_is_missing():
    config = {**BASE, "model_type": "smollm3", "num_hidden_layers": 8, "num_key_value_heads": 4,
              "use_sliding_window": True, "sliding_window": 1024, "no_rope_layers": [1, 1, 1, 0] * 2}  # fmt: skip
    assert total(config) == 2 * 4 * 128 * 2 * (6 * 8192 + 2 * 1024)


def test_deepseek_v4_words_with_default_rates():
    config = config_of("deepseek-ai/DeepSeek-V4-Flash")
    true = total(config)
    names = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    config["layer_types"] = [names[r] for r in config.pop("compress_ratios")][:43]
    assert total(config) == true


def test_latent_fields_that_are_switched_off():
    config = {**BASE, "model_type": "deepseek_v2", "num_hidden_layers": 12, "num_key_value_heads": 16, "use_mla": False,
              "kv_lora_rank": None, "q_lora_rank": None, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0}  # fmt: skip
    result = kvgauge.size(config)
    assert (result.cache.family, result.cache.growth_bytes_per_token) == ("mha", 12 * 2 * 2048 * 2)


def test_lightning_of_ling_linear():
    config = {**BASE, "model_type": "bailing_moe_linear", "num_hidden_layers": 16, "num_key_value_heads": 4,
              "head_dim": 128, "layer_group_size": 8}  # fmt: skip
    result = kvgauge.size(config)
    assert result.cache.family == "hybrid_linear"
    assert result.cache.growth_bytes_per_token == 2 * 2 * 4 * 128 * 2
    assert result.cache.fixed_bytes_per_sequence == 14 * 16 * 128 * 128 * 4


def test_kimi_lists_complement_each_other():
    config = config_of("moonshotai/Kimi-K3")
    true = total(config)
    for name in ("kda_layers", "full_attn_layers"):
        one = config_of("moonshotai/Kimi-K3")
        del one["text_config"]["linear_attn_config"][name]
        assert total(one) == true
    for name in ("kda_layers", "full_attn_layers"):
        del config["text_config"]["linear_attn_config"][name]
    with pytest.raises(kvgauge.KvgaugeError, match="kda_layers"):
        total(config)


def test_listed_windows_need_no_switch():
    config = {**config_of("Qwen/Qwen3-8B"), "layer_types": ["sliding_attention", "full_attention"] * 18,
              "sliding_window": 1024}  # fmt: skip
    config.pop("use_sliding_window", None)
    assert total(config) == 18 * 4096 * (8192 + 1024)
    with pytest.raises(kvgauge.KvgaugeError, match="use_sliding_window"):
        total({**config, "use_sliding_window": False})


def test_nested_and_unknown_kv_words():
    base = config_of("Qwen/Qwen3-8B")
    nested = {**base, "quantization_config": {"quantization": {"kv_cache_quant_algo": "FP8"}}}
    assert kvgauge.size(nested).to_dict()["request"]["k_dtype"] == "fp8"
    unknown = kvgauge.size({**base, "quantization_config": {"kv_cache_quant_algo": "FP6"}})
    assert "kv_dtype_unknown" in {note.code for note in unknown.notes}


# Bytes of K and V a token and head at 128 (vLLM's packings; ggml's blocks): format, bytes.
PACKED = [
    ("bf16", 512), ("fp8", 256), ("int8_per_token_head", 264), ("fp8_per_token_head", 264), ("int4_per_token_head", 136),
    ("nvfp4", 144), ("turboquant_k8v4", 196), ("turboquant_4bit_nc", 134), ("turboquant_k3v4_nc", 118),
    ("turboquant_3bit_nc", 102), ("q8_0", 272), ("q4_0", 144), ("q5_1", 192), ("iq4_nl", 144), ("mxfp4", 136),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "pair_bytes"), PACKED)
def test_packed_formats(dtype, pair_bytes):
    assert kvgauge.size("Qwen/Qwen3-8B", kv_dtype=dtype).cache.growth_bytes_per_token == 36 * 8 * pair_bytes


def test_ggml_blocks_run_over_the_whole_row():
    config = {**BASE, "model_type": "llama", "num_hidden_layers": 1, "num_key_value_heads": 8, "head_dim": 80}
    assert kvgauge.size(config, kv_dtype="mxfp4").cache.growth_bytes_per_token == 2 * 640 // 32 * 17


REFUSED = [
    ({"model_type": "x", "num_key_value_heads": 4, "head_dim": 64, "mamba_num_heads": 8}, "layer_types"),
    ({"model_type": "x", "num_key_value_heads": 4, "head_dim": 64, "linear_num_value_heads": 8}, "layer_types"),
    ({"model_type": "hunyuan", "num_key_value_heads": 4, "use_cla": True}, "cla_share_factor"),
    ({"model_type": "jamba", "num_key_value_heads": 4, "attn_layer_period": 4, "attn_layer_offset": 4}, "offset"),
    ({"model_type": "deepseek_v4", "compress_ratios": [0, 1], "sliding_window": 8, "head_dim": 64}, "compress_ratios"),
    ({"model_type": "t5", "num_decoder_layers": 2, "num_heads": 16, "d_model": 1024}, "d_kv"),
    ({"model_type": "chatglm", "num_layers": 2, "multi_query_group_num": 2}, "multi_query_attention"),
    ({"model_type": "falcon", "new_decoder_architecture": True, "multi_query": True}, "num_kv_heads"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "named"), REFUSED, ids=[named for _, named in REFUSED])
def test_refused_and_named(changes, named):
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        total({**BASE, "num_hidden_layers": 2, **changes})
    assert named in str(caught.value) + str(caught.value.field)


@pytest.mark.parametrize(
    ("model", "path", "cut"),
    [
        ("zai-org/GLM-5.2", ("indexer_types",), 70),
        ("MiniMaxAI/MiniMax-M3", ("sparse_attention_config", "sparse_attention_freq"), 5),
    ],
)
def test_short_lists_are_refused(model, path, cut):
    config = config_of(model)
    level = config
    for key in path[:-1]:
        level = level[key]
    level[path[-1]] = level[path[-1]][:cut]
    with pytest.raises(kvgauge.KvgaugeError, match=path[-1]):
        total(config)


LLAVA_NESTS = [
    # As Transformers 4 saved them: parts of the shape at their class default are stated, others left out.
    {"model_type": "mistral", "intermediate_size": 14336, "num_key_value_heads": 8, "rms_norm_eps": 1e-5,
     "sliding_window": None, "torch_dtype": "bfloat16", "vocab_size": 32064},
    {"model_type": "llama", "intermediate_size": 14336, "num_key_value_heads": 8, "torch_dtype": "bfloat16",
     "vocab_size": 128320},
]  # fmt: skip


@pytest.mark.parametrize("text", LLAVA_NESTS, ids=lambda t: t["model_type"])
def test_a_nested_part_may_leave_its_whole_shape_out(text):
    result = kvgauge.size({"model_type": "llava_next", "text_config": text, "vision_config": {}})
    assert result.cache.growth_bytes_per_token == 131_072
    assert "class_defaults" in {note.code for note in result.notes}


def test_a_nested_part_may_leave_a_width_out():
    text = {"model_type": "gemma2", "hidden_size": 2304, "num_hidden_layers": 26, "num_attention_heads": 8,
            "num_key_value_heads": 4, "intermediate_size": 9216, "sliding_window": 4096, "torch_dtype": "bfloat16"}  # fmt: skip
    result = kvgauge.size({"model_type": "paligemma", "text_config": text})
    assert result.cache.growth_bytes_per_token == 13 * 2 * 4 * 256 * 2


def test_nested_decoders_and_what_is_said_outside_them():
    musicgen = {"model_type": "musicgen", "is_encoder_decoder": True, "text_encoder": {"model_type": "t5"},
                "decoder": {"model_type": "musicgen_decoder", "hidden_size": 1024, "num_attention_heads": 16,
                            "num_hidden_layers": 24, "torch_dtype": "float32", "is_encoder_decoder": False}}  # fmt: skip
    result = kvgauge.size(musicgen, context=1500, encoder_tokens=50)
    assert (result.cache.family, result.cache.fixed_bytes_per_sequence) == ("encoder_decoder", 9_830_400)
    donut = {"model_type": "vision-encoder-decoder", "encoder": {"model_type": "donut-swin"},
             "decoder": {"model_type": "mbart", "d_model": 1024, "decoder_layers": 4, "decoder_attention_heads": 16,
                         "encoder_layers": 12, "num_hidden_layers": 12, "torch_dtype": "bfloat16"}}  # fmt: skip
    assert kvgauge.size(donut).cache.growth_bytes_per_token == 4 * 2 * 1024 * 2


def test_an_encoder_keeps_no_cache_though_its_text_part_is_described():
    text = {
        "model_type": "siglip_text_model",
        "hidden_size": 1152,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
    }
    assert kvgauge.size({"model_type": "siglip", "text_config": text}).cache.family == "none"


def test_broken_groups_of_ling_models():
    config = {**BASE, "model_type": "bailing_hybrid", "num_hidden_layers": 13, "layer_group_size": 6, "kv_lora_rank": 512,
              "qk_rope_head_dim": 64, "linear_num_heads": 8, "linear_head_dim": 128, "linear_conv_kernel_dim": 4}  # fmt: skip
    assert kvgauge.size(config).cache.growth_bytes_per_token == 2 * 576 * 2
    linear = {**BASE, "model_type": "bailing_moe_linear", "num_hidden_layers": 13, "layer_group_size": 6,
              "num_key_value_heads": 4, "head_dim": 128}  # fmt: skip
    assert kvgauge.size(linear).cache.growth_bytes_per_token == 3 * 2 * 4 * 128 * 2


def test_a_stale_table_of_layers_yields_to_lists():
    config = {**BASE, "model_type": "gemma4_text", "num_hidden_layers": 6, "head_dim": [128] * 6, "sliding_window": 512,
              "num_key_value_heads": [4] * 6, "num_kv_shared_layers": 0, "layer_types": ["full_attention"] * 6,
              "per_layer_config": {"05": {"head_dim": 512}, "11": {"head_dim": 512}}}  # fmt: skip
    assert kvgauge.size(config).cache.growth_bytes_per_token == 6 * 2 * 4 * 128 * 2


@pytest.mark.parametrize("model_type", ["xlstm", "zaya", "plamo2", "reformer"])
def test_designs_without_rules_are_refused_as_such(model_type):
    config = {**BASE, "model_type": model_type, "num_hidden_layers": 2, "num_key_value_heads": 16}
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        kvgauge.size(config)
    assert caught.value.code == "unknown_architecture"


def test_an_override_of_a_loaded_model_keeps_what_lay_beside_its_config(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config_of("Qwen/Qwen3-8B")), encoding="utf-8")
    side = {"quantization": {"kv_cache_quant_algo": "FP8"}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(side), encoding="utf-8")
    model = kvgauge.load(tmp_path, overrides={"num_hidden_layers": 12})
    again = kvgauge.load(model, overrides={"num_key_value_heads": 4})
    assert again.raw.source == model.raw.source == "file"
    assert again.raw.overrides == {"num_hidden_layers": 12, "num_key_value_heads": 4}
    assert kvgauge.size(again).cache.growth_bytes_per_token == 12 * 2 * 4 * 128
