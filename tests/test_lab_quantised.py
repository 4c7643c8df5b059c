"""Quantised caches: bytes of real arrays against the core's table, errors against bounds that must hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvgauge

np = pytest.importorskip("numpy")

from kvgauge.dtypes import row_bytes  # noqa: E402
from kvgauge.lab.quantised.answer import learn_quantised  # noqa: E402
from kvgauge.lab.quantised.errors import compare_formats, relative_rms  # noqa: E402
from kvgauge.lab.quantised.formats import FORMATS, Scaling  # noqa: E402
from kvgauge.lab.quantised.samples import SampleShape, attend, make_sample  # noqa: E402
from kvgauge.layers import Role  # noqa: E402

BY_NAME = {form.name: form for form in FORMATS}


@pytest.mark.parametrize("name", BY_NAME)
@given(tokens=st.integers(0, 9), heads=st.integers(1, 5), width=st.integers(1, 6))
def test_bytes_are_those_of_the_core(name, tokens, heads, width):
    form = BY_NAME[name]
    width *= form.multiple
    values = np.random.default_rng(0).standard_normal((tokens, heads, width)).astype(np.float32)
    stored = form.encode(values)
    assert form.decode(stored).shape == values.shape
    if form.core_dtype is not None:
        assert stored.num_bytes == tokens * row_bytes(form.core_dtype, Role.KEY, heads, width)
    else:
        assert stored.num_bytes * 8 == values.size * form.coding.bits


@pytest.mark.parametrize("name", [n for n, form in BY_NAME.items() if form.core_dtype])
def test_bytes_are_those_of_size(name):
    shape = SampleShape(num_tokens=48, num_heads=4, num_kv_heads=2, head_dim=32)
    config = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 128, "num_attention_heads": 4,
              "num_key_value_heads": 2, "head_dim": 32, "torch_dtype": "bfloat16"}  # fmt: skip
    form, sample = BY_NAME[name], make_sample(shape)
    counted = form.encode(sample.keys).num_bytes + form.encode(sample.values).num_bytes
    answer = kvgauge.size(config, context=48, kv_dtype=form.core_dtype, no_weights=True)
    assert counted == answer.cache.total_bytes


# Half a step of the format relative to the largest of a group: what rounding may be off by at most.
STEPS = {"int8": 1 / 254, "int8_per_token_head": 1 / 254, "int4": 1 / 14, "int4_per_token_head": 1 / 14,
         "fp8_e4m3": 1 / 28, "fp8_per_token_head": 1 / 28, "fp8_e5m2": 1 / 14}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
@settings(deadline=None)
@given(seed=st.integers(0, 99), size=st.sampled_from([1e-3, 1.0, 1e4]))
def test_rounding_is_off_by_half_a_step_at_most(name, seed, size):
    form = BY_NAME[name]
    values = (size * np.random.default_rng(seed).standard_normal((5, 2, 8))).astype(np.float32)
    off = np.abs(form.decode(form.encode(values)) - values)
    axis = -1 if form.scaling is Scaling.TOKEN_HEAD else None
    largest = np.abs(values).max(axis=axis, keepdims=True)
    assert (off <= largest * STEPS[name] * 1.001).all()


@pytest.mark.parametrize("name", BY_NAME)
def test_zeros_stay_zeros(name):
    form = BY_NAME[name]
    values = np.zeros((2, 1, 16), np.float32)
    assert np.array_equal(form.decode(form.encode(values)), values)


def test_nvfp4_by_hand():
    """A block that is e2m1 already times a power of two comes back as it was; so does its zero neighbour."""
    block = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6] * 2, np.float32)
    values = np.concatenate([4 * block, 0 * block])[None, None]
    stored = BY_NAME["nvfp4"].encode(values)
    assert (stored.codes.shape, stored.scales.shape) == ((1, 1, 16), (1, 1, 2))
    assert np.allclose(BY_NAME["nvfp4"].decode(stored), values, rtol=1e-6)


def test_more_bits_and_finer_scales_err_less():
    rows = {row.name: row for row in compare_formats(make_sample(SampleShape()))}
    assert rows["f32"].output_error_both == 0
    both = {name: row.output_error_both for name, row in rows.items()}
    assert both["f16"] < both["bf16"] < both["int8_per_token_head"] < both["int8"] < both["int4"]
    assert both["fp8_e4m3"] < both["fp8_e5m2"]
    assert both["int4_per_token_head"] < both["int4"]
    assert both["nvfp4"] < both["int4_per_token_head"]
    # Large channels of the keys hurt formats that share a scale over a head; values have none.
    assert rows["int8"].output_error_keys > 3 * rows["int8"].output_error_values
    even = {row.name: row for row in compare_formats(make_sample(SampleShape(num_outliers=0)))}
    assert even["int8"].output_error_keys < 1.5 * even["int8"].output_error_values
    assert all(row.counted_bytes == row.core_bytes for row in rows.values() if row.core_bytes is not None)


def test_formats_that_a_width_does_not_fit_are_left_out():
    names = {row.name for row in compare_formats(make_sample(SampleShape(head_dim=9, num_outliers=1)))}
    assert "fp8_e4m3" in names
    assert not {"nvfp4", "int4"} & names


def test_attention_of_a_sample_is_softmax():
    sample = make_sample(SampleShape(num_tokens=5, num_heads=4, num_kv_heads=2, head_dim=3, num_outliers=1))
    out = attend(sample, sample.keys, sample.values)
    for position in range(5):  # head 2 is the first that shares KV head 1
        seen = slice(position + 1)
        scores = np.exp(sample.keys[seen, 1] @ sample.queries[position, 2] / np.sqrt(3))
        assert np.allclose(out[position, 2], scores @ sample.values[seen, 1] / scores.sum(), atol=1e-6)
    assert relative_rms(out - out, out) == 0


def test_layers_of_the_shipped_model_are_no_heads():
    *random, shipped = learn_quantised(tokens=4).samples
    assert [(rows.num_layers, rows.num_kv_heads) for rows in random] == [(1, 2), (1, 2)]
    assert (shipped.num_layers, shipped.num_kv_heads, shipped.head_dim) == (4, 2, 16)
