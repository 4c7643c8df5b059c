"""``learn pipeline``: a well-formed drawing whose figures are those of ``size`` and ``learn activations``."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

import kvgauge
from kvgauge.lab.activations import learn_activations
from kvgauge.lab.pipeline import PAGE_TOKENS, learn_pipeline
from kvgauge.render.learn_pipeline import draw_pipeline
from kvgauge.render.messages import LANGUAGES, Texts
from kvgauge.render.view import View

MODELS = ["Qwen/Qwen3-8B", "google/gemma-3-27b-it", "openai/gpt-oss-20b", "meta-llama/Llama-3.1-70B-Instruct"]


def drawn(answer, lang="en"):
    return ET.fromstring(draw_pipeline(answer, View(Texts(lang), "gib", 80)))  # noqa: S314 - our own text


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("tokens", [1, 4096, 131072])
def test_the_cache_is_that_of_size(model, tokens):
    answer = learn_pipeline(model, tokens=tokens)
    assert answer.cache_bytes == kvgauge.size(model, context=tokens, no_weights=True).cache.total_bytes
    kept = answer.stages["cached_keys"].size_bytes + answer.stages["cached_values"].size_bytes
    assert kept == answer.layer_cache_bytes
    assert (answer.num_pages - 1) * answer.page_bytes < kept <= answer.num_pages * answer.page_bytes
    assert answer.page_bytes % PAGE_TOKENS == 0


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_stage_is_drawn_with_its_shape(lang):
    answer = learn_pipeline("Qwen/Qwen3-8B", tokens="32k")
    shown = " ".join(element.text or "" for element in drawn(answer, lang).iter())
    for stage in answer.stages.values():
        assert " × ".join(f"{side:,}" for side in stage.dimensions) in shown, stage.code
    assert "4.50 GiB" in shown
    assert Texts(lang)("pipeline_loop") in shown


def test_boxes_do_not_overlap():
    tree = drawn(learn_pipeline("Qwen/Qwen3-8B"))
    boxes = [e.attrib for e in tree.iter("{http://www.w3.org/2000/svg}rect") if e.attrib["class"] == "box"]
    places = [(int(b["x"]), int(b["y"]), int(b["width"]), int(b["height"])) for b in boxes]
    for n, (x, y, w, h) in enumerate(places):
        for a, b, c, d in places[n + 1 :]:
            assert x + w <= a or a + c <= x or y + h <= b or b + d <= y


def test_layers_of_other_shapes_are_said():
    assert "layers_not_drawn" in [note.code for note in learn_pipeline("google/gemma-3-27b-it").notes]
    assert not learn_pipeline("Qwen/Qwen3-8B").notes
    assert len(learn_activations("google/gemma-3-27b-it").groups) == 2


def test_hostile_names_are_text():
    config = dict(kvgauge.load("Qwen/Qwen3-8B").raw.config) | {"architectures": ["</svg><script>"]}
    answer = learn_pipeline(config)
    assert "<script" not in draw_pipeline(answer, View(Texts("en"), "gib", 80))
