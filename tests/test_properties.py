"""Invariants that hold for every mechanism, over random models."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvgauge
from kvgauge.workload import pipeline_stages
from strategies import FAMILIES, contexts, models

family_names = pytest.mark.parametrize("family", FAMILIES)


@family_names
@given(data=st.data(), context=contexts, more=st.integers(0, 5000))
def test_bytes_never_fall_as_context_grows(family, data, context, more):
    model = kvgauge.load(data.draw(FAMILIES[family]))
    smaller = kvgauge.size(model, context=context, encoder_tokens=7).cache.total_bytes
    assert smaller <= kvgauge.size(model, context=context + more, encoder_tokens=7).cache.total_bytes


@family_names
@given(data=st.data(), context=contexts, sequences=st.integers(1, 300))
def test_bytes_are_linear_in_sequences(family, data, context, sequences):
    model = kvgauge.load(data.draw(FAMILIES[family]))
    one = kvgauge.size(model, context=context).cache
    many = kvgauge.size(model, context=context, sequences=sequences).cache
    assert many.total_bytes == sequences * one.total_bytes
    assert many.bytes_per_sequence == one.bytes_per_sequence == one.total_bytes


@family_names
@given(data=st.data(), context=contexts, sequences=st.integers(1, 9), prefix=st.integers(0, 20_000))
def test_layers_and_groups_add_up(family, data, context, sequences, prefix):
    config = data.draw(FAMILIES[family])
    answer = kvgauge.size(
        config, context=context, sequences=sequences, shared_prefix=min(prefix, context)
    ).cache
    assert sum(layer.total_bytes for layer in answer.layers) == answer.total_bytes
    assert sum(answer.group_bytes) == answer.total_bytes
    assert answer.per_rank_bytes == (answer.total_bytes,)
    assert {layer.index for layer in answer.layers} == set(range(answer.architecture.num_layers))


@family_names
@given(data=st.data(), context=contexts, other=contexts)
def test_terms_are_exact_at_every_context(family, data, context, other):
    model = kvgauge.load(data.draw(FAMILIES[family]))
    answer = kvgauge.size(model, context=context, encoder_tokens=11).cache
    direct = kvgauge.size(model, context=other, encoder_tokens=11).cache
    assert answer.bytes_at(other) == direct.bytes_per_sequence
    evaluated = answer.fixed_bytes_per_sequence
    for term in (t.to_dict() for t in answer.terms):
        end = other if term["to_tokens"] is None else min(other, term["to_tokens"])
        steps = Fraction(max(0, end - term["from_tokens"]), term["step_tokens"])
        rounded = -(-steps.numerator // steps.denominator) if term["rounding"] == "ceil" else steps // 1
        evaluated += term["bytes_per_step"] * rounded
    assert evaluated == direct.bytes_per_sequence


@given(config=models, context=contexts)
def test_growth_is_the_slope_of_the_bytes(config, context):
    answer = kvgauge.size(config, context=context, encoder_tokens=3).cache
    steps = 128  # every step of every mechanism divides it
    start = -(-context // steps) * steps
    straight = all(t.to_tokens is None or not context < t.to_tokens < start + steps for t in answer.terms)
    if straight:
        rise = answer.bytes_at(start + steps) - answer.bytes_at(start)
        assert rise == answer.growth_bytes_per_token * steps


@given(config=models, context=contexts, sequences=st.integers(2, 50), prefix=st.integers(0, 20_000))
def test_a_shared_prefix_saves_no_more_than_itself(config, context, sequences, prefix):
    prefix = min(prefix, context)
    options = {"context": context, "sequences": sequences, "encoder_tokens": 5}
    plain = kvgauge.size(config, **options).cache
    shared = kvgauge.size(config, shared_prefix=prefix, **options).cache
    one = kvgauge.size(config, context=context, encoder_tokens=5).cache.total_bytes
    assert one <= shared.total_bytes <= plain.total_bytes
    growing = plain.bytes_per_sequence - plain.fixed_bytes_per_sequence
    assert plain.total_bytes - shared.total_bytes <= (sequences - 1) * growing
    if prefix == 0:
        assert shared.total_bytes == plain.total_bytes


@given(
    kv_heads=st.sampled_from([1, 2, 4, 8]), tensor_ranks=st.sampled_from([1, 2, 4, 8, 16]), context=contexts
)
def test_kv_heads_are_divided_then_replicated(kv_heads, tensor_ranks, context):
    config = {"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 16, "hidden_size": 256,
              "num_key_value_heads": kv_heads, "head_dim": 16}  # fmt: skip
    answer = kvgauge.size(config, context=context, tp=tensor_ranks).cache
    on_rank = answer.total_bytes * max(1, kv_heads // tensor_ranks) // kv_heads
    assert answer.per_rank_bytes == (on_rank,) * tensor_ranks


@given(data=st.data(), tensor_ranks=st.sampled_from([1, 2, 4, 8]), context=contexts)
def test_latents_records_and_indexes_are_replicated(data, tensor_ranks, context):
    config = data.draw(st.one_of(FAMILIES["latent"], FAMILIES["compressed"]))
    answer = kvgauge.size(config, context=context, tp=tensor_ranks).cache
    assert answer.per_rank_bytes == (answer.total_bytes,) * tensor_ranks


@given(config=models, context=contexts, stages=st.integers(1, 12))
def test_pipeline_stages_hold_every_layer_once(config, context, stages):
    try:
        answer = kvgauge.size(config, context=context, pp=stages).cache
    except kvgauge.KvgaugeError as error:
        assert error.code == "feature_unsupported"
        assert stages > kvgauge.load(config).architecture.num_layers
        return
    assert len(answer.per_rank_bytes) == stages
    assert sum(answer.per_rank_bytes) == answer.total_bytes


@given(layers=st.integers(1, 300), stages=st.integers(1, 300))
def test_pipeline_stages_cover_the_layers(layers, stages):
    cut = pipeline_stages(layers, stages)
    assert [i for stage in cut for i in stage] == list(range(layers))
    sizes = [len(stage) for stage in cut]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("model", "tensor_ranks", "named"),
    [
        ("Qwen/Qwen3-8B", 3, "32 attention heads"),
        ("microsoft/phi-4", 4, "10 KV heads"),
        ("Qwen/Qwen3.5-35B-A3B", 32, "attention heads"),
    ],
)
def test_indivisible_tensor_parallelism_is_refused_with_the_reason(model, tensor_ranks, named):
    with pytest.raises(kvgauge.KvgaugeError, match=named) as caught:
        kvgauge.size(model, tp=tensor_ranks)
    assert caught.value.code == "feature_unsupported"
    assert "--tp" in caught.value.hint


def test_per_rank_bytes_equal_vllm_0_33_layer_specs():
    # vLLM 0.33.0 on H100: bytes a token of all attention layers on one rank, bf16; state bytes a sequence on one rank.
    cases = [
        ("Qwen/Qwen3.5-35B-A3B", 8, 10_240, 8_048_640),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 8, 3_072, 6_135_296),
        ("Qwen/Qwen3-30B-A3B", 8, 24_576, 0),
        ("deepseek-ai/DeepSeek-V3", 8, 70_272, 0),
    ]
    for model, ranks, per_token, state in cases:
        empty = kvgauge.size(model, context=0, tp=ranks, kv_dtype="bf16").cache.per_rank_bytes[0]
        one = kvgauge.size(model, context=1, tp=ranks, kv_dtype="bf16").cache.per_rank_bytes[0]
        assert (one - empty, empty) == (per_token, state), model


def test_decode_context_parallelism_shards_tokens():
    whole = kvgauge.size("deepseek-ai/DeepSeek-V3", context=10_001, tp=4)
    split = kvgauge.size("deepseek-ai/DeepSeek-V3", context=10_001, tp=4, dcp=4)
    assert sum(split.cache.per_rank_bytes) == whole.cache.total_bytes
    with pytest.raises(kvgauge.KvgaugeError, match="dcp"):
        kvgauge.size("Qwen/Qwen3-8B", tp=8, dcp=2)
