"""compare as text: the article's figures, layouts by width, splits."""

from __future__ import annotations

from fractions import Fraction

import pytest
from rich.cells import cell_len

import kvgauge
from designs import ARTICLE, DESIGNS
from kvgauge.render.compare import draw_comparison
from kvgauge.render.messages import Texts
from kvgauge.render.numbers import change_text, ratio_text
from kvgauge.render.view import View

NAMES = [
    "Qwen/Qwen3-30B-A3B",
    "zai-org/GLM-4.7-Flash",
    "Qwen/Qwen3.5-35B-A3B",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
]


def drawn(models, width=120, lang="en", **load) -> str:
    return draw_comparison(kvgauge.compare(models, **load), View(Texts(lang), "gib", width))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [24, 40, 79, 80, 100, 120])
def test_the_article_is_visible_at_any_width(width, lang):
    text = drawn(NAMES, width, lang)
    figures = "3.00 GiB,1.65 GiB,640 MiB,192 MiB,−45 %,−79 %,−94 %,61.4 MiB,46.8 MiB"
    for figure in figures.split(","):
        assert figure in text, figure
    assert max(map(cell_len, text.splitlines())) <= width
    for name in NAMES:
        owner, short = name.split("/")
        assert owner in text
        assert width < len(short) or short in text


def test_a_line_has_it_all():
    lines = {line.split()[0]: line.split() for line in drawn(NAMES, 140).splitlines() if line.split()[1:2]}
    nemotron = lines["nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"]
    shown = "6.00 KiB 192 MiB 46.8 MiB 239 MiB 58.8 GiB 0.0625 −94 % 1"
    assert " ".join(nemotron[2:]) == shown


@pytest.mark.parametrize(("width", "is_table"), [(120, True), (80, True), (78, False), (40, False)])
def test_layout_follows_the_width(width, is_table):
    text = drawn(NAMES, width)
    assert any(line.startswith("Model ") for line in text.splitlines()) == is_table
    assert ("Rank     4" in text) != is_table


def test_owners_stay_where_names_would_clash():
    same = {**ARTICLE["Qwen3-30B-A3B"], "_name_or_path": "one-organisation/model"}
    other = {**same, "_name_or_path": "another-organisation/model"}
    text = drawn([same, other], 54)
    assert not any(line.startswith("Model ") for line in text.splitlines())


def test_splits_say_why():
    text = drawn(NAMES)
    assert "× 0.450  each caching layer keeps 5.62 % (12.5 %)" in text
    assert "× 0.250  25.0 % (100 %) of the layers" in text
    assert "× 0.115  11.5 % (100 %) of the layers" in text
    assert "the engine" not in text


def test_windows_and_engines_are_factors():
    text = drawn([DESIGNS["mha"], DESIGNS["windows"]], context=4096, engine="transformers")
    assert "51.6 % (100 %) of the tokens" in text
    assert "the engine sets aside" in text


def test_contexts_that_differ_are_a_column():
    assert "Context" in drawn([NAMES[0], NAMES[2]], context="max")
    assert "Context" not in drawn([NAMES[0], NAMES[2]])


def test_state_and_cross_are_shown_where_there_are_any():
    assert "State" not in drawn([DESIGNS["mha"], DESIGNS["windows"]])
    text = drawn(["openai/whisper-large-v3", "Qwen/Qwen3-8B"], context=448, sequences=2)
    assert "Cross" in text
    assert "for all 2 sequences" in text


def test_a_model_without_growing_cache():
    text = drawn([DESIGNS["mha"], DESIGNS["mamba1"]])
    assert "−100 %" in text
    assert "keeps no growing cache" in text


def test_a_first_model_that_fails_leaves_ratios_out():
    text = drawn(["no/such-model", "Qwen/Qwen3-8B"])
    assert "error" in text
    assert "No ratios: no/such-model comes first and could not be sized." in text
    assert "%" not in text
    assert "Change" not in text
    assert "4.50 GiB" in text


def test_nothing_that_can_be_sized():
    assert "error" in drawn(["no/such-model", "no/such-other"])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (Fraction(0), "0 %"),
        (Fraction(-1), "−100 %"),
        (Fraction(-999, 1000), "−99.9 %"),
        (Fraction(1, 1000), "+0.1 %"),
        (Fraction(-1, 10**9), "−0.0000 %"),
        (Fraction(41), "+4,100 %"),
        (None, ""),
    ],
)
def test_changes(change, text):
    assert change_text(change) == text


def test_ratios():
    values = [Fraction(9, 20), Fraction(1, 10**6), Fraction(5000), Fraction(0)]
    assert [ratio_text(value) for value in values] == ["0.450", "1e-06", "5,000", "0"]
