"""compare: the article's four models, the split of a ratio, error rows."""

from __future__ import annotations

from fractions import Fraction

import pytest

import kvgauge
from designs import ARTICLE, DESIGNS, LOADS
from kvgauge.comparison import design_of
from kvgauge.errors import InvalidRequestError, KvgaugeError

#: Growth a token, growing GiB at 32,768 tokens, change to the first in percent, state bytes.
FIGURES = {
    "Qwen3-30B-A3B": (98_304, Fraction(3), 0, 0),
    "GLM-4.7-Flash": (54_144, Fraction(54_144, 32_768), -45, 0),
    "Qwen3.5-35B-A3B": (20_480, Fraction(5, 8), -79, 64_389_120),
    "Nemotron-3-Nano-30B-A3B": (6_144, Fraction(3, 16), -94, 49_082_368),
}


def test_the_article_table():
    comparison = kvgauge.compare(ARTICLE.values(), context=32768)
    for row, (growth, gib, change, state) in zip(comparison.rows, FIGURES.values(), strict=True):
        assert row.result.cache.growth_bytes_per_token == growth
        assert Fraction(row.parts.growing_bytes, 1 << 30) == gib
        assert round((row.growing_ratio - 1) * 100) == change
        assert row.parts.state_bytes == state
        assert row.parts.growing_bytes + state == row.result.cache.total_bytes


@pytest.mark.parametrize("context", [1, 1024, 32768, 131072, 1 << 20])
def test_the_ranking_holds_at_any_context(context):
    comparison = kvgauge.compare(ARTICLE.values(), context=context)
    assert [row.rank for row in comparison.rows] == [4, 3, 2, 1]
    assert comparison.ranked()[0] is comparison.rows[3]


def test_state_outweighs_the_cache_of_a_short_context():
    short, long = (kvgauge.compare(ARTICLE.values(), context=t).rows[3].parts for t in (1024, 32768))
    assert short.state_bytes > short.growing_bytes
    assert long.state_bytes < long.growing_bytes


def test_axes_of_the_article():
    axes = [row.axes for row in kvgauge.compare(ARTICLE.values(), context=32768).rows]
    assert [a.entry for a in axes] == [Fraction(1, 8), Fraction(576, 10240), Fraction(1, 8), Fraction(1, 16)]
    assert [a.layers for a in axes] == [1, 1, Fraction(10, 40), Fraction(6, 52)]
    assert {a.held for a in axes} == {a.engine for a in axes} == {1}


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_axes_multiply_to_the_growing_cache_and_to_the_ratio(load):
    rows = kvgauge.compare(DESIGNS.values(), **load).rows
    split = [row for row in rows if row.axes]
    assert len(split) >= 0 if load.get("context") == 0 else len(split) >= len(DESIGNS) - 1
    for row in split:
        assert row.axes.product == row.parts.growing_bytes
        assert row.axes_to_first.product == row.growing_ratio


def test_axes_hold_for_an_engine_that_keeps_less():
    rows = kvgauge.compare([DESIGNS["mha"], DESIGNS["windows"]], context=4096, engine="transformers").rows
    assert rows[1].axes.engine < 1
    assert rows[1].axes_to_first.product == rows[1].growing_ratio


def test_windows_are_the_third_axis():
    axes = design_of(kvgauge.size(DESIGNS["windows"], context=4096)).axes
    assert axes.layers == 1
    assert axes.held == Fraction(4096 + 128, 2 * 4096)


def test_parts_add_up():
    for config in DESIGNS.values():
        result = kvgauge.size(config, context=1000, image_tokens=3)
        parts = kvgauge.compare([config], context=1000, image_tokens=3).rows[0].parts
        assert parts.growing_bytes + parts.state_bytes + parts.cross_bytes == result.cache.bytes_per_sequence
        assert parts.state_bytes + parts.cross_bytes == result.cache.fixed_bytes_per_sequence


def test_a_bad_model_is_a_row():
    rows = kvgauge.compare([ARTICLE["Qwen3-30B-A3B"], {"model_type": "llama"}, "no/such-model"]).to_dict()[
        "rows"
    ]
    assert [row["schema"] for row in rows] == ["kvgauge.size/1", "kvgauge.error/1", "kvgauge.error/1"]
    assert rows[2]["model"]["id"] == "no/such-model"
    assert rows[0]["comparison"]["rank"] == 1
    assert "layers" not in rows[0]["cache"]


def test_a_bad_first_model_leaves_ratios_out():
    rows = kvgauge.compare([{"model_type": "llama"}, ARTICLE["Qwen3-30B-A3B"]]).rows
    assert rows[1].ratio is rows[1].growing_ratio is rows[1].axes_to_first is None
    assert rows[1].result


def test_state_only_models_have_no_ratio_of_cache():
    first_recurrent = kvgauge.compare([DESIGNS["mamba1"], DESIGNS["mha"]])
    assert first_recurrent.rows[1].growing_ratio is None
    assert first_recurrent.rows[1].ratio > 1
    last_recurrent = kvgauge.compare([DESIGNS["mha"], DESIGNS["mamba1"]])
    assert last_recurrent.rows[1].growing_ratio == 0
    assert last_recurrent.rows[1].axes_to_first is None


@pytest.mark.parametrize("models", [[], "Qwen/Qwen3-8B"])
def test_a_list_of_models_is_needed(models):
    with pytest.raises(InvalidRequestError):
        kvgauge.compare(models)


def test_a_wrong_request_is_no_row():
    with pytest.raises(InvalidRequestError):
        kvgauge.compare(ARTICLE.values(), kv_dtype="nonsense")


def test_errors_are_listed():
    errors = kvgauge.compare([ARTICLE["Qwen3-30B-A3B"], {}]).errors
    assert len(errors) == 1
    assert isinstance(errors[0], KvgaugeError)
