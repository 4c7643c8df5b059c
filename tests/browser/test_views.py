"""The page in a real browser: each view's main path, in both languages, both themes, narrow and wide."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import kvgauge

LOG = Path(__file__).parents[1] / "logs/vllm_0.19.0_tp2.log"
SCREENS = {
    "wide": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "narrow": {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
    "huge": {"viewport": {"width": 3840, "height": 2160}, "color_scheme": "dark"},
}
VIEWS = {
    "fit": "#fit",
    "size": "#fit?target=size&model=google/gemma-3-27b-it",
    "short": "#fit?model=meta-llama/Llama-3.1-70B-Instruct&count=2&context=131072",
    "ranks": "#fit?model=deepseek-ai/DeepSeek-V3.2&gpu=H200&count=8",
    "host": "#fit?model=Qwen/Qwen3-8B&engine=llama.cpp&gpu=RTX+4090",
    "error": "#fit?model=nosuch/model",
    "compare": "#compare?models=Qwen/Qwen3-8B&models=google/gemma-3-27b-it&models=nosuch/model",
    "verify": "#verify",
    "plan": "#plan?only=L40S",
    "walk": "#learn?step=2",
    "activations": "#learn?topic=activations",
}
screens = pytest.mark.parametrize("visit", SCREENS.values(), ids=SCREENS, indirect=True)


def _keep(page, name: str) -> None:
    """Keep a picture to look at, in the folder that SCREENSHOTS names."""
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@screens
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_are_accessible_and_fit_the_screen(visit, axe, view, language):
    place = VIEWS[view]
    page = visit.go(f"{place}{'&' if '?' in place else '?'}lang={language}")
    if view == "verify":
        page.fill("#log", LOG.read_text())
        page.wait_for_selector("table.verify")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.evaluate("document.documentElement.lang") == {"en": "en", "zh": "zh-CN"}[language]
    _keep(page, f"{view}-{language}-{page.viewport_size['width']}")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    serious = [
        (rule["id"], node["target"], node.get("failureSummary", "")[:300])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"][:3]
    ]
    assert serious == []


def test_fit_answers_what_the_library_answers(visit):
    page = visit.go("#fit?model=Qwen/Qwen3-8B&context=16384&sequences=4&gpu=H100")
    expected = kvgauge.fit("Qwen/Qwen3-8B", context=16384, sequences=4, gpu="H100", engine="vllm").to_dict()
    assert expected["verdict"]["sentence"] in page.inner_text(".verdict")
    assert expected["launch_command"] in page.inner_text(".command code")
    capacity = f"{expected['kv_pool']['capacity_tokens']:,} tokens"
    assert capacity in page.inner_text(".change")


def test_slider_evaluates_terms_exactly_before_the_server_answers(visit):
    page = visit.go("#fit?target=size&model=google/gemma-3-27b-it&engine=vllm&sequences=3")
    page.route("**/api/v1/size", lambda route: None)  # the server never answers again
    slider = page.get_by_role("slider", name="Context")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    shown = page.input_value(".slider input.text >> nth=0")
    tokens = int(shown.replace(",", ""))
    assert tokens != 32768
    cache = kvgauge.size("google/gemma-3-27b-it", context=32768, sequences=3, engine="vllm").cache
    title = page.get_attribute(".verdict h1 .num", "title")
    assert title == f"{3 * cache.bytes_at(tokens):,} B"
    page.unroute_all(behavior="ignoreErrors")


def test_bars_follow_the_slider_before_the_server_answers(visit):
    load = {"model": "deepseek-ai/DeepSeek-V3.2", "engine": "vllm", "tp": 8}
    page = visit.go("#fit?model=deepseek-ai/DeepSeek-V3.2&gpu=H200&count=8&sequences=3")
    page.route("**/api/v1/*", lambda route: None)
    page.get_by_role("slider", name="Context").focus()
    page.keyboard.press("ArrowLeft")
    tokens = int(page.input_value(".slider input.text >> nth=0").replace(",", ""))
    assert tokens < 32768
    held = kvgauge.size(context=tokens, sequences=3, **load).cache.per_rank_bytes[0]
    cache = page.locator(".legend li", has_text="Cache of this load").locator(".num")
    assert cache.get_attribute("title") == f"{held:,} B"
    page.unroute_all(behavior="ignoreErrors")


def test_every_number_opens_its_derivation(visit):
    page = visit.go("#fit?model=Qwen/Qwen3.5-35B-A3B&gpu=H200&count=2")
    numbers = page.locator(".answer .num")
    assert numbers.count() > 20
    for at in range(0, numbers.count(), 3):
        number = numbers.nth(at)
        text = number.inner_text()
        number.click()
        page.wait_for_selector("dialog.drawer[open] .drawer-value")
        assert page.inner_text(".drawer-value") == text
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog.drawer", state="hidden")
        assert page.evaluate("document.activeElement.classList.contains('num')")
    page.locator(".legend .num").first.click()
    page.wait_for_selector(".drawer .step .formula-line")
    assert "Source:" in page.inner_text(".drawer")


PERMALINKS = [
    "#fit?model=google/gemma-3-27b-it&context=65536&sequences=3&kv=fp8&engine=sglang&gpu=H200&count=2",
    "#fit?target=memory&memory=48GiB&model=Qwen/Qwen3-8B&engine=llama.cpp&weights=q4_k_m&lang=zh",
    "#compare?context=65536&models=Qwen/Qwen3-8B&models=Qwen/Qwen3-32B",
]


@pytest.mark.parametrize("place", PERMALINKS)
def test_a_link_gives_the_same_view(visit, place):
    page = visit.go(place)
    first = page.inner_text(".answer")
    page.locator(".share button").first.click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(visit.address)
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".answer")
    visit.settle()
    assert page.inner_text(".answer") == first
    assert page.evaluate("location.href") == link


def test_the_address_follows_and_back_goes_back(visit):
    page = visit.go("#fit?model=Qwen/Qwen3-8B")
    page.get_by_role("navigation").get_by_role("link", name="Compare").click()
    assert page.evaluate("location.hash").startswith("#compare")
    page.go_back()
    page.wait_for_selector("form.ask .segments")
    assert page.evaluate("location.hash").startswith("#fit")


def test_language_and_theme_keep_the_question(visit):
    page = visit.go("#fit?model=Qwen/Qwen3-32B&context=8192&sequences=2")
    page.get_by_role("button", name="中文").click()
    visit.settle()
    assert page.input_value("input[role=combobox] >> nth=0") == "Qwen/Qwen3-32B"
    assert "8,192" in page.input_value(".slider input.text >> nth=0")
    assert re.search("[\u4e00-\u9fff]", page.inner_text(".verdict"))
    page.get_by_role("button", name="深色").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="浅色").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.reload()
    visit.settle()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"


def test_copies(visit):
    page = visit.go("#fit?model=Qwen/Qwen3-8B&gpu=H100&count=2")
    copied = {}
    for name in ("Command", "JSON", "Markdown"):
        page.locator(".share").get_by_role("button", name=name).click()
        page.locator(".share button", has_text="Copied").last.wait_for()
        page.locator(".share button", has_text="Copied").last.wait_for(state="detached")
        copied[name] = page.evaluate("navigator.clipboard.readText()")
    assert copied["Command"].startswith("kvgauge fit Qwen/Qwen3-8B ")
    assert "--gpu H100:2" in copied["Command"]
    assert json.loads(copied["JSON"])["schema"] == "kvgauge.fit/1"
    assert "Qwen/Qwen3-8B" in copied["Markdown"]
    assert copied["Markdown"].count("|") > 20
    page.locator(".command").first.get_by_role("button").click()
    page.wait_for_timeout(50)
    assert page.evaluate("navigator.clipboard.readText()").startswith("vllm serve Qwen/Qwen3-8B")


@pytest.mark.parametrize(("kind", "begins"), [("SVG", b"<svg"), ("PNG", b"\x89PNG")])
def test_charts_are_saved(visit, kind, begins):
    page = visit.go("#fit")
    for card in range(2):
        with page.expect_download() as waiting:
            page.locator(".chart-card").nth(card).get_by_role("button", name=re.compile(kind)).click()
        content = Path(waiting.value.path()).read_bytes()
        assert content.startswith(begins)
        assert len(content) > 1500


def test_a_chart_and_its_table_agree(visit):
    page = visit.go("#fit?model=Qwen/Qwen3-8B&gpu=H100")
    page.locator(".twin summary").first.click()
    expected = kvgauge.fit("Qwen/Qwen3-8B", context=32768, sequences=8, gpu="H100", engine="vllm").to_dict()
    table = page.locator(".twin table").first.inner_text()
    for allocation in expected["devices"][0]["allocations"]:
        assert f"{allocation['bytes']:,} B" in table


def test_a_walk_step_by_step(visit):
    from kvgauge.lab.walk import learn_walk

    page = visit.go("#learn?prompt=今天&newTokens=2")
    expected = learn_walk("今天", new_tokens=2).to_dict()
    for step in range(1, 7):
        page.get_by_role("button", name="Next", exact=True).click()
        page.wait_for_function(f"() => location.hash.includes('step={step}')")
    share = expected["generation"]["steps"][0]["chosen"]["share"]
    page.locator(".twin summary").click()
    assert f"{100 * share:.1f} %" in page.inner_text(".twin table")
    assert page.get_by_role("button", name="Next", exact=True).is_disabled()
    page.locator(".share button").nth(1).click()
    assert page.evaluate("navigator.clipboard.readText()") == "kvgauge learn walk '今天' --new-tokens 2"


def test_every_topic_is_shown(visit):
    visit.page.set_default_timeout(60_000)  # some of them are real work
    page = visit.go("#learn")
    page.wait_for_selector(".topics button")
    names = page.locator(".topics button")
    for at in range(names.count()):
        names.nth(at).click()
        visit.settle()
        page.wait_for_selector(".answer .card")
        assert page.locator(".answer .problem").count() == 0
        assert page.locator(".answer svg.chart, .answer table, .answer img, .answer form").count() > 0


def test_an_exercise_is_checked_by_the_library(visit):
    page = visit.go("#learn?topic=exercises")
    first = page.locator(".exercise").first
    first.get_by_role("textbox").fill("5")
    first.get_by_role("button").click()
    assert "No: 15" in first.locator(".exercise-result").inner_text()
    first.get_by_role("textbox").fill("15")
    first.get_by_role("textbox").press("Enter")
    page.locator(".exercise.is-right").wait_for()


def test_six_models_are_compared_and_no_more(visit):
    names = [
        "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.2", "google/gemma-3-27b-it",
        "Qwen/Qwen3.5-35B-A3B", "openai/gpt-oss-120b",
    ]  # fmt: skip
    page = visit.go("#compare?context=32768&sequences=2&" + "&".join(f"models={name}" for name in names))
    field = page.get_by_role("combobox", name="Add a model")
    field.fill("Qwen/Qwen3-14B")
    field.press("Enter")
    visit.settle()
    assert field.count() == 0
    expected = kvgauge.compare(
        [*names, "Qwen/Qwen3-14B"], context=32768, sequences=2, engine="vllm"
    ).to_dict()
    titles = page.locator("table.compare td.strong .num")
    assert [titles.nth(at).get_attribute("title") for at in range(6)] == [
        f"{row['cache']['total_bytes']:,} B" for row in expected["rows"]
    ]
    page.get_by_role("button", name="Remove Qwen/Qwen3-8B").click()
    visit.settle()
    assert page.locator("table.compare tbody tr").count() == 5


def test_paper(visit):
    page = visit.go("#fit")
    page.emulate_media(media="print")
    assert page.locator(".left").is_hidden()
    assert page.locator(".share").is_hidden()
    assert page.locator(".verdict").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_a_plan_is_decided_and_looked_at_closer(visit):
    page = visit.go("#fit?model=Qwen/Qwen3-8B&sequences=8")
    page.get_by_role("radio", name="What to buy?").check()
    page.wait_for_selector(".options .option")
    visit.settle()
    expected = kvgauge.plan("Qwen/Qwen3-8B", context=32768, sequences=8, engine="vllm").to_dict()
    names = page.locator(".option h3").all_inner_texts()
    assert names == [
        f"{one['num_gpus']} × {one['gpu']}" if one["num_gpus"] > 1 else one["gpu"]
        for one in expected["options"]
    ]
    steps = page.locator("svg.tree .node").count()
    assert steps == len(expected["decision_path"])
    assert page.locator("svg.tree .knot-last").count() == 1
    page.locator(".option").first.get_by_role("button", name="Look closer").click()
    visit.settle()
    assert expected["options"][0]["verdict"]["sentence"] in page.inner_text(".verdict")
