"""A config under llama.cpp: the metadata that its conversion would hold."""

from __future__ import annotations

import json

import pytest

import kvgauge
from kvgauge.engines.llamacpp import LlamaSettings, plan
from kvgauge.errors import UnknownArchitectureError
from kvgauge.layers import LayerKind
from kvgauge.readers.gguf import read_metadata
from kvgauge.readers.gguf.from_config import conversion, metadata_of_config
from kvgauge.readers.gguf.rows import architecture_row
from kvgauge.sources.catalogue import find_model
from support import SHARED, golden_lines

#: Model of the records -> model of the catalogue, of one shape.
PAIRS = {
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "llama-4-scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "qwen3-next-80b-a3b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "qwen3.5-397b-a17b": "Qwen/Qwen3.5-397B-A17B",
    "gemma-3-1b": "google/gemma-3-1b-it",
    "gemma-3-27b": "google/gemma-3-27b-it",
    "gemma-4-e2b": "google/gemma-4-E2B-it",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "glm-4.7-flash": "zai-org/GLM-4.7-Flash",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "glm-4.5-air": "zai-org/GLM-4.5-Air",
    "nemotron-3-nano-30b-a3b": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "deepseek-v4-flash-like": "deepseek-ai/DeepSeek-V4-Flash",
    "kimi-linear-48b-a3b": "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "minimax-m2": "MiniMaxAI/MiniMax-M2.5",
    "smollm3-3b": "HuggingFaceTB/SmolLM3-3B",
    "olmo-3-7b": "allenai/Olmo-3-7B-Instruct",
}
RECORDS = {record["model"]: record for record in golden_lines("llamacpp_v0.5.0_plans.jsonl")}


def config_of(model: str) -> dict | None:
    found = find_model(model)
    return None if found is None else dict(found.config)


def caches(metadata: dict) -> dict:
    settings = LlamaSettings(context_tokens=32768, sequences=4, unified=True, rollback_tokens=2)
    answer = plan(read_metadata(metadata), settings)
    return {a.name: a.bytes for a in answer.allocations if a.kind in ("cache", "state")}


def metadata_of(record: dict) -> dict:
    name = record["architecture"]
    return {"general.architecture": name, **{f"{name}.{k}": v for k, v in record["keys"].items()}}


@pytest.mark.parametrize(("recorded", "model"), PAIRS.items(), ids=list(PAIRS))
def test_a_config_and_its_gguf_have_the_same_sub_caches(recorded, model):
    config = config_of(model)
    if config is None:
        pytest.skip(f"{model} is not in the catalogue")
    converted = metadata_of_config(config)
    assert converted["general.architecture"] == RECORDS[recorded]["architecture"]
    assert caches(converted) == caches(metadata_of(RECORDS[recorded]))


def test_windows_that_llamacpp_does_not_use_fall_away():
    config = {
        "model_type": "phi3", "num_hidden_layers": 32, "hidden_size": 3072, "num_attention_heads": 32,
        "num_key_value_heads": 32, "sliding_window": 2047, "max_position_embeddings": 4096,
    }  # fmt: skip
    metadata = metadata_of_config(config)
    assert metadata["phi3.attention.sliding_window"] == 2047
    assert {layer.kind.value for layer in read_metadata(metadata).layers} == {"full"}


def test_gemma3n_keeps_twenty_layers():
    config = {
        "model_type": "gemma3n_text", "num_hidden_layers": 30, "hidden_size": 2048, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 256, "sliding_window": 512, "num_kv_shared_layers": 10,
        "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 6,
    }  # fmt: skip
    layers = read_metadata(metadata_of_config(config)).layers
    assert sum(layer.kind.value in ("full", "sliding") for layer in layers) == 20


def test_latent_attention_has_the_keys_of_its_graph():
    config = config_of("deepseek-ai/DeepSeek-V2-Lite")
    metadata = metadata_of_config(config)
    named = {key.partition(".")[2]: value for key, value in metadata.items()}
    assert named["attention.key_length"] == 576
    assert named["attention.value_length"] == 512
    assert (named["attention.key_length_mla"], named["attention.value_length_mla"]) == (192, 128)
    assert named["attention.head_count_kv"] == 1


def test_types_without_a_conversion_are_refused_by_name():
    config = {
        "model_type": "telechat", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 4,
        "num_key_value_heads": 4,
    }  # fmt: skip
    with pytest.raises(UnknownArchitectureError, match="telechat"):
        metadata_of_config(config)


def test_drafts_are_refused():
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1}
    with pytest.raises(UnknownArchitectureError, match="drafts"):
        metadata_of_config(config)


def test_every_conversion_is_to_a_known_architecture():
    from kvgauge.readers.gguf.from_config import _table

    for model_type in _table():
        row = conversion(model_type)
        assert architecture_row(row.architecture).known, model_type
        assert not row.moe_architecture or architecture_row(row.moe_architecture).known


REAL = SHARED / "data" / "configs" / "real"


@pytest.mark.skipif(not REAL.exists(), reason="the wide configs are not beside the checkout")
def test_all_configs_are_read_again_or_refused_by_name():
    done = 0
    for path in sorted(REAL.glob("*.json")):
        config = json.loads(path.read_text())
        try:
            metadata = metadata_of_config(config)
        except Exception as error:
            assert type(error).__module__ == "kvgauge.errors", path.name
            continue
        assert read_metadata(metadata).layers, path.name
        done += 1
    assert done > 250


def test_models_of_states_alone_have_no_heads_of_keys():
    """Mamba-2 says num_heads, which are its state's; its conversion states none of attention."""
    model = kvgauge.load("mistralai/Mamba-Codestral-7B-v0.1", offline=True)
    layers = read_metadata(metadata_of_config(model.raw.config)).layers
    assert {layer.kind for layer in layers} == {LayerKind.RECURRENT}
    assert kvgauge.fit(model, engine="llama.cpp", gpu="L4").verdict.required_bytes > 0
