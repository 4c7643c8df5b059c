"""One model in both dialects: its GGUF metadata and its config answer the same bytes.

Metadata of the recorded models comes from the records; of the others from their configs by the rules of llama.cpp's
converter (``conversion/*.py`` of v0.5.0). Differences are listed in ``docs/gguf_differences.md``.
"""

from __future__ import annotations

import pytest

import kvgauge
from kvgauge.readers.gguf.rows import known_architectures
from support import ROOT, config_of, golden_lines

RECORDED = {
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "llama-4-scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "qwen2.5-7b": "Qwen/Qwen2.5-7B-Instruct",
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "qwen3-next-80b-a3b": "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "qwen3.5-397b-a17b": "Qwen/Qwen3.5-397B-A17B",
    "gemma-7b": "google/gemma-7b",
    "gemma-2-9b": "google/gemma-2-9b-it",
    "gemma-3-1b": "google/gemma-3-1b-it",
    "gemma-3-27b": "google/gemma-3-27b-it",
    "gemma-3n-e2b": "google/gemma-3n-E2B-it",
    "gemma-4-e2b": "google/gemma-4-E2B-it",
    "gemma-4-e4b": "google/gemma-4-E4B-it",
    "gemma-4-31b": "google/gemma-4-31B-it",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "deepseek-v2-lite": "deepseek-ai/DeepSeek-V2-Lite",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "glm-4.7-flash": "zai-org/GLM-4.7-Flash",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "glm-5": "zai-org/GLM-5",
    "deepseek-v4-flash-like": "deepseek-ai/DeepSeek-V4-Flash",
    "glm-4.5-air": "zai-org/GLM-4.5-Air",
    "nemotron-3-nano-30b-a3b": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "mamba-codestral-7b": "mistralai/Mamba-Codestral-7B-v0.1",
    "granite-4.0-h-small": "ibm-granite/granite-4.0-h-small",
    "kimi-linear-48b-a3b": "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "phi-3.5-mini": "microsoft/Phi-3.5-mini-instruct",
    "phi-4": "microsoft/phi-4",
    "minimax-m2": "MiniMaxAI/MiniMax-M2",
    "smollm3-3b": "HuggingFaceTB/SmolLM3-3B",
    "mistral-small-3": "mistralai/Mistral-Small-24B-Instruct-2501",
    "olmo-3-7b": "allenai/Olmo-3-7B-Instruct",
    "seed-oss-36b": "ByteDance-Seed/Seed-OSS-36B-Instruct",
    "falcon-7b": "tiiuae/falcon-7b",
}

#: Recorded models whose config is not in the catalogue: the fields that their published file states.
TYPED = {
    "falcon-h1-7b": {"model_type": "falcon_h1", "num_hidden_layers": 44, "hidden_size": 3072,
                     "num_attention_heads": 12, "num_key_value_heads": 2, "head_dim": 128, "mamba_d_ssm": 3072,
                     "mamba_n_heads": 24, "mamba_d_head": 128, "mamba_d_state": 256, "mamba_n_groups": 1,
                     "mamba_d_conv": 4},
    "lfm2-8b-a1b": {"model_type": "lfm2_moe", "num_hidden_layers": 24, "hidden_size": 2048, "conv_L_cache": 3,
                    "num_attention_heads": 32, "num_key_value_heads": 8,
                    "layer_types": ["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)]},
    "rwkv6-7b": {"model_type": "rwkv6", "num_hidden_layers": 32, "hidden_size": 4096, "head_size": 64,
                 "attention_hidden_size": 4096},
    "starcoder-15b": {"model_type": "gpt_bigcode", "n_layer": 40, "n_embd": 6144, "n_head": 48, "multi_query": True},
    "bloom-7b1": {"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32},
}  # fmt: skip

#: Dense models whose keys the converter's base class writes.
PLAIN = {
    "meta-llama/Llama-3.2-1B": "llama", "openai-community/gpt2": "gpt2", "mosaicml/mpt-7b": "mpt",
    "internlm/internlm2-7b": "internlm2",
    "stabilityai/stablelm-2-1_6b": "stablelm", "tencent/Hunyuan-A13B-Instruct": "hunyuan-moe",
    "tencent/Hunyuan-7B-Instruct": "hunyuan-dense", "rednote-hilab/dots.llm1.inst": "dots1",
    "swiss-ai/Apertus-8B-2509": "apertus", "arcee-ai/AFM-4.5B": "arcee", "Qwen/Qwen2-57B-A14B": "qwen2moe",
    "EleutherAI/gpt-neox-20b": "gptneox", "EleutherAI/gpt-j-6b": "gptj", "CohereLabs/c4ai-command-r-v01": "command-r",
    "baidu/ERNIE-4.5-21B-A3B-PT": "ernie4_5-moe", "baichuan-inc/Baichuan-7B": "baichuan",
    "allenai/OLMo-1B-hf": "olmo", "allenai/OLMoE-1B-7B-0924": "olmoe", "google/gemma-2b": "gemma",
    "ibm-granite/granite-3.1-1b-a400m-instruct": "granitemoe", "ibm-granite/granite-3.3-8b-instruct": "granite",
    "zai-org/GLM-4-9B-0414": "glm4", "inclusionAI/Ling-lite": "bailingmoe", "huggyllama/llama-7b": "llama",
    "LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct": "exaone", "allenai/OLMo-2-1124-7B-Instruct": "olmo2",
}  # fmt: skip

CONTEXTS = (1, 777, 40_000)


def of_record(name: str) -> dict:
    (record,) = (r for r in golden_lines("llamacpp_v0.5.0_caches.jsonl") if r["model"] == name)
    return metadata(record["architecture"], record["keys"])


def metadata(architecture: str, keys: dict) -> dict:
    return {"general.architecture": architecture, **{f"{architecture}.{k}": v for k, v in keys.items()}}


def by_base_converter(config: dict, architecture: str) -> dict:
    """Return the keys that ``TextModel.set_gguf_parameters`` writes for a config."""
    spellings = {
        "block_count": ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
        "embedding_length": ("hidden_size", "n_embd", "d_model"),
        "attention.head_count": ("num_attention_heads", "n_heads", "n_head"),
        "attention.head_count_kv": ("num_key_value_heads", "n_head_kv"),
        "attention.key_length": ("head_dim",),
        "attention.value_length": ("head_dim",),
    }
    keys = {}
    for key, names in spellings.items():
        value = next((config[n] for n in names if config.get(n) is not None), None)
        if value is not None:
            keys[key] = value
    return metadata(architecture, keys)


def heads(count: int, width: int, **more: object) -> dict:
    keys = {"attention.head_count": count, "attention.key_length": width, "attention.value_length": width}
    return keys | {k.replace("__", "."): v for k, v in more.items()}


def latent(blocks: int, count: int, **more: object) -> dict:
    keys = {"block_count": blocks, "attention.head_count": count, "attention.head_count_kv": 1,
            "attention.kv_lora_rank": 512, "attention.key_length": 576, "attention.value_length": 512,
            "attention.key_length_mla": 192, "attention.value_length_mla": 128}  # fmt: skip
    return keys | {k.replace("__", "."): v for k, v in more.items()}


KIMI_K3_FULL = [*range(4, 93, 4), 93]

#: Designs beyond the records: catalogue name -> (architecture, keys).
DESIGNS = {
    "ai21labs/Jamba-v0.1": ("jamba", {
        "block_count": 32, "embedding_length": 4096, "attention.head_count": 32,
        "attention.head_count_kv": [8 if i % 8 == 4 else 0 for i in range(32)], "ssm.conv_kernel": 4,
        "ssm.inner_size": 8192, "ssm.state_size": 16, "ssm.time_step_rank": 256}),
    "MiniMaxAI/MiniMax-Text-01": ("minimax-01", heads(
        64, 128, block_count=80, attention__head_count_kv=8, full_attention_interval=8)),
    "MiniMaxAI/MiniMax-M3": ("minimax-m3", heads(
        64, 128, block_count=61, nextn_predict_layers=1, attention__head_count_kv=4, leading_dense_block_count=3,
        attention__indexer__key_length=128)),
    "moonshotai/Kimi-K3": ("kimi-k3", latent(
        93, 96, attention__head_count_kv=[int(i + 1 in KIMI_K3_FULL) for i in range(93)], kda__head_dim=128,
        ssm__conv_kernel=4)),
    "zai-org/GLM-5.2": ("glm-dsa", latent(
        79, 64, nextn_predict_layers=1, context_length=1_048_576, attention__indexer__key_length=128)),
    "google-t5/t5-base": ("t5", heads(12, 64, block_count=12, decoder_block_count=12, embedding_length=768)),
    "CohereLabs/c4ai-command-r7b-12-2024": ("cohere2", heads(
        32, 128, block_count=32, attention__head_count_kv=8, attention__sliding_window=4096)),
    "LGAI-EXAONE/EXAONE-4.0-32B": ("exaone4", heads(
        40, 128, block_count=64, attention__head_count_kv=8, attention__sliding_window=4096)),
    "tiiuae/falcon-mamba-7b": ("mamba", {
        "block_count": 64, "embedding_length": 4096, "attention.head_count": 0, "ssm.conv_kernel": 4,
        "ssm.inner_size": 8192, "ssm.state_size": 16, "ssm.time_step_rank": 256}),
    "LiquidAI/LFM2-1.2B": ("lfm2", {
        "block_count": 16, "embedding_length": 2048, "attention.head_count": 32, "shortconv.l_cache": 3,
        "attention.head_count_kv": [8 if i in (2, 5, 8, 10, 12, 14) else 0 for i in range(16)]}),
    "apple/OpenELM-270M": ("openelm", {
        "block_count": 16, "embedding_length": 1280, "attention.key_length": 64, "attention.value_length": 64,
        "attention.head_count": [12] * 5 + [16] * 7 + [20] * 4,
        "attention.head_count_kv": [3] * 5 + [4] * 7 + [5] * 4}),
    "poolside/Laguna-S-2.1": ("laguna", heads(
        [48] * 48, 128, block_count=48, attention__head_count_kv=8, attention__sliding_window=512)),
    "stepfun-ai/Step-3.7-Flash": ("step35", heads(
        [64] * 48, 128, block_count=48, nextn_predict_layers=3, attention__head_count_kv=[8] * 48,
        attention__sliding_window=512,
        attention__sliding_window_pattern=[i < 45 and i % 4 != 0 for i in range(48)])),
    "arcee-ai/Trinity-Nano-Preview": ("afmoe", heads(
        8, 128, block_count=56, attention__head_count_kv=2, attention__sliding_window=2048)),
    "XiaomiMiMo/MiMo-V2-Flash": ("mimo2", {
        "block_count": 51, "nextn_predict_layers": 3, "attention.head_count": 64, "attention.key_length": 192,
        "attention.value_length": 128, "attention.sliding_window": 128,
        "attention.head_count_kv": [4 if i in (0, *range(5, 48, 6)) else 8 for i in range(51)],
        "attention.sliding_window_pattern": [i not in (0, *range(5, 48, 6)) for i in range(51)]}),
}  # fmt: skip

#: Where the dialects differ on purpose: name -> (metadata, why it stands in the table of the document).
DIFFERENT = {
    "deepseek-ai/DeepSeek-V2-Lite": of_record("deepseek-v2-lite-nomla"),
    "openbmb/MiniCPM3-4B": metadata("minicpm3", {
        "block_count": 62, "embedding_length": 2560, "attention.head_count": 40, "attention.head_count_kv": 40,
        "attention.kv_lora_rank": 256, "attention.key_length": 96}),
    "microsoft/Phi-3-mini-4k-instruct": metadata("phi3", {
        "block_count": 32, "embedding_length": 3072, "attention.head_count": 32, "attention.head_count_kv": 32,
        "context_length": 4096, "attention.sliding_window": 2047}),
    "mistralai/Mistral-7B-v0.1": metadata("llama", {
        "block_count": 32, "embedding_length": 4096, "attention.head_count": 32, "attention.head_count_kv": 8}),
    "bigcode/starcoder2-3b": metadata("starcoder2", {
        "block_count": 30, "embedding_length": 3072, "attention.head_count": 24, "attention.head_count_kv": 2}),
}  # fmt: skip

PAIRS = [
    *((model, of_record(record)) for record, model in RECORDED.items()),
    *((config, of_record(record)) for record, config in TYPED.items()),
    *((model, by_base_converter(config_of(model), architecture)) for model, architecture in PLAIN.items()),
    *((model, metadata(*design)) for model, design in DESIGNS.items()),
]


def bytes_of(model: object, context: int, kv_dtype: str) -> tuple[int, int]:
    cache = kvgauge.size(model, context=context, kv_dtype=kv_dtype).cache
    return cache.total_bytes, cache.fixed_bytes_per_sequence


@pytest.mark.parametrize(
    ("model", "keys"), PAIRS, ids=[m if isinstance(m, str) else m["model_type"] for m, _ in PAIRS]
)
def test_both_dialects_agree(model, keys):
    for context in CONTEXTS:
        assert bytes_of(keys, context, "bf16") == bytes_of(model, context, "bf16")


@pytest.mark.parametrize("record", RECORDED)
def test_both_dialects_say_the_same_words(record):
    """The groups, formulas and numbers are the same, not only their sum; q8_0 rows too."""
    ours, theirs = (
        kvgauge.size(m, context=8192, kv_dtype="bf16").cache_dict()
        for m in (of_record(record), RECORDED[record])
    )
    if record == "phi-3.5-mini":  # a window as long as the context, which llama.cpp does not use
        return
    for key in ("family", "terms", "growth_bytes_per_token"):
        assert ours[key] == theirs[key]
    shapes = [
        [(g["kind"], g["mechanism"], g["num_layers"], g["formula"], g["symbols"]) for g in answer["groups"]]
        for answer in (ours, theirs)
    ]
    assert shapes[0] == shapes[1]
    assert bytes_of(of_record(record), 777, "q8_0") == bytes_of(RECORDED[record], 777, "q8_0")


@pytest.mark.parametrize(
    "model", ["zai-org/GLM-5", "zai-org/GLM-5.2", "MiniMaxAI/MiniMax-M3", "stepfun-ai/Step-3.7-Flash"]
)
def test_multi_token_prediction_agrees(model):
    keys = next(keys for name, keys in PAIRS if name == model)
    ours, theirs = (kvgauge.size(m, context=4096, kv_dtype="bf16", mtp=1).cache for m in (keys, model))
    assert (
        ours.total_bytes
        == theirs.total_bytes
        > kvgauge.size(model, context=4096, kv_dtype="bf16").cache.total_bytes
    )


@pytest.mark.parametrize("model", DIFFERENT)
def test_differences_are_documented(model):
    assert bytes_of(DIFFERENT[model], 40_000, "bf16") != bytes_of(model, 40_000, "bf16")
    assert model in (ROOT / "docs/gguf_differences.md").read_text(encoding="utf-8")


def test_the_document_counts_the_pairs():
    text = (ROOT / "docs/gguf_differences.md").read_text(encoding="utf-8")
    assert f"{len(PAIRS)} models agree" in text
    assert f"{len(known_architectures())} architectures" in text
