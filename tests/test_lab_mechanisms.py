"""The lab's layers: their bytes are the core's, their forms give one output, whatever the shape."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge

np = pytest.importorskip("numpy")

from designs import ARTICLE  # noqa: E402
from kvgauge.lab.mechanisms.attention import AttentionShape  # noqa: E402
from kvgauge.lab.mechanisms.comparison import (  # noqa: E402
    ARTICLE_MODELS,
    SAMPLES,
    relative_difference,
    run_mechanism,
    run_models,
)
from kvgauge.lab.mechanisms.convolution import ConvolutionShape  # noqa: E402
from kvgauge.lab.mechanisms.delta import DeltaInputs, DeltaShape, delta_by_chunks, delta_by_steps  # noqa: E402
from kvgauge.lab.mechanisms.latent import LatentShape  # noqa: E402
from kvgauge.lab.mechanisms.mamba2 import SsmInputs, SsmShape, ssm_by_chunks, ssm_by_steps  # noqa: E402
from kvgauge.lab.mechanisms.scaling import divisor_of, scaled, text_path  # noqa: E402
from kvgauge.lab.mechanisms.shapes import config_of, layer_of  # noqa: E402
from kvgauge.lab.mechanisms.stacks import build_stack  # noqa: E402
from kvgauge.layers import Role  # noqa: E402

small = partial(st.integers, 1, 4)
even = small().map(lambda n: 2 * n)


@st.composite
def attention_shapes(draw):
    heads, group = draw(small()), draw(small())
    window = draw(st.none() | st.integers(1, 12))
    return AttentionShape(8, heads * group, heads, draw(even), window)


@st.composite
def delta_shapes(draw):
    heads, repeat = draw(small()), draw(small())
    return DeltaShape(8, heads, heads * repeat, draw(small()), draw(small()), draw(st.integers(2, 5)))


@st.composite
def ssm_shapes(draw):
    groups, repeat = draw(small()), draw(small())
    return SsmShape(8, groups * repeat, draw(small()), draw(small()), groups, draw(st.integers(2, 5)))


latent_shapes = st.builds(LatentShape, st.just(8), small(), small(), even, small(), small())
convolution_shapes = st.builds(ConvolutionShape, st.sampled_from([4, 8]), st.integers(2, 5))
shapes = st.one_of(attention_shapes(), delta_shapes(), ssm_shapes(), latent_shapes, convolution_shapes)


@settings(deadline=None, max_examples=60)
@given(shapes, st.sampled_from(["f32", "f16", "bf16"]), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_bytes_are_those_of_the_core_at_every_context(shape, dtype, runs):
    """Same shape, same bytes, each role for itself, before the first token and after any run of tokens."""
    layer = layer_of(shape, np.random.default_rng(0))
    cache, rng, tokens = layer.new_cache(dtype), np.random.default_rng(1), 0
    answer = kvgauge.size(config_of(shape, dtype), context=0, no_weights=True).cache
    assert cache.num_bytes == answer.bytes_at(0)
    for run in runs:
        layer.forward(rng.standard_normal((run, shape.hidden_size)).astype(np.float32), cache)
        tokens += run
        assert cache.num_bytes == answer.bytes_at(tokens)
        expected: dict[Role, int] = {}
        (group,) = answer.demand.groups
        for stream in group.streams:
            held = stream.row_bytes * stream.counted.rows(tokens)
            expected[stream.role] = expected.get(stream.role, 0) + held
        assert cache.bytes_by_role() == expected


@settings(deadline=None, max_examples=60)
@given(shapes, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_any_cut_of_the_tokens_gives_the_same_outputs(shape, runs):
    layer = layer_of(shape, np.random.default_rng(2))
    x = np.random.default_rng(3).standard_normal((sum(runs), shape.hidden_size)).astype(np.float32)
    whole = layer.forward(x, layer.new_cache("f32"))
    cache, cuts = layer.new_cache("f32"), np.cumsum([0, *runs])
    parts = [layer.forward(x[a:b], cache) for a, b in itertools.pairwise(cuts)]
    assert cache.num_tokens == len(x)
    assert relative_difference(whole, np.concatenate(parts)) < 1e-4


@settings(deadline=None, max_examples=40)
@given(latent_shapes, st.integers(1, 12))
def test_absorbed_and_decompressed_latents_agree(shape, tokens):
    layer = layer_of(shape, np.random.default_rng(4))
    x = np.random.default_rng(5).standard_normal((tokens, 8)).astype(np.float32)
    outputs = [layer.forward(x, layer.new_cache("f32"), absorbed=absorbed) for absorbed in (False, True)]
    assert relative_difference(*outputs) < 1e-4


def test_a_window_sees_no_further():
    layer = layer_of(AttentionShape(8, 4, 2, 4, window_tokens=3), np.random.default_rng(0))
    x = np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32)
    other = x.copy()
    other[:3] += 1  # positions 0 to 2 are out of sight of position 5 and later
    a, b = (layer.forward(v, layer.new_cache("f32")) for v in (x, other))
    assert np.array_equal(a[5:], b[5:])
    assert not np.allclose(a[4], b[4])


def test_attention_is_causal_and_groups_share():
    """A hand-made case: with one token the output is its own V, whatever the query."""
    shape = AttentionShape(8, 4, 2, 4)
    layer = layer_of(shape, np.random.default_rng(0))
    x = np.random.default_rng(1).standard_normal((1, 8)).astype(np.float32)
    value = (x @ layer.w_v).reshape(2, 4)
    expected = np.repeat(value, 2, axis=0).reshape(1, -1) @ layer.w_o
    assert np.allclose(layer.forward(x, layer.new_cache("f32")), expected, atol=1e-6)


def arrays(seed: int, *shape: int):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 20), small(), small(), small(), st.integers(1, 9), st.integers(0, 99))
def test_the_delta_rule_by_chunks(tokens, heads, keys, values, chunk, seed):
    k = arrays(seed, tokens, heads, keys)
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    inputs = DeltaInputs(
        arrays(seed + 1, tokens, heads, keys), k, arrays(seed + 2, tokens, heads, values),
        -np.abs(arrays(seed + 3, tokens, heads)), np.abs(np.tanh(arrays(seed + 4, tokens, heads))),
    )  # fmt: skip
    start = arrays(seed + 5, heads, keys, values)
    stepped, by_chunks = delta_by_steps(inputs, start), delta_by_chunks(inputs, start, chunk)
    for a, b in zip(stepped, by_chunks, strict=True):
        assert np.allclose(a, b, atol=1e-4)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 20), small(), small(), small(), st.integers(1, 9), st.integers(0, 99))
def test_the_state_space_recurrence_by_chunks(tokens, heads, width, size, chunk, seed):
    inputs = SsmInputs(
        arrays(seed, tokens, heads, width), arrays(seed + 1, tokens, heads, size),
        arrays(seed + 2, tokens, heads, size), -np.abs(arrays(seed + 3, tokens, heads)),
    )  # fmt: skip
    start = arrays(seed + 4, heads, size, width)
    stepped, by_chunks = ssm_by_steps(inputs, start), ssm_by_chunks(inputs, start, chunk)
    for a, b in zip(stepped, by_chunks, strict=True):
        assert np.allclose(a, b, atol=1e-4)


def test_the_delta_rule_recalls_what_it_was_told():
    """Without decay and at full strength the state answers a key with its last value (orthogonal keys)."""
    keys = np.eye(4, dtype=np.float32)[:, None]
    values = arrays(0, 4, 1, 3)
    ones = np.ones((4, 1), np.float32)
    _, state = delta_by_steps(
        DeltaInputs(keys, keys, values, 0 * ones, ones), np.zeros((1, 4, 3), np.float32)
    )
    assert np.allclose(state[0], values[:, 0], atol=1e-6)


@pytest.mark.parametrize("shape", SAMPLES, ids=lambda shape: type(shape).__name__)
def test_samples_run_and_agree(shape):
    row = run_mechanism(shape, 20)
    assert (row.held_bytes, row.num_contexts_equal) == (row.core_bytes, 20)
    assert row.difference < 1e-4
    assert row.absorbed_difference is None or row.absorbed_difference < 1e-4


def test_the_four_models_of_the_article():
    """The layers that its table counts, the ratios that it gives, and the state that it leaves out."""
    rows = run_models(list(ARTICLE.values()), num_tokens=3)
    assert [row.layers for row in rows] == [
        {"gqa": 48}, {"mla": 47}, {"gated_delta_net": 30, "gqa": 10}, {"mamba2": 23, "none": 23, "gqa": 6},
    ]  # fmt: skip
    assert all((row.held_bytes, row.num_contexts_equal) == (row.core_bytes, 3) for row in rows)
    assert [round(100 * (1 - row.cache_ratio)) for row in rows] == [0, 45, 79, 94]
    assert [int(row.cache_bytes_per_token) for row in rows] == [98_304, 54_144, 20_480, 6_144]
    assert [row.state_bytes for row in rows] == [0, 0, 64_389_120, 49_082_368]
    # Widths divided by 16 divide what grows by 16: the executed ratios are the true ones.
    assert all(16 * row.growth_bytes_per_token == row.cache_bytes_per_token for row in rows)


def test_the_catalogue_knows_the_articles_models():
    assert [kvgauge.load(name, offline=True).architecture.num_layers for name in ARTICLE_MODELS] == [
        48,
        47,
        40,
        52,
    ]


@pytest.mark.parametrize(
    "name",
    [
        "LiquidAI/LFM2-1.2B",
        "openai/gpt-oss-20b",
        "openai-community/gpt2",
        "ibm-granite/granite-4.0-h-350m",
        "google/gemma-3-27b-it",
    ],
)
def test_other_patterns_run(name):
    (row,) = run_models([name], num_tokens=2)
    assert (row.held_bytes, row.num_contexts_equal) == (row.core_bytes, 2)


@pytest.mark.parametrize(
    "name", ["deepseek-ai/DeepSeek-V4-Flash", "moonshotai/Kimi-K3", "deepseek-ai/DeepSeek-V3.2"]
)
def test_what_the_lab_has_no_layer_for_is_refused(name):
    with pytest.raises(kvgauge.KvgaugeError) as caught:
        run_models([name])
    assert caught.value.code == "feature_unsupported"


@pytest.mark.parametrize("tokens", [0, 10**6])
def test_lengths_are_bounded(tokens):
    with pytest.raises(kvgauge.KvgaugeError, match="1 to 512"):
        run_models(num_tokens=tokens)


def test_scaling_keeps_turned_widths_even():
    config = {"head_dim": 24, "hidden_size": 96, "num_attention_heads": 4}
    assert divisor_of(config) == 4
    assert scaled(config, 4) == {"head_dim": 6, "hidden_size": 24, "num_attention_heads": 4}


def test_a_stack_is_its_layers_in_order():
    config = ARTICLE["Qwen3.5-35B-A3B"]
    path = text_path(kvgauge.load(config).architecture)
    assert path == ("text_config",)
    stack = build_stack(scaled(config, 16, path))
    assert [layer.mixer.word for layer in stack.layers[:4]] == ["gated_delta_net"] * 3 + ["gqa"]


WORDS = {
    "full": {"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8},
    "latent": {"model_type": "deepseek_v3", "num_attention_heads": 4, "num_key_value_heads": 4, "kv_lora_rank": 16,
               "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8},
    "mamba2": {"model_type": "nemotron_h", "hybrid_override_pattern": "MM", "mamba_num_heads": 4, "mamba_head_dim": 4,
               "ssm_state_size": 8, "n_groups": 2, "conv_kernel": 4},
    "delta": {"model_type": "qwen3_next", "layer_types": ["linear_attention"] * 2, "linear_num_key_heads": 2,
              "linear_num_value_heads": 4, "linear_key_head_dim": 4, "linear_value_head_dim": 4,
              "linear_conv_kernel_dim": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8},
}  # fmt: skip
junk = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 40), st.integers(10**5, 10**12), st.floats(), st.text(max_size=3),
    st.lists(st.integers(0, 9), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip


@settings(deadline=None, max_examples=120)
@given(st.sampled_from(sorted(WORDS)), st.data())
def test_damaged_configs_run_or_are_refused(kind, data):
    """One or two fields hold anything: the layer runs and its bytes are the core's, or one error says why not."""
    config = {"num_hidden_layers": 2, "hidden_size": 32, "torch_dtype": "bfloat16", **WORDS[kind]}
    fields = sorted(set(config) - {"model_type", "num_hidden_layers"})
    for name in data.draw(st.lists(st.sampled_from(fields), min_size=1, max_size=2)):
        config[name] = data.draw(junk)
    try:
        (row,) = run_models([config], num_tokens=2, context=64)
    except kvgauge.KvgaugeError:
        return
    assert (row.held_bytes, row.num_contexts_equal) == (row.core_bytes, 2)


def test_what_is_too_large_to_run_is_refused():
    config = {"num_hidden_layers": 60, "hidden_size": 65_536, **WORDS["full"], "head_dim": 4096}
    with pytest.raises(kvgauge.KvgaugeError, match="too many to run here"):
        run_models([config])
