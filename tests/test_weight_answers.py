"""Weights in answers: what size, compare, explain and JSON say of them, and what they refuse."""

from __future__ import annotations

import json
import re
import struct

import pytest
from hypothesis import given, settings

import kvgauge
from kvgauge.arithmetic import evaluate
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.render.messages import zh
from strategies import models
from support import config_of

MODELS = [
    "Qwen/Qwen3-8B",
    "openai/gpt-oss-120b",
    "deepseek-ai/DeepSeek-V3.2",
    "Qwen/Qwen3.5-35B-A3B",
    "nvidia/DeepSeek-V3.1-NVFP4",
    "google/gemma-3-27b-it",
    "openai/whisper-large-v3",
]
LLAMA_GGUF = {
    "general.architecture": "llama", "general.file_type": 15, "llama.context_length": 131072,
    "llama.block_count": 32, "llama.embedding_length": 4096, "llama.feed_forward_length": 14336,
    "llama.attention.head_count": 32, "llama.attention.head_count_kv": 8, "llama.vocab_size": 128256,
}  # fmt: skip


def check(answer: dict) -> None:
    """What holds of the ``weights`` of any answer."""
    weights = answer["weights"]
    assert sum(row["bytes"] for row in weights["by_part"]) == weights["total_bytes"]
    held = [a for a in answer["engine"]["allocations"] if a["kind"] == "weights"]
    assert [a["bytes"] for a in held] == weights["per_rank_bytes"]
    assert [a["rank"] for a in held] == list(range(len(held)))
    assert all(size <= weights["total_bytes"] for size in weights["per_rank_bytes"])
    assert sum(weights["per_rank_bytes"]) >= weights["total_bytes"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("spread", [{}, {"tp": 2}, {"tp": 2, "pp": 2}, {"mtp": 1}])
def test_parts_and_ranks_add_up(model, spread):
    if "mtp" in spread and not kvgauge.load(model).architecture.mtp_layers:
        spread = {}
    answer = kvgauge.size(model, context=1024, **spread).to_dict()
    check(answer)


@given(models)
@settings(max_examples=150, deadline=None)
def test_any_model_has_weights_that_add_up_or_a_note(config):
    answer = kvgauge.size(config, context=64).to_dict()
    if answer["weights"] is None:
        assert any(note["code"] == "weights_unknown" for note in answer["notes"])
    else:
        check(answer)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("model", MODELS)
def test_explain_opens_every_byte(model, lang):
    result = kvgauge.size(model, context=1024)
    steps = {step.id: step for step in kvgauge.explain(result, lang=lang).steps}
    parts = [step for name, step in steps.items() if name.startswith("weights.")]
    assert steps["weights"].value_bytes == result.weights.total_bytes
    assert sum(step.value_bytes for step in parts) == result.weights.total_bytes
    for step in (*parts, steps["weights"]):
        assert evaluate(step.formula, step.symbols) == step.value_bytes
        for definition in step.definitions:
            assert evaluate(definition.formula, step.symbols) == step.symbols[definition.symbol]
        assert step.title
        assert step.text
        assert "{" not in step.title + step.text


def test_explain_opens_a_gguf_with_its_alignment():
    result = kvgauge.size(
        {
            **LLAMA_GGUF,
            "llama.embedding_length": 4104,
            "llama.attention.head_count": 27,
            "general.file_type": 0,
            "llama.attention.head_count_kv": 9,
        },
        context=64,
    )
    steps = {step.id: step for step in kvgauge.explain(result).steps}
    assert steps["weights"].value_bytes == result.weights.total_bytes


def test_multi_token_prediction_is_loaded_when_asked_for():
    without = kvgauge.size("deepseek-ai/DeepSeek-V3.2", context=64)
    with_it = kvgauge.size("deepseek-ai/DeepSeek-V3.2", context=64, mtp=1)
    assert with_it.weights.total_bytes - without.weights.total_bytes == without.weights.stored.mtp_bytes > 0
    assert "mtp" in {row.part.value for row in with_it.weights.by_part}
    assert "mtp" not in {row.part.value for row in without.weights.by_part}
    assert with_it.weights.stored.num_parameters == without.weights.stored.num_parameters


def test_expert_parallelism_spreads_whole_experts():
    tensor = kvgauge.size("deepseek-ai/DeepSeek-V3", context=64, tp=8).weights.per_rank_bytes
    expert = kvgauge.size("deepseek-ai/DeepSeek-V3", context=64, tp=8, ep=8).weights.per_rank_bytes
    assert sum(expert) == pytest.approx(sum(tensor), rel=0.01)
    wide = kvgauge.size("deepseek-ai/DeepSeek-V3", context=64, tp=1, dp=8, ep=8).weights.per_rank_bytes
    assert len(wide) == 1
    assert wide[0] > expert[0]  # attention is whole on each


def test_int4_of_qwen3_8b_is_6_1_gb():
    """6,945,767,424 quantised values: half a byte each, two of scale for 128; the rest at two bytes."""
    weights = kvgauge.size("Qwen/Qwen3-8B", context=64, weights="int4").weights
    quantised = 36 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 12288 * 4096)
    whole = 8_190_735_360 - quantised
    assert weights.total_bytes == quantised // 2 + quantised // 128 * 2 + whole * 2
    assert round(weights.total_bytes / 1e9, 1) == 6.1
    assert weights.grade == "assumed"


def test_gpt_oss_is_its_published_checkpoint():
    """12.8 GiB would be 20.9 billion parameters by half a byte; the tensors of the release have 13,761,264,768 B."""
    assert kvgauge.size("openai/gpt-oss-20b", context=64).weights.total_bytes == 13_761_264_768


def test_advice_and_commands_come_with_a_scheme():
    asked = kvgauge.size("Qwen/Qwen3.5-35B-A3B", context=64, weights="int4").to_dict()["weights"]["what_if"]
    advice = {row["part"]: row for row in asked["advice"]}
    assert advice["linear_attention"]["kept"]
    assert not advice["experts"]["kept"]
    assert advice["linear_attention"]["keeping_costs_bytes"] > 1 << 30
    assert {command["tool"] for command in asked["commands"]} >= {"auto-round", "llm-compressor"}
    assert kvgauge.size("Qwen/Qwen3.5-35B-A3B", context=64).to_dict()["weights"]["what_if"] is None


def test_a_gguf_has_a_place_for_its_embedding():
    """llama.cpp keeps the embedding on the host; an untied head is on the GPU."""
    weights = kvgauge.size(LLAMA_GGUF, context=64).to_dict()["weights"]
    assert weights["total_bytes"] == 4_912_898_048
    assert weights["grade"] == "assumed"  # a mix may have been made with an importance matrix
    places = {row["place"]: row["bytes"] for row in weights["placement"]}
    assert places == {"gpu:0": 4_617_396_224, "host": 295_501_824}


@pytest.mark.parametrize("word", ["q8_0", "iq4_xs", "int4", "bf16"])
def test_a_gguf_can_be_priced_in_another_scheme(word):
    answer = kvgauge.size(LLAMA_GGUF, context=64, weights=word).to_dict()
    check(answer)
    assert any(note["code"] == "weights_what_if" for note in answer["notes"])


def test_a_mix_is_the_same_from_both_dialects():
    config = kvgauge.size("meta-llama/Llama-3.1-8B-Instruct", context=64, weights="q4_k_m")
    assert config.weights.total_bytes == kvgauge.size(LLAMA_GGUF, context=64).weights.total_bytes


def test_without_weights():
    result = kvgauge.size("Qwen/Qwen3-8B", context=64, no_weights=True)
    assert result.weights is None
    assert result.to_dict()["weights"] is None
    assert not any(step.id.startswith("weights") for step in kvgauge.explain(result).steps)


def test_a_32_bit_model_says_that_ranks_hold_it_in_16():
    result = kvgauge.size("allenai/OLMo-1B-hf", context=64, engine="vllm")
    assert result.weights.total_bytes == 2 * result.weights.per_rank_bytes[0]
    said = [note for note in result.notes if note.code == "weights_loaded_as"]
    assert [dict(note.values) for note in said] == [{"stored": "f32", "loaded": "bf16"}]
    assert set(re.findall(r"{(\w+)}", zh.NOTES["weights_loaded_as"])) == {"stored", "loaded"}
    for other in (
        kvgauge.size("allenai/OLMo-1B-hf", context=64),
        kvgauge.size("Qwen/Qwen3-8B", context=64, engine="vllm"),
    ):
        assert not any(note.code == "weights_loaded_as" for note in other.notes)


def test_weights_that_are_not_known_leave_the_cache_alone():
    lost = {"intermediate_size", "transformers_version"}  # a file that the class saved omits its defaults
    config = {k: v for k, v in config_of("Qwen/Qwen3-8B").items() if k not in lost}
    result = kvgauge.size(config, context=64)
    assert result.weights is None
    assert [note.message for note in result.notes if note.code == "weights_unknown"] == [
        "the weights are not counted: the config has no intermediate_size, which gives the shape of a tensor"
    ]
    with pytest.raises(kvgauge.KvgaugeError, match="intermediate_size"):
        kvgauge.size(config, context=64, weights="int4")


def test_refusals_say_what_is_possible():
    with pytest.raises(InvalidRequestError, match="int5") as unknown:
        kvgauge.size("Qwen/Qwen3-8B", weights="int5")
    assert "int8" in unknown.value.hint
    with pytest.raises(FeatureUnsupportedError, match="tp") as uneven:
        kvgauge.size({**config_of("Qwen/Qwen3-8B"), "intermediate_size": 12290}, context=64, tp=4)
    assert "--tp 1" in uneven.value.hint or "--no-weights" in uneven.value.hint


def write_checkpoint(folder, config: dict, tensors: dict[str, tuple[str, tuple[int, ...], int]]) -> None:
    """Write a config and a safetensors file of zeros."""
    offset, header = 0, {}
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    folder.joinpath("config.json").write_text(json.dumps(config), encoding="utf-8")
    folder.joinpath("model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(offset))


def test_a_folder_is_weighed_by_its_tensors(tmp_path):
    config = {
        "model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2,
        "intermediate_size": 16, "vocab_size": 32, "torch_dtype": "bfloat16", "tie_word_embeddings": False,
    }  # fmt: skip
    shapes = {
        "model.embed_tokens": (32, 8), "lm_head": (32, 8), "model.norm": (8,),
        "model.layers.0.self_attn.q_proj": (8, 8), "model.layers.0.self_attn.k_proj": (8, 8),
        "model.layers.0.self_attn.v_proj": (8, 8), "model.layers.0.self_attn.o_proj": (8, 8),
        "model.layers.0.mlp.gate_proj": (16, 8), "model.layers.0.mlp.up_proj": (16, 8),
        "model.layers.0.mlp.down_proj": (8, 16), "model.layers.0.input_layernorm": (8,),
        "model.layers.0.post_attention_layernorm": (8,),
    }  # fmt: skip
    sizes = {name: shape[0] * (shape[1] if len(shape) > 1 else 1) for name, shape in shapes.items()}
    tensors = {f"{name}.weight": ("F32", shape, 4 * sizes[name]) for name, shape in shapes.items()}
    write_checkpoint(tmp_path, config, tensors)
    answer = kvgauge.size(tmp_path, context=64).to_dict()
    check(answer)
    weights = answer["weights"]
    assert weights["source"] == "safetensors"
    assert weights["total_bytes"] == 4 * sum(sizes.values())  # what the file holds, not what the config says
    assert {row["dtype"] for row in weights["by_part"]} == {"f32"}


@pytest.mark.parametrize("model", MODELS)
def test_every_part_names_the_config_fields_behind_it(model):
    """A field that is named is in the config (or its class), and changing it changes the part."""
    steps = [s for s in kvgauge.explain(model, context=64).steps if s.id.startswith("weights.")]
    assert all(step.config_path for step in steps)
    embedding = next(step for step in steps if step.id.startswith("weights.embedding"))
    assert {path.rpartition(".")[2] for path in embedding.fields} >= {"vocab_size"}


def test_weights_that_rest_on_an_assumption_say_so():
    named = kvgauge.size("nvidia/Qwen3-235B-A22B-NVFP4", context=64)
    assert named.weights.grade == "assumed"
    assert any(note.code.endswith("_assumed") for note in named.notes)
    assert kvgauge.size("Qwen/Qwen3-8B", context=64).weights.grade == "exact"


@pytest.mark.parametrize("spread", [{"tp": 2}, {"tp": 2, "pp": 2}, {"pp": 3}, {"tp": 4, "ep": 4}])
@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-0.6B"])
def test_every_rank_is_opened(model, spread):
    result = kvgauge.size(model, context=64, **spread)
    steps = [s for s in kvgauge.explain(result).steps if s.id.startswith("weights.per_rank")]
    assert {step.value_bytes for step in steps} == set(result.weights.per_rank_bytes)
    for step in steps:
        assert evaluate(step.formula, step.symbols) == step.value_bytes


def test_a_gguf_that_lost_its_mlp_is_not_weighed_without_it():
    metadata = {key: value for key, value in LLAMA_GGUF.items() if not key.endswith("feed_forward_length")}
    answer = kvgauge.size(metadata, context=64)
    assert answer.weights is None
    assert any("llama.feed_forward_length" in note.message for note in answer.notes)


@pytest.mark.parametrize(("word", "size_bytes"), [("f16", 16_061_054_976), ("bf16", 16_061_054_976)])
def test_plain_dtypes_of_a_gguf_keep_its_norms_in_f32(word, size_bytes):
    """llama-quantize v0.5.0 of Llama-3.1-8B: 8,030,261,248 parameters, 266,240 of them in f32."""
    assert kvgauge.size(LLAMA_GGUF, context=64, weights=word).weights.total_bytes == size_bytes


def test_an_override_that_only_weights_read_is_no_idle_one():
    changed = kvgauge.size("Qwen/Qwen3-8B", context=64, overrides={"intermediate_size": 6144})
    assert not any(note.code == "override_without_effect" for note in changed.notes)
    idle = kvgauge.size("Qwen/Qwen3-8B", context=64, overrides={"no_such_field": 1})
    assert any(note.code == "override_without_effect" for note in idle.notes)


def test_expert_ranks_need_ranks():
    with pytest.raises(FeatureUnsupportedError, match="--ep 8"):
        kvgauge.size("Qwen/Qwen3-30B-A3B", context=64, ep=8)


@pytest.mark.parametrize("words", [0, -1, "many"])
def test_a_table_of_no_words_is_not_left_out(words):
    """Weights without the table would be too few, silently."""
    result = kvgauge.size("Qwen/Qwen3-8B", overrides={"vocab_size": words}, offline=True)
    assert result.weights is None
    assert any("vocab_size" in note.message for note in result.notes if note.code == "weights_unknown")
