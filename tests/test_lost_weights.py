"""A field that is lost (absent or null) never changes the weights in silence: they are refused, equal, or a note says so.

Every field of one model of each type in the catalogue is taken away in turn, as in ``test_lost_fields``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import kvgauge
from kvgauge.readers.hf.weights import read_weights
from kvgauge.sources.catalogue import all_models
from test_lost_fields import fields, one_model_a_type, without

#: Fields whose absence or null has a meaning of its own in their classes.
MEANT = {
    # K and V heads that are not stated equal the query heads; Gemma 4's full layers have those of the others.
    "num_key_value_heads", "num_global_key_value_heads",
    # The class says whether the head is tied, has biases, norms or gates.
    "tie_word_embeddings", "attention_bias", "qkv_bias", "lm_head_bias", "use_qk_norm", "attention_k_eq_v",
    "mla_use_output_gate", "latent_moe_use_norm",
    # A part of its own, which null says is not there: towers, shared experts, low ranks, prediction, blocks.
    "vision_config", "audio_config", "quantization_config", "n_shared_experts", "num_shared_experts",
    "moe_num_shared_experts", "q_lora_rank", "num_nextn_predict_layers", "routed_expert_hidden_size",
    "zero_expert_num", "attn_res_block_size",
    # head_dim that is not stated is hidden_size / heads; a period of null makes every layer sparse.
    "head_dim", "expert_layer_period", "layers_block_type",
    # A pattern that is not stated is the class's, and so is the number of active experts.
    "first_k_dense_replace", "num_dense_layers", "num_experts_per_tok", "num_experts_per_token",
    # The reference files of DeepSeek-V4 have a type of their own; the class alone says fp4 experts.
    "model_type",
}  # fmt: skip
MODELS = one_model_a_type()
SAID = {"class_defaults", "dtype_assumed"}


def weighed(config: dict[str, Any]) -> tuple[tuple[int, ...] | None, set[str]]:
    """Return (bytes, of prediction, parameters, active ones) or None, and the codes of notes."""
    try:
        model = kvgauge.load(config)
        answer = model.weighed
    except kvgauge.KvgaugeError:
        return None, set()
    stored = answer.stored
    codes = {note.code for note in (*answer.notes, *model.architecture.notes)}
    if stored is None:
        return None, codes
    return (
        stored.num_bytes,
        stored.mtp_bytes,
        stored.num_parameters,
        stored.num_active_parameters or 0,
    ), codes


@pytest.mark.parametrize("model_type", sorted(MODELS))
def test_a_lost_field_changes_no_weights_in_silence(model_type):
    config = MODELS[model_type]
    whole, _ = weighed(config)
    if whole is None:
        pytest.skip("its tensors are not known")
    for path in fields(config):
        if path[-1] in MEANT:
            continue
        for null in (False, True):
            left, codes = weighed(without(config, path, null=null))
            assert left in (None, whole) or codes & SAID, (path, null, whole, left)


def row(model: str) -> dict[str, Any]:
    return next(json.loads(json.dumps(raw.config)) for raw, _ in all_models() if raw.id == model)


@pytest.mark.parametrize("lost", ["intermediate_size", "vocab_size"])
def test_a_full_file_that_lost_a_width_is_not_given_another_models(lost):
    config = row("meta-llama/Llama-3.1-70B-Instruct")
    assert "transformers_version" in config
    del config[lost]
    answer = kvgauge.size(config)
    assert answer.weights is None
    assert any(lost in note.message for note in answer.notes if note.code == "weights_unknown")


def test_an_abbreviated_file_has_its_classes_sizes_and_says_so():
    answer = kvgauge.size(kvgauge.load("llava-hf/llava-1.5-7b-hf"))
    said = " ".join(note.message for note in answer.notes if note.code == "class_defaults")
    assert "text_config.intermediate_size = 11008" in said
    assert said.count("text_config.num_hidden_layers") == 1  # what the cache's note says is not said again


@pytest.mark.parametrize("said", ["false", "no", -1, 2, 0.5, [], {}])
def test_a_tie_that_is_no_truth_value_is_refused(said):
    config = row("google/gemma-2-27b-it") | {"tie_word_embeddings": said}
    with pytest.raises(kvgauge.KvgaugeError, match="tie_word_embeddings must be true or false"):
        read_weights(config)


def test_a_tie_of_zero_is_false():
    config = row("google/gemma-2-27b-it")
    untied = read_weights(config | {"tie_word_embeddings": False})
    assert read_weights(config | {"tie_word_embeddings": 0}) == untied


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "intermediate_size"),
        ("Qwen/Qwen3-30B-A3B", "moe_intermediate_size"),
        ("Qwen/Qwen3-30B-A3B", "num_experts"),
        ("deepseek-ai/DeepSeek-V3", "q_lora_rank"),
        ("deepseek-ai/DeepSeek-V3", "n_routed_experts"),
    ],
)
def test_a_size_that_is_none_is_named_as_the_file_names_it(model, field):
    with pytest.raises(kvgauge.KvgaugeError, match=f"^{field} is abc"):
        read_weights(row(model) | {field: "abc"})


def test_a_projector_leads_to_a_stated_width():
    config = row("Qwen/Qwen2.5-VL-7B-Instruct")
    stated = read_weights(config)
    del config["hidden_size"]
    with pytest.raises(kvgauge.KvgaugeError):
        read_weights(config)
    assert stated is not None


def test_fp4_experts_are_told_by_the_class_too():
    config = row("deepseek-ai/DeepSeek-V4-Flash")
    whole = kvgauge.load(dict(config)).weighed.stored
    del config["model_type"]
    assert kvgauge.load(config).weighed.stored.num_bytes == whole.num_bytes


@pytest.mark.parametrize("total", [None, -1, "x", True, 1e30, 10**40])
def test_an_index_without_a_usable_total_is_not_said_to_state_one(tmp_path, total):
    config = row("Qwen/Qwen3-0.6B")
    (tmp_path / "config.json").write_text(json.dumps(config))
    index = {
        "metadata": {"total_size": total},
        "weight_map": {"model.norm.weight": "model-00001-of-00001.safetensors"},
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    answer = kvgauge.size(str(tmp_path))
    assert answer.weights.to_dict()["source"] == "config"
    assert "weights_index_total" not in {note.code for note in answer.notes}


@pytest.mark.parametrize("model", ["nvidia/NVIDIA-Nemotron-Nano-9B-v2", "nvidia/Nemotron-H-56B-Base-8K"])
def test_a_number_of_experts_that_no_layer_has_is_the_classs(model):
    config = row(model)
    whole = read_weights(config)
    letters = {"M": "linear_attention", "*": "full_attention", "-": "mlp"}
    kinds = [letters[letter] for letter in config.pop("hybrid_override_pattern")]
    saved = config | {"layers_block_type": kinds, "n_routed_experts": 8, "num_experts_per_tok": 2}
    assert read_weights(saved) == whole
    assert read_weights(saved | {"layers_block_type": None, "model_type": "llama"}) is None


def test_a_t5_whose_class_says_tied_has_a_head_where_outputs_are_not_scaled():
    config = row("google/flan-t5-base")
    assert config["tie_word_embeddings"] is False
    saved = config | {
        "tie_word_embeddings": True,
        "scale_decoder_outputs": False,
    }  # as Transformers 5 saves it
    assert read_weights(saved) == read_weights(config)
    tied = row("google-t5/t5-base")
    assert read_weights(tied | {"scale_decoder_outputs": True}) == read_weights(tied)
