"""One model in both worlds: a config's tensors in a mix weigh what the GGUF's keys say, to the byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge
from kvgauge.ggml_mixes import mix_names
from kvgauge.gguf_from_config import known_config_types, mix_of_config
from kvgauge.gguf_weights import mix_of_metadata
from kvgauge.readers.gguf.tensor_tables import tensor_block, tensor_row
from kvgauge.readers.hf.config import ReadLog
from kvgauge.readers.hf.nesting import language_view
from kvgauge.readers.hf.weights import read_weights
from kvgauge.sources.catalogue import all_models
from kvgauge.weights import ModelWeights, Part, TensorFamily
from support import config_of
from test_gguf_tensors import PUBLISHED, metadata

RECORDS = {record["model"]: record for record in PUBLISHED}

BOTH = {
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "llama-4-scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-next-80b-a3b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "qwen3.5-397b-a17b": "Qwen/Qwen3.5-397B-A17B",
    "gemma-7b": "google/gemma-7b",
    "gemma-2-9b": "google/gemma-2-9b-it",
    "gemma-3-1b": "google/gemma-3-1b-it",
    "gemma-4-e2b": "google/gemma-4-E2B-it",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "glm-5": "zai-org/GLM-5",
    "glm-4.5-air": "zai-org/GLM-4.5-Air",
    "nemotron-3-nano-30b-a3b": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "mamba-codestral-7b": "mistralai/Mamba-Codestral-7B-v0.1",
    "granite-4.0-h-small": "ibm-granite/granite-4.0-h-small",
    "phi-3.5-mini": "microsoft/Phi-3.5-mini-instruct",
    "smollm3-3b": "HuggingFaceTB/SmolLM3-3B",
    "olmo-3-7b": "allenai/Olmo-3-7B-Instruct",
    "seed-oss-36b": "ByteDance-Seed/Seed-OSS-36B-Instruct",
    "falcon-7b": "tiiuae/falcon-7b",
}
#: What the records leave out of the models: biases that llama.cpp reads where they are, as f32.
WITHOUT_BIASES = {"gpt-oss-120b", "seed-oss-36b"}
#: Records of files without the blocks of multi-token prediction, which the converter writes.
WITHOUT_MTP = {"qwen3-next-80b-a3b", "qwen3.5-397b-a17b", "deepseek-v3.2"}


def weights_of(config: dict, *, biases: bool = True) -> ModelWeights:
    weights = read_weights(config)
    if biases:
        return weights
    kept = [f for f in weights.families if not f.name.endswith(("q_proj.bias", "k_proj.bias", "v_proj.bias"))]
    return ModelWeights(tuple(kept), weights.mtp_families)


@pytest.mark.parametrize("name", BOTH)
def test_both_worlds_weigh_the_same(name):
    record, config = RECORDS[name], config_of(BOTH[name])
    if name in WITHOUT_MTP:
        for level in (config, config.get("text_config", {})):
            level.update(num_nextn_predict_layers=0, mtp_num_hidden_layers=0)
        config.pop("mtp_num_hidden_layers", None)
    weights = weights_of(config, biases=name not in WITHOUT_BIASES)
    keys = metadata(record["architecture"], record["keys"])
    for mix, (size, *_, by_type) in record["mixes"].items():
        stored = mix_of_config(weights, config, mix)
        assert stored.num_bytes == size, mix
        sizes: dict[str, int] = {}
        for family in stored.families:
            sizes[family.format.name] = sizes.get(family.format.name, 0) + family.num_bytes
        assert sizes == by_type, mix
    assert stored.num_parameters == mix_of_metadata(keys, mix, tied=record["tied"]).num_parameters


def test_every_name_is_one_of_its_architecture():
    seen = set()
    for raw, _ in all_models():
        try:
            weights = read_weights(raw.config)
            stored = mix_of_config(weights, raw.config, "q8_0") if weights else None
        except kvgauge.KvgaugeError as error:
            assert error.code in (
                "feature_unsupported",
                "unknown_architecture",
                "missing_field",
                "invalid_field",
            )
            continue
        if stored is None:
            continue
        _, model_type = language_view(raw.config, ReadLog())
        architecture = known_config_types()[model_type]
        names: dict[str, set[int]] = {}
        for block in tensor_row(architecture).blocks:
            for line in tensor_block(block).tensors:
                names.setdefault(line.name.removesuffix("[expert]"), set()).add(len(line.dims))
        for family in stored.families:
            assert len(family.family.shape) in names.get(family.family.name, ()), (raw.id, family.family.name)
        seen.add(architecture)
    assert len(seen) >= 50


def test_types_name_known_architectures():
    assert all(tensor_row(architecture) for architecture in known_config_types().values())


def test_towers_are_another_files():
    config = config_of("google/gemma-3-27b-it")
    stored = mix_of_config(read_weights(config), config, "q4_k_m")
    assert stored.num_parameters == 27_009_346_304
    assert {family.family.part for family in stored.families} & {Part.VISION, Part.PROJECTOR} == set()


def test_multi_token_prediction_follows_the_blocks():
    config = config_of("zai-org/GLM-5")
    stored = mix_of_config(read_weights(config), config, "q4_k_m")
    names = {family.family.name for family in stored.mtp_families}
    assert "blk.{layer}.nextn.eh_proj.weight" in names
    assert {layer for family in stored.mtp_families for layer in family.family.layers} == {78}


def test_what_has_no_name_is_refused_by_name():
    config = config_of("Qwen/Qwen3-0.6B")
    strange = TensorFamily("model.layers.{layer}.mystery.weight", (64, 64), Part.OTHER, layers=(0, 1))
    with pytest.raises(kvgauge.KvgaugeError, match="mystery") as caught:
        mix_of_config(ModelWeights((strange,)), config, "q8_0")
    assert caught.value.code == "feature_unsupported"
    jetmoe = {**config, "model_type": "opt"}
    with pytest.raises(kvgauge.KvgaugeError, match="'opt' is not known"):
        mix_of_config(ModelWeights(()), jetmoe, "q8_0")


@settings(max_examples=60, deadline=None)
@given(
    model=st.sampled_from(["Qwen/Qwen3-0.6B", "deepseek-ai/DeepSeek-V2-Lite", "openai/gpt-oss-120b"]),
    name=st.sampled_from(
        ["num_attention_heads", "num_key_value_heads", "v_head_dim", "qk_nope_head_dim", "head_dim"]
    ),
    value=st.one_of(st.none(), st.integers(-2, 1 << 40), st.text(max_size=3), st.floats()),
    mix=st.sampled_from(mix_names()),
)
def test_any_config_is_answered_or_refused(model, name, value, mix):
    config = {**config_of(model), name: value}
    try:
        weights = read_weights(config)
        stored = mix_of_config(weights, config, mix) if weights else None
    except kvgauge.KvgaugeError as error:
        assert error.message
    else:
        assert stored is None or stored.num_bytes > 0
