"""Why an allocation is as large as it is, in the language of whoever asks over HTTP."""

from __future__ import annotations

import re

import pytest

import kvgauge
from kvgauge.render.answer_json import fit_json, size_json
from kvgauge.render.messages import Texts

MODELS = ["Qwen/Qwen3-8B", "google/gemma-3-27b-it", "deepseek-ai/DeepSeek-V3.2", "Qwen/Qwen3.5-35B-A3B"]


def english(reasons):
    """Reasons that hold a sentence: formulas, names of dtypes and numbers have no language."""
    return [one for one in reasons if re.search(r"[a-z]{4,} [a-z]{3,}|\b(?!logits)[a-z]{4,}s\b", one)]


@pytest.mark.parametrize("engine", ["theory", "vllm", "sglang", "llama.cpp", "tensorrt-llm"])
@pytest.mark.parametrize("model", MODELS)
def test_reasons_are_in_the_language(model, engine):
    sized = kvgauge.size(model, engine=engine, sequences=2)
    found = {lang: size_json(sized, Texts(lang))["engine"]["allocations"] for lang in ("en", "zh")}
    assert english(one["because"] for one in found["en"])
    assert not english(one["because"] for one in found["zh"])
    assert [{**one, "because": ""} for one in found["en"]] == [{**one, "because": ""} for one in found["zh"]]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp"])
def test_reasons_of_a_fit_are_in_the_language(engine):
    answer = fit_json(kvgauge.fit("Qwen/Qwen3-8B", engine=engine, gpu="H200"), Texts("zh"), "gib")
    reasons = [one["because"] for device in answer["devices"] for one in device["allocations"]]
    assert reasons
    assert not english(reasons)
