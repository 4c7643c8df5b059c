"""A formula evaluates, exactly, to the bytes beside it, in every format and under every load."""

from __future__ import annotations

import pytest

import kvgauge
from designs import DESIGNS, LOADS
from kvgauge.arithmetic import evaluate, number_text, symbol_names, with_numbers
from kvgauge.dtypes import format_names
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.formulas import group_formula


def check(result: kvgauge.SizeResult) -> None:
    for demand, size in zip(result.cache.demand.groups, result.cache.group_bytes, strict=True):
        formula = group_formula(demand, result.cache.workload)
        assert evaluate(formula.formula, formula.symbols) == size, (demand.group.name, formula)
        assert set(symbol_names(formula.formula)) <= set(formula.symbols)
        for definition in formula.definitions:
            assert evaluate(definition.formula, formula.symbols) == formula.symbols[definition.symbol]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("load", LOADS, ids=str)
def test_formulas_evaluate_under_every_load(design, load):
    check(kvgauge.size(DESIGNS[design], **load))


@pytest.mark.parametrize("dtype", format_names())
def test_formulas_evaluate_in_every_format(dtype):
    sized = 0
    for config in DESIGNS.values():
        try:
            result = kvgauge.size(config, context=1000, sequences=3, kv_dtype=dtype)
        except (FeatureUnsupportedError, InvalidRequestError):
            continue  # this format does not hold these rows, and says so
        check(result)
        sized += 1
    assert sized


@pytest.mark.parametrize("mechanism", ["GLM-4.7-Flash", "Qwen3.5-35B-A3B"])
def test_formulas_evaluate_with_speculative_layers(mechanism):
    result = kvgauge.size(DESIGNS[mechanism], context=1000, mtp=1)
    assert any(d.group.name.startswith("mtp_") for d in result.cache.demand.groups)
    check(result)


def test_packed_latents_are_spelled_out():
    group = kvgauge.size(DESIGNS["index"], context=100, kv_dtype="fp8_ds_mla").cache_dict()["groups"][0]
    assert group["definitions"]["R"] == "r + ceil(r / 128) × 4 + d_rope × 2"
    assert group["symbols"]["R"] == 656


def test_a_scale_per_head_that_does_not_divide_stays_exact():
    config = {**DESIGNS["mha"], "head_dim": 96, "num_key_value_heads": 32}
    check(kvgauge.size(config, context=999, kv_dtype="fp8_per_token_head"))


def test_numbers_put_in():
    assert (
        with_numbers("L × min(T, W) × b", {"L": 2, "T": 32768, "W": 128, "b": 0.5})
        == "2 × min(32,768, 128) × 0.5"
    )
    assert number_text(2**60) == "1,152,921,504,606,846,976"


@pytest.mark.parametrize("text", ["L ×", "__import__('os')", "L.__class__", "unknown", "max", "2 ** 9"])
def test_only_formulas_are_evaluated(text):
    with pytest.raises(InvalidRequestError):
        evaluate(text, {"L": 1})
