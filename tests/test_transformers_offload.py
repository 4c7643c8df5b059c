"""Transformers with offloading: the bytes of the plain cache, on the device and on the host."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from test_chinese_errors import chinese, english_left
from test_transformers_engine import (
    COMPRESSED,
    GRIFFIN,
    HYBRID,
    LATENT,
    PLAIN,
    SLIDING,
    VERSIONS,
    ask,
    codes,
)

MIXED = {
    **PLAIN,
    "model_type": "gemma3_text",
    "num_hidden_layers": 6,
    "sliding_window": 16,
    "layer_types": ["sliding_attention"] * 2
    + ["full_attention"]
    + ["sliding_attention"] * 2
    + ["full_attention"],
}
SHARING = {
    **PLAIN,
    "model_type": "gemma3n_text",
    "num_hidden_layers": 6,
    "num_kv_shared_layers": 2,
    "sliding_window": 16,
    "layer_types": ["full_attention", "full_attention", "sliding_attention"] * 2,
}
BOTH = {
    **PLAIN,
    "model_type": "falcon_h1",
    "mamba_d_conv": 4,
    "mamba_d_ssm": 64,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
}
ROW = 2 * 2 * 16 * 2  # bytes a token of one attention layer of these models


def parts(result):
    return {entry["name"]: entry for entry in result.allocations}


def sizes(result):
    return {name: entry["bytes"] for name, entry in parts(result).items()}


@given(
    st.sampled_from(
        [
            (PLAIN, "offloaded"),
            (SLIDING, "offloaded"),
            (MIXED, "offloaded"),
            (MIXED, "offloaded_static"),
            (SHARING, "offloaded"),
            (HYBRID, "offloaded"),
            (HYBRID, "offloaded_static"),
            (BOTH, "offloaded"),
            (BOTH, "offloaded_static"),
            (LATENT, "offloaded_static"),
        ]
    ),
    st.integers(0, 300),
    st.integers(1, 3),
)
def test_the_parts_sum_up_to_the_plain_cache(shape, tokens, sequences):
    config, word = shape
    result = ask(config, tokens, args=f"cache={word}", sequences=sequences)
    plain = {"offloaded": "", "offloaded_static": "cache=static"}[word]
    assert result.cache.total_bytes == ask(config, tokens, args=plain, sequences=sequences).cache.total_bytes
    held = sum(e["bytes"] for e in result.allocations if e["kind"] in ("cache", "state"))
    assert held == result.cache.total_bytes
    assert {e["place"] for e in result.allocations} <= {"gpu:0", "host"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_uniform_model_has_two_layers_on_the_device(version):
    result = ask(PLAIN, 100, version=version, args="cache=offloaded", sequences=2)
    layer = 2 * 100 * ROW
    assert sizes(result) == {"cache.next": layer, "cache.in_use": layer, "cache.offloaded": 3 * layer}
    assert parts(result)["cache.offloaded"]["place"] == "host"
    assert "cache_offloaded" in codes(result)


def test_the_largest_pair_is_shown():
    """Two full layers follow each other in no place: one of 100 rows, and a window (15 kept, 16 read)."""
    shown = sizes(ask(MIXED, 100, args="cache=offloaded"))
    assert shown["cache.next"] + shown["cache.in_use"] == (100 + 16) * ROW
    assert shown["cache.next"] + shown["cache.offloaded"] == (2 * 100 + 4 * 15) * ROW


@pytest.mark.parametrize("version", VERSIONS)
def test_a_static_cache_keeps_its_sliding_layers(version):
    shown = sizes(ask(MIXED, 50, version=version, args="cache=offloaded_static max_cache_len=64"))
    full = 64 * ROW
    resident = 4 * 16 * ROW
    assert shown == {
        "cache.next": full,
        "cache.in_use": full,
        "cache.resident": resident,
        "cache.offloaded": full,
    }


def test_what_other_layers_read_stays_on_the_device():
    """Layers 2 (a window) and 3 are read by 4 and 5: both are in use while layer 0 is fetched."""
    shown = parts(ask(SHARING, 100, args="cache=offloaded"))
    assert shown["cache.in_use"]["bytes"] == (16 + 100) * ROW
    assert shown["cache.next"]["bytes"] == 100 * ROW
    older = parts(ask(SHARING, 100, args="cache=offloaded", version="4.57.3"))
    assert older["cache.in_use"]["bytes"] == (100 + 16 + 100) * ROW
    assert older["cache.next"]["bytes"] == 100 * ROW


def test_layers_with_a_state_alone_stay():
    shown = parts(ask(HYBRID, 100, args="cache=offloaded"))
    assert shown["state.resident"]["kind"] == "state"
    # One full layer: there is no next, and its own tensors are on the host while its copy is read.
    assert set(shown) == {"cache.in_use", "cache.offloaded", "state.resident"}
    assert shown["cache.in_use"]["bytes"] == shown["cache.offloaded"]["bytes"] == 100 * ROW


def test_a_state_beside_attention_moves_with_it():
    result = ask(BOTH, 100, args="cache=offloaded")
    shown = sizes(result)
    assert set(shown) == {"cache.next", "cache.in_use", "cache.offloaded"}
    assert shown["cache.in_use"] == 100 * ROW
    assert 4 * shown["cache.next"] == result.cache.total_bytes


def test_an_index_moves_with_a_growing_layer_only():
    config = {
        **LATENT,
        "model_type": "deepseek_v32",
        "index_head_dim": 128,
        "index_n_heads": 64,
        "index_topk": 64,
    }
    assert "cache.resident" not in sizes(ask(config, 100, args="cache=offloaded"))
    assert sizes(ask(config, 100, args="cache=offloaded_static"))["cache.resident"] == 61 * 100 * 128 * 2


def test_a_prompt_is_not_alive_on_the_device():
    assert "prompt_alive" in codes(ask(SLIDING, 200))
    assert "prompt_alive" not in codes(ask(SLIDING, 200, args="cache=offloaded"))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("args", ["cache=offloaded", "cache=offloaded_static max_cache_len=900"])
def test_explained_step_by_step(lang, args):
    result = kvgauge.explain(MIXED, context=800, engine="transformers", engine_args=args, lang=lang)
    steps = {step.id: step for step in result.steps}
    places = {name: step for name, step in steps.items() if name.startswith("place.")}
    assert set(places) == {"place.gpu.0", "place.host"}
    for step in places.values():
        assert step.value_bytes == sum(step.symbols.values())
        assert "llama" not in step.source
        assert "micro" not in step.text
    assert not any("llama.cpp" in step.source for step in result.steps)


@pytest.mark.parametrize(
    ("config", "version", "args"),
    [
        (SLIDING, "5.24.0", "cache=offloaded_static"),
        (HYBRID, "4.57.3", "cache=offloaded"),
        (BOTH, "5.15", "cache=offloaded_static"),
        (COMPRESSED, "5.24.0", "cache=offloaded"),
        (GRIFFIN, "5.24.0", "cache=offloaded"),
        ("openai/whisper-large-v3", "5.24.0", "cache=offloaded"),
    ],
)
def test_what_is_refused(config, version, args):
    with pytest.raises(FeatureUnsupportedError) as caught:
        ask(config, 64, version=version, args=args)
    for text in (caught.value.message, caught.value.hint):
        assert not english_left(chinese(text))


def test_several_gpus_are_refused():
    with pytest.raises(FeatureUnsupportedError, match="one GPU") as caught:
        ask(PLAIN, 64, args="cache=offloaded", tp=2)
    for text in (caught.value.message, caught.value.hint):
        assert not english_left(chinese(text))


def test_words_are_checked():
    with pytest.raises(InvalidRequestError, match="max_cache_len"):
        ask(PLAIN, 64, args="cache=offloaded max_cache_len=5")
    with pytest.raises(InvalidRequestError) as caught:
        ask(PLAIN, 64, args="cache=ofloaded")
    assert "offloaded" in caught.value.hint
