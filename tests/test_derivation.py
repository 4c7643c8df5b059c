"""explain: every number opened, in two languages, with the fields behind it."""

from __future__ import annotations

import json
import string
from importlib import resources

import pytest

import kvgauge
from designs import ARTICLE, DESIGNS, LOADS
from kvgauge.arithmetic import evaluate
from kvgauge.errors import InvalidRequestError
from kvgauge.layers import LayerKind, Mechanism

TEXTS = {
    lang: json.loads(resources.files("kvgauge.data").joinpath(f"explanations/{lang}.json").read_text("utf-8"))
    for lang in ("en", "zh", "sources")
}


def leaves(node: object, path: str = "") -> dict[str, str]:
    if isinstance(node, str):
        return {path: node}
    return {p: text for key, value in node.items() for p, text in leaves(value, f"{path}/{key}").items()}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys_and_placeholders():
    english, chinese = leaves(TEXTS["en"]), leaves(TEXTS["zh"])
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        assert placeholders(text) == placeholders(chinese[key]), key
        assert text
        assert chinese[key]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_kind_and_mechanism_has_its_words(lang):
    assert {k.value for k in LayerKind} == set(TEXTS[lang]["kinds"])
    engines_own = {"padding", "draft", "unkept", "cells", "place", "place_offloading"}
    assert {m.value for m in Mechanism} == set(TEXTS[lang]["mechanisms"])
    assert set(TEXTS["sources"]) == set(TEXTS[lang]["mechanisms"]) | engines_own


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("design", DESIGNS)
def test_every_step_evaluates(design, load, lang):
    explanation = kvgauge.explain(DESIGNS[design], lang=lang, **load)
    for step in explanation.steps:
        assert evaluate(step.formula, step.symbols) == step.value_bytes, step
        for definition in step.definitions:
            assert evaluate(definition.formula, step.symbols) == step.symbols[definition.symbol]
        assert "{" not in step.title + step.text
        assert step.title
        assert step.text
        assert step.source
        assert set(step.symbol_meanings) >= set(step.symbols)


def test_every_number_of_the_answer_is_opened():
    for config in DESIGNS.values():
        result = kvgauge.size(config, context=5000, sequences=4, tp=2)
        values = {step.id: step.value_bytes for step in kvgauge.explain(result).steps}
        answer = result.to_dict()["cache"]
        assert values["total"] == answer["total_bytes"]
        assert values["per_sequence"] == answer["bytes_per_sequence"]
        assert values["fixed"] == answer["fixed_bytes_per_sequence"]
        assert values["per_rank"] == max(answer["per_rank_bytes"])
        for group in answer["groups"]:
            assert values[f"group.{group['name']}"] == group["bytes"]


@pytest.mark.parametrize(("design", "period"), [("mha", 1), ("compressed", 128)])
def test_growth_is_whole_bytes_over_its_period(design, period):
    result = kvgauge.size(DESIGNS[design], context=1024, kv_dtype="fp8_ds_mla" if period > 1 else None)
    growth = next(s for s in kvgauge.explain(result).steps if s.id == "growth")
    cache = result.cache
    assert growth.value_bytes == cache.bytes_at(1024 + period) - cache.bytes_at(1024)


def test_fields_and_options_stand_behind_the_symbols():
    steps = {s.id: s for s in kvgauge.explain(ARTICLE["Qwen3.5-35B-A3B"]).steps}
    full = steps["group.full"]
    assert full.symbol_paths == {
        "L": "text_config.layer_types",
        "H_kv": "text_config.num_key_value_heads",
        "D": "text_config.head_dim",
        "T": "--context",
        "B": "--sequences",
        "b": "text_config.dtype",
    }
    assert full.fields["text_config.num_key_value_heads"] == 2
    state = {d.symbol: d.formula for d in steps["group.recurrent"].definitions}
    assert state == {"S": "H_lv × D_lv × D_lk", "C": "2 × H_lk × D_lk + H_lv × D_lv"}


def test_mamba_states_are_made_of_their_fields():
    step = kvgauge.explain(ARTICLE["Nemotron-3-Nano-30B-A3B"]).steps[0]
    assert step.with_numbers == "23 × 1 × (524,288 × 4 + 6,144 × (4 - 1) × 2) = 49,082,368 B"
    assert {d.symbol: d.formula for d in step.definitions} == {
        "S": "H_m × P_m × N_m",
        "C": "H_m × P_m + 2 × G_m × N_m",
    }


def test_plain_attention_stands_beside():
    config = {
        **ARTICLE["Qwen3-30B-A3B"],
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
    }  # Qwen3-8B's shapes
    values = {s.id: s.value_bytes for s in kvgauge.explain(config, context=32768).steps}
    gib = 1 << 30
    assert (values["mha"], values["gqa"], values["mqa"]) == (18 * gib, 4.5 * gib, 18 * gib // 32)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ("mha", ["plain multi-head attention: every query head"]),
        ("Qwen3-30B-A3B", ["12.5 %", "32 query heads share 4 KV heads"]),
        ("GLM-4.7-Flash", ["one latent row of 1.12 KiB", "20.0 KiB of keys"]),
        ("Qwen3.5-35B-A3B", ["only 10 of 40 layers", "61.4 MiB of state"]),
        ("Nemotron-3-Nano-30B-A3B", ["only 6 of 52 layers", "46.8 MiB of state"]),
        ("windows", ["windows or compression"]),
        ("mamba1", ["No layer keeps rows"]),
    ],
)
def test_the_sentence_names_what_saves(design, words):
    step = kvgauge.explain(DESIGNS[design], context=32768).steps[-1]
    assert step.id == "why"
    for word in words:
        assert word in step.text


def test_an_engine_is_set_beside_theory():
    steps = {s.id: s for s in kvgauge.explain(DESIGNS["windows"], context=4096, engine="transformers").steps}
    assert steps["theory"].value_bytes == kvgauge.size(DESIGNS["windows"], context=4096).cache.total_bytes
    assert steps["total"].value_bytes < steps["theory"].value_bytes


def test_language_is_checked():
    with pytest.raises(InvalidRequestError):
        kvgauge.explain(DESIGNS["mha"], lang="fr")
