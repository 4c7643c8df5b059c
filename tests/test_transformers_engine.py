"""Transformers: cache bytes after real forward passes, closed forms, refusals."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from support import SHARED, golden_lines

VERSIONS = ("5.24.0", "4.57.3")
ORACLE = SHARED / "data" / "oracle"
DEFAULTS = SHARED / "data" / "configs" / "defaults"

PLAIN = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_size": 64,
    "torch_dtype": "bfloat16",
}
SLIDING = {**PLAIN, "model_type": "mistral", "sliding_window": 16}
LATENT = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "torch_dtype": "bfloat16",
}
COMPRESSED = {
    "model_type": "deepseek_v4",
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "hidden_size": 64,
    "head_dim": 32,
    "qk_rope_head_dim": 8,
    "index_head_dim": 16,
    "sliding_window": 16,
    "compress_ratios": [0, 4, 128, 4, 0],
    "torch_dtype": "bfloat16",
}
HYBRID = {
    **PLAIN,
    "model_type": "qwen3_next",
    "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 16,
}
GRIFFIN = {
    "model_type": "recurrent_gemma",
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 64,
    "lru_width": 64,
    "conv1d_width": 4,
    "attention_window_size": 16,
    "block_types": ["recurrent", "recurrent", "attention"],
    "torch_dtype": "bfloat16",
}


def ask(config, tokens, *, version="5.24.0", args="", sequences=1, **load):
    return kvgauge.size(
        config,
        context=tokens,
        sequences=sequences,
        engine=f"transformers@{version}",
        engine_args=args,
        **load,
    )


def codes(result):
    return {note.code for note in result.notes}


# -- measured -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_golden(version):
    wrong = []
    for line in golden_lines(f"transformers_{version}.jsonl"):
        for case in line["cases"]:
            args = line["args"] + (f" prompt={case['prompt']}" if "prompt" in case else "")
            cache = ask(
                line["config"],
                case["context"],
                version=version,
                args=args,
                sequences=case["sequences"],
                encoder_tokens=case.get("encoder"),
                image_tokens=case.get("image"),
            ).cache
            if cache.total_bytes != case["bytes"]:
                wrong.append((line["config"]["model_type"], args, case, cache.total_bytes))
    assert not wrong


#: Record names that are not model types, and lists of a class default that another layer count invalidates.
_TYPES = {"gemma4_shared": "gemma4_text", "mllama": "mllama_text_model"}
_DERIVED = ("layer_types", "layers_block_type", "mlp_layer_types", "per_layer_config", "no_rope_layers")
#: Rows whose config is not what was measured; see docs/transformers_records.md.
_WRONG_ROWS = {"bart"}


def _record_config(record):
    model_type = _TYPES.get(record["model_type"], record["model_type"])
    path = DEFAULTS / f"{model_type}.json"
    default = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept = {name: value for name, value in default.items() if name not in (*_DERIVED, "dtype", "torch_dtype")}
    return {**kept, **record["config"], "model_type": model_type, "torch_dtype": record["dtype"]}


def _record_args(record):
    cache, *rest = record["cache"].split(":")
    if cache == "default":
        return ""
    if cache == "static":
        return f"cache=static max_cache_len={record['max_cache_len']}"
    if cache == "quantized":
        prompt = record["T"] - (3 if "decode" in record["phase"] else 0)
        return f"cache=quantized backend={rest[0]} nbits={rest[1]} prompt={prompt}"
    return f"cache={cache}"


@pytest.mark.skipif(not ORACLE.exists(), reason="../shared/data/oracle is not there: golden lines only")
@pytest.mark.parametrize("version", VERSIONS)
def test_all_records(version):
    wrong = []
    for text in (ORACLE / f"transformers_{version}.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        if record["cache"] == "module_state" or record["model_type"] in _WRONG_ROWS:
            continue
        cache = ask(
            _record_config(record),
            record["T"],
            version=version,
            args=_record_args(record),
            sequences=record["B"],
            encoder_tokens=record.get("T_enc"),
            image_tokens=record.get("T_cross"),
        ).cache
        if cache.total_bytes != record["bytes"]:
            wrong.append(
                (record["model_type"], record["cache"], record["T"], record["bytes"], cache.total_bytes)
            )
    assert not wrong


# -- closed forms ---------------------------------------------------------------------------------

_SHAPES = (
    (PLAIN, ""),
    (SLIDING, ""),
    (SLIDING, "cache=dynamic_without_config"),
    (SLIDING, "cache=static max_cache_len=64"),
    (LATENT, ""),
    (COMPRESSED, ""),
    (HYBRID, ""),
    (HYBRID, "cache=static max_cache_len=9"),
    (GRIFFIN, ""),
    (PLAIN, "cache=quantized backend=quanto nbits=4 prompt=40"),
    (PLAIN, "cache=quantized backend=hqq nbits=2 prompt=0"),
    (PLAIN, "cache=quantized backend=fp8"),
)


@given(st.sampled_from(_SHAPES), st.integers(0, 1500), st.integers(0, 1500))
def test_terms_are_exact_at_every_length(shape, asked, tokens):
    config, args = shape
    cache = ask(config, asked, args=args).cache
    load = replace(cache.workload, context_tokens=tokens)
    direct = sum(group.group.num_layers * group.sequence_bytes(load) for group in cache.demand.groups)
    assert cache.bytes_at(tokens) == direct
    assert sum(layer.total_bytes for layer in cache.layers) == cache.total_bytes


@given(st.integers(0, 3000))
def test_deepseek_v4_closed_form(tokens):
    """Windows of one or two tensors, compressed rows, what waits for a step, and CSA's overlap."""
    size, d, x = 2, 32, 16
    w = min(tokens, 15)
    sliding = 2 * w * d * size
    csa = w * d * size + tokens // 4 * (d + x) * size + tokens % 4 * 4 * (d + x) * size
    csa += 4 * (d + x) * (size + 4) if tokens >= 4 else 0
    hca = w * d * size + tokens // 128 * d * size + tokens % 128 * 2 * d * size
    assert ask(COMPRESSED, tokens).cache.total_bytes == 2 * sliding + 2 * csa + hca


@given(st.integers(0, 500), st.integers(0, 500))
def test_quantised_residual(prompt, later):
    """Whole prompt packed; then up to 127 tokens in 16 bits before everything is packed anew."""
    plain = later % 128
    packed = prompt + later - plain
    args = f"cache=quantized backend=quanto nbits=4 prompt={prompt}"
    expected = 4 * (64 * packed * 9 // 16 + 64 * plain * 2)
    assert ask(PLAIN, prompt + later, args=args).cache.total_bytes == expected


# -- versions -------------------------------------------------------------------------------------


def test_latents_are_expanded_before_5_15():
    per_token = 61 * (512 + 64) * 2
    assert ask(LATENT, 1000).cache.total_bytes == 1000 * per_token
    assert ask(LATENT, 1000, version="5.15.2").cache.total_bytes == 1000 * per_token
    expanded = 61 * 128 * (192 + 128) * 2
    for version in ("4.57.3", "5.0", "5.14.1"):
        assert ask(LATENT, 1000, version=version).cache.total_bytes == 1000 * expanded


def test_expansion_needs_the_widths_of_a_head():
    config = {name: value for name, value in LATENT.items() if name != "v_head_dim"}
    ask({**config, "model_type": "axk9"}, 10)
    with pytest.raises(kvgauge.KvgaugeError, match="v_head_dim"):
        ask({**config, "model_type": "axk9"}, 10, version="5.14")


def test_version_notes():
    assert "engine_version_newer" in codes(ask(PLAIN, 8, version="6.1"))
    assert "engine_version_nearest" in codes(ask(PLAIN, 8, version="5.3"))
    assert not {"engine_version_newer", "engine_version_nearest"} & codes(ask(PLAIN, 8, version="5.24.1"))
    assert kvgauge.size(PLAIN, context=8, engine="transformers").request.engine_version == "5.24.0"
    with pytest.raises(FeatureUnsupportedError, match=r"4\.30"):
        ask(PLAIN, 8, version="4.30.0")
    with pytest.raises(InvalidRequestError, match="latest"):
        ask(PLAIN, 8, version="latest")


def test_mimo_counts_the_query_into_its_window():
    config = {
        **PLAIN,
        "model_type": "mimo_v2_flash",
        "v_head_dim": 16,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"],
        "sliding_window": 16,
    }
    row = 2 * 16 * 2
    assert ask(config, 100).cache.total_bytes == row * (2 * 100 + 3 * 4 * 15)
    published = {**config, "sliding_window_size": 16, "swa_num_key_value_heads": 4}
    assert ask(published, 100).cache.total_bytes == row * (2 * 100 + 3 * 4 * 16)


# -- words and refusals ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ("cache=dynamc", "dynamc"),
        ("cache=static max_cache_lenn=5", "max_cache_lenn"),
        ("max_cache_len=5", "max_cache_len"),
        ("cache=quantized backend=gguf", "gguf"),
        ("cache=static max_cache_len=x", "max_cache_len=x"),
        ("cache=static max_cache_len=5 max_cache_len=6", "max_cache_len"),
        ("sliding", "sliding"),
        ("cache='static", "engine-args"),
    ],
)
def test_unknown_words_are_named(args, named):
    with pytest.raises(InvalidRequestError, match=named):
        ask(PLAIN, 8, args=args)


@pytest.mark.parametrize(
    ("config", "version", "args"),
    [
        (SLIDING, "5.24.0", "cache=quantized"),
        (HYBRID, "5.24.0", "cache=quantized"),
        (HYBRID, "5.24.0", "cache=dynamic_without_config"),
        (HYBRID, "4.57.3", "cache=static"),
        (COMPRESSED, "5.24.0", "cache=static"),
        (COMPRESSED, "5.24.0", "cache=dynamic_without_config"),
        (PLAIN, "4.57.3", "cache=quantized backend=fp8"),
        (PLAIN, "5.24.0", "cache=quantized backend=quanto nbits=3"),
        (PLAIN, "5.24.0", "cache=quantized backend=fp8 nbits=4"),
        ({**PLAIN, "torch_dtype": "float32"}, "5.24.0", "cache=quantized"),
    ],
)
def test_what_a_cache_object_refuses(config, version, args):
    with pytest.raises(FeatureUnsupportedError):
        ask(config, 100, version=version, args=args)


def test_refuses_packed_dtypes_and_shared_prefixes():
    with pytest.raises(FeatureUnsupportedError, match="fp8"):
        ask(PLAIN, 8, kv_dtype="fp8")
    with pytest.raises(FeatureUnsupportedError, match="prefix"):
        ask(PLAIN, 8, shared_prefix=4)


# -- notes ----------------------------------------------------------------------------------------


def test_a_sliding_model_keeps_its_prompt_alive():
    """15,360 bytes in the cache, 204,800 in memory until the next token (4 layers, window 16, T 200)."""
    result = ask(SLIDING, 200, sequences=2)
    alive = result.cache.demand.details["prompt_alive_bytes"]
    assert (result.cache.total_bytes, result.cache.total_bytes + alive) == (15360, 204800)
    assert "prompt_alive" in codes(result)


def test_latents_are_expanded_for_a_moment():
    result = ask(LATENT, 32768)
    assert (
        result.cache.demand.details["transient_expansion_bytes"] == 32768 * 128 * (192 + 128) * 2
    )  # 2.5 GiB
    assert "latents_expanded" in codes(result)


def test_a_state_outside_the_cache_is_said():
    result = ask(GRIFFIN, 200, sequences=2)
    assert result.cache.total_bytes == 0
    assert {"no_cache_object", "state_outside_cache"} <= codes(result)
    assert result.cache.demand.details["outside_cache_bytes"] == 4 * 2 * (64 * 3 * 2 + 64 * 4)


def test_the_kv_scheme_of_a_checkpoint_is_not_read():
    scheme = {
        "quant_method": "compressed-tensors",
        "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False},
    }
    result = ask({**PLAIN, "quantization_config": scheme}, 8)
    assert result.cache.total_bytes == 4096
    assert "kv_dtype_ignored" in codes(result)
