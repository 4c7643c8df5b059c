"""What an address says, completely, and what is told of an address that is not understood."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from kvgauge.inventory import engines_answer


def fields(link: str) -> dict[str, list[str]]:
    return parse_qs(link.partition("#")[2].partition("?")[2], keep_blank_values=True)


def newest(engine: str) -> str:
    return next(row["newest_version"] for row in engines_answer()["engines"] if row["name"] == engine)


def copied_link(page) -> str:
    page.locator(".share button").first.click()
    page.locator(".share button", has_text="Copied").first.wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def test_a_link_states_what_the_answer_rests_on_though_it_is_the_default(visit):
    page = visit.go()
    assert fields(copied_link(page)) == {
        "model": ["Qwen/Qwen3-8B"],
        "context": ["32768"],
        "sequences": ["8"],
        "engine": ["vllm"],
        "version": [newest("vllm")],
        "target": ["gpu"],
        "gpu": ["H100"],
        "count": ["1"],
    }
    command = page.locator(".command code").last.inner_text()
    assert f"--engine vllm@{newest('vllm')}" in command


def test_a_link_of_a_comparison_states_its_models(visit):
    page = visit.go("#compare")
    link = fields(copied_link(page))
    assert link["models"] == ["Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-V3.2"]
    assert link["version"] == [newest("vllm")]
    assert "gpu" not in link


def test_a_version_that_is_named_stays(visit):
    page = visit.go("#fit?engine=vllm&version=0.19.0")
    assert fields(copied_link(page))["version"] == ["0.19.0"]


@pytest.mark.parametrize(
    ("place", "ignored"),
    [
        ("#fit?sequences=abc", ["sequences=abc"]),
        ("#fit?context=0.5&context=4096", ["context=0.5", "context=4096"]),
        ("#fit?count=&target=tpu", ["count=", "target=tpu"]),
        ("#fit?colour=red&constructor=1&__proto__=1", ["colour=red", "constructor=1", "__proto__=1"]),
        ("#fit?lang=fr", ["lang=fr"]),
        ("#buy?model=Qwen/Qwen3-8B", ["buy"]),
        ("#compare?" + "&".join(f"models=a/{at}" for at in range(7)), ["models=a/6"]),
        ("#fit?sequences=" + "9" * 5000, [("sequences=" + "9" * 5000)[:40]]),
    ],
)
def test_what_an_address_says_wrongly_is_told_until_the_question_changes(visit, place, ignored):
    page = visit.go(place)
    assert page.locator(".ignored code").all_inner_texts() == ignored
    page.get_by_role("slider", name="Sequences").focus()
    page.keyboard.press("ArrowRight")
    visit.settle()
    assert page.locator(".ignored").count() == 0


def test_a_share_that_is_no_number_is_told_by_the_library(visit):
    page = visit.go("#fit?utilization=most")
    assert "utilization" in page.inner_text(".problem")


def test_rows_and_lines_keep_their_numbers_beside_a_model_that_is_unknown(visit):
    page = visit.go("#compare?models=nosuch/model&models=Qwen/Qwen3-8B&models=google/gemma-3-27b-it")
    asked = page.locator(".models .line-mark").all_inner_texts()
    assert page.locator("table.compare .line-mark").all_inner_texts() == asked == ["1", "2", "3"]
    drawn = page.locator(".curve polyline").evaluate_all("all => all.map((one) => one.className.baseVal)")
    assert drawn == ["line line-1", "line line-2"]
    assert page.locator("svg.chart .label").all_text_contents() == ["2", "3"]
