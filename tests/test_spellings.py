"""One model, many spellings: whatever keeps the information reads alike, whatever loses it is refused.

The ten models that sizing tools get wrong most often, written flat and nested, with and without layer lists,
patterns as numbers, letters or lists, defaults omitted, in the words of Transformers 4 and 5.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import kvgauge
from kvgauge.readers.hf.rows import class_defaults
from support import config_of

Config = dict[str, object]

MODELS = [
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-30B-A3B",
    "zai-org/GLM-4.7-Flash",
    "Qwen/Qwen3.5-35B-A3B",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "openai/gpt-oss-20b",
    "google/gemma-4-26B-A4B",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3.2",
    "deepseek-ai/DeepSeek-V4-Flash",
]
NESTS = ("text_config", "llm_config", "language_config")


def text_part(config: Config) -> Config:
    """Return the language model's own level."""
    return next((config[nest] for nest in NESTS if nest in config), config)


def flat(config: Config) -> Config:
    inner = text_part(config)
    return inner if inner is config else {**{k: v for k, v in config.items() if k not in NESTS}, **inner}


def nested(name: str) -> Callable[[Config], Config]:
    return lambda config: {"model_type": "some_vlm", name: flat(config)}


def twice_nested(config: Config) -> Config:
    return {
        "model_type": "some_omni",
        "thinker_config": {"model_type": "some_thinker", "text_config": flat(config)},
    }


def edited(edit: Callable[[Config], None]) -> Callable[[Config], Config]:
    def apply(config: Config) -> Config:
        edit(text_part(config))
        return config

    return apply


def words(config: Config) -> list[str]:
    """Return the layer pattern in the words of Transformers 5, from whatever the file has."""
    letters = {"M": "linear_attention", "*": "full_attention", "E": "moe", "-": "mlp"}
    if "hybrid_override_pattern" in config:
        return [letters[c] for c in config["hybrid_override_pattern"]]
    ratios = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
    if "compress_ratios" in config:
        return [ratios[r] for r in config["compress_ratios"]][: config["num_hidden_layers"]]
    return list(config["layer_types"])


def rename(
    old: str, new: str, value: Callable[[Config], object] = lambda c: None
) -> Callable[[Config], Config]:
    def edit(config: Config) -> None:
        kept = config.pop(old, None)
        made = value(config if kept is None else {**config, old: kept})
        config[new] = kept if made is None else made

    return edited(edit)


def drop(*names: str) -> Callable[[Config], Config]:
    return edited(lambda config: [config.pop(name, None) for name in names] and None)


def defaults_omitted(config: Config) -> Config:
    """Write the nested part as Transformers saves it: without what equals its class default."""
    inner = flat(config)
    defaults = class_defaults(str(inner["model_type"]))
    kept = {k: v for k, v in inner.items() if k == "model_type" or k not in defaults or defaults[k] != v}
    return {"model_type": "some_vlm", "text_config": kept}


def flat_defaults_omitted(config: Config) -> Config:
    """The same for a flat file, which bears the marks of a saved one and always states its depth."""
    inner = defaults_omitted(config)["text_config"]
    depth = flat(config)["num_hidden_layers"]
    marks = {"architectures": ["SomeForCausalLM"], "transformers_version": "5.24.0"}
    return {**marks, "num_hidden_layers": depth, **inner}


def v5_words(config: Config) -> Config:
    inner = text_part(config)
    if "torch_dtype" in inner:
        inner["dtype"] = inner.pop("torch_dtype")
    return config


def v4_words(config: Config) -> Config:
    inner = text_part(config)
    if "dtype" in inner:
        inner["torch_dtype"] = inner.pop("dtype")
    return config


EVERY_MODEL = [
    flat,
    *map(nested, NESTS),
    twice_nested,
    defaults_omitted,
    flat_defaults_omitted,
    v4_words,
    v5_words,
]


def period(n: int) -> list[str]:
    return ["sliding_attention"] * (n - 1) + ["full_attention"]


def gemma4_per_layer(config: Config) -> None:
    """Transformers 5 moves the geometry of full layers into per_layer_config."""
    heads = config.pop("num_global_key_value_heads") or config["num_key_value_heads"]
    override = {"head_dim": config.pop("global_head_dim"), "num_key_value_heads": heads}
    full = [i for i, word in enumerate(config["layer_types"]) if word == "full_attention"]
    config["per_layer_config"] = {f"{i:02d}": override for i in full}


ONE_MODEL: list[tuple[str, Callable[[Config], Config]]] = [
    ("Qwen/Qwen3-8B", drop("head_dim")),
    ("Qwen/Qwen3-8B", rename("num_key_value_heads", "num_kv_heads")),
    ("Qwen/Qwen3-8B", rename("num_hidden_layers", "n_layer")),
    ("Qwen/Qwen3-8B", edited(lambda c: c.update(sliding_window=4096, use_sliding_window=False))),
    ("Qwen/Qwen3-8B", edited(lambda c: c.update(sliding_window=None))),
    ("Qwen/Qwen3-8B", edited(lambda c: c.update(layer_types=["full_attention"] * 36))),
    ("Qwen/Qwen3-8B", edited(lambda c: c.update(kv_lora_rank=None, use_cla=False, cla_share_factor=2))),
    ("zai-org/GLM-4.7-Flash", edited(lambda c: c.update(head_dim=64))),
    ("zai-org/GLM-4.7-Flash", drop("num_key_value_heads")),
    ("zai-org/GLM-4.7-Flash", edited(lambda c: c.update(layer_types=["full_attention"] * 47))),
    ("Qwen/Qwen3.5-35B-A3B", drop("layer_types")),
    ("Qwen/Qwen3.5-35B-A3B", drop("layer_types", "full_attention_interval")),
    ("Qwen/Qwen3.5-35B-A3B", drop("full_attention_interval")),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", rename("hybrid_override_pattern", "layers_block_type", words)),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", rename("hybrid_override_pattern", "layer_types", words)),
    (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        lambda c: drop("num_hidden_layers")(rename("hybrid_override_pattern", "layers_block_type", words)(c)),
    ),
    (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        rename("hybrid_override_pattern", "layers_block_type",
               lambda c: [{"linear_attention": "mamba", "full_attention": "attention"}.get(w, w) for w in words(c)]),
    ),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", rename("head_dim", "attention_head_dim")),
    ("openai/gpt-oss-20b", drop("layer_types")),
    ("openai/gpt-oss-20b", lambda c: edited(lambda i: i.update(sliding_window_pattern=2))(drop("layer_types")(c))),
    ("openai/gpt-oss-20b", lambda c: edited(lambda i: i.update(sliding_window_pattern="LG"))(drop("layer_types")(c))),
    ("google/gemma-3-27b-it", drop("layer_types", "sliding_window_pattern", "_sliding_window_pattern")),
    *(
        ("google/gemma-3-27b-it", lambda c, p=pattern, n=name: edited(lambda i: i.update({n: p}))(
            drop("layer_types", "sliding_window_pattern")(c)))
        for name in ("sliding_window_pattern", "_sliding_window_pattern")
        for pattern in (6, "LLLLLG", [True] * 5 + [False], [1, 1, 1, 1, 1, 0], period(6), ["local"] * 5 + ["global"])
    ),
    ("google/gemma-3-27b-it", edited(lambda c: c.update(layer_types=(period(6) * 11)[:62]))),
    ("google/gemma-4-26B-A4B", drop("layer_types")),
    ("google/gemma-4-26B-A4B", edited(gemma4_per_layer)),
    ("google/gemma-4-26B-A4B", lambda c: edited(lambda i: i.update(sliding_window_pattern=6))(drop("layer_types")(c))),
    ("deepseek-ai/DeepSeek-V3.2", edited(lambda c: c.update(layer_types=["indexed_attention"] * 61))),
    ("deepseek-ai/DeepSeek-V3.2", edited(lambda c: c.update(layer_types=["deepseek_sparse_attention"] * 61))),
    ("deepseek-ai/DeepSeek-V3.2", edited(lambda c: c.update(indexer_types=["full"] * 61))),
    ("deepseek-ai/DeepSeek-V3.2", edited(lambda c: c.update(index_topk_freq=1))),
    ("deepseek-ai/DeepSeek-V4-Flash", edited(lambda c: c.update(compress_ratios=c["compress_ratios"][:43]))),
    (
        "deepseek-ai/DeepSeek-V4-Flash",
        lambda c: edited(lambda i: i.update(compress_rates={"compressed_sparse_attention": 4,
                                                            "heavily_compressed_attention": 128}))(
            rename("compress_ratios", "layer_types", words)(c)),
    ),
]  # fmt: skip

#: Spellings that lose what the cache depends on, and the field that must be named.
LOST = [
    ("Qwen/Qwen3-8B", drop("num_hidden_layers"), "num_hidden_layers"),
    ("Qwen/Qwen3-8B", drop("num_key_value_heads"), "num_key_value_heads"),
    ("Qwen/Qwen3-8B", drop("head_dim", "hidden_size"), "head_dim"),
    ("Qwen/Qwen3-30B-A3B", drop("head_dim"), "head_dim"),
    ("zai-org/GLM-4.7-Flash", drop("kv_lora_rank"), "kv_lora_rank"),
    ("zai-org/GLM-4.7-Flash", drop("qk_rope_head_dim"), "qk_rope_head_dim"),
    ("Qwen/Qwen3.5-35B-A3B", drop("linear_num_value_heads"), "linear"),
    ("Qwen/Qwen3.5-35B-A3B", drop("linear_conv_kernel_dim"), "linear_conv_kernel_dim"),
    (
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        drop("hybrid_override_pattern"),
        "hybrid_override_pattern",
    ),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", drop("ssm_state_size"), "ssm_state_size"),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", drop("mamba_num_heads"), "mamba_num_heads"),
    ("openai/gpt-oss-20b", drop("sliding_window"), "sliding_window"),
    ("openai/gpt-oss-20b", drop("head_dim"), "head_dim"),
    ("google/gemma-3-27b-it", drop("num_key_value_heads"), "num_key_value_heads"),
    ("deepseek-ai/DeepSeek-V3.2", drop("index_head_dim"), "index_head_dim"),
    ("deepseek-ai/DeepSeek-V3.2", drop("kv_lora_rank"), "kv_lora_rank"),
    ("deepseek-ai/DeepSeek-V4-Flash", drop("compress_ratios"), "compress_ratios"),
    ("deepseek-ai/DeepSeek-V4-Flash", drop("index_head_dim"), "index_head_dim"),
    ("deepseek-ai/DeepSeek-V4-Flash", drop("sliding_window"), "sliding_window"),
]


def answer(config: Config) -> tuple[object, ...]:
    """Return what every spelling must agree on."""
    result = kvgauge.size(config, context=40_000, sequences=3, kv_dtype="bf16")
    layers = tuple((layer.index, layer.kind, layer.total_bytes) for layer in result.cache.layers)
    return result.cache.family, result.cache.total_bytes, result.cache.growth_bytes_per_token, layers


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("spelling", EVERY_MODEL, ids=lambda f: getattr(f, "__name__", "nested"))
def test_every_model_in_every_common_spelling(model, spelling):
    assert answer(spelling(config_of(model))) == answer(config_of(model))


@pytest.mark.parametrize(
    ("model", "spelling"), ONE_MODEL, ids=[f"{m}-{i}" for i, (m, _) in enumerate(ONE_MODEL)]
)
def test_spellings_of_one_design(model, spelling):
    assert answer(spelling(config_of(model))) == answer(config_of(model))


@pytest.mark.parametrize(("model", "spelling", "field"), LOST, ids=[f"{m}-{f}" for m, _, f in LOST])
def test_lost_information_is_refused_and_named(model, spelling, field):
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        kvgauge.size(spelling(config_of(model)))
    assert caught.value.code in ("missing_field", "unknown_architecture")
    assert field in str(caught.value) + str(caught.value.field)
    assert caught.value.hint


def test_unknown_type_with_complete_shape_is_read_and_marked():
    config = {**config_of("Qwen/Qwen3-8B"), "model_type": "brand_new"}
    result = kvgauge.size(config)
    assert result.cache.total_bytes == kvgauge.size("Qwen/Qwen3-8B").cache.total_bytes
    assert "inferred" in {note.code for note in result.notes}


def test_unknown_type_without_key_value_heads_is_refused():
    config = config_of("Qwen/Qwen3-8B")
    del config["num_key_value_heads"]
    with pytest.raises(kvgauge.KvgaugeError, match="num_key_value_heads"):
        kvgauge.size({**config, "model_type": "brand_new"})


def test_bare_model_type_is_refused():
    with pytest.raises(kvgauge.KvgaugeError, match="num_hidden_layers"):
        kvgauge.size({"model_type": "llama"})


def test_contradicting_spellings_are_refused():
    config = {**config_of("Qwen/Qwen3-8B"), "n_layer": 35}
    with pytest.raises(kvgauge.KvgaugeError, match="n_layer"):
        kvgauge.size(config)
