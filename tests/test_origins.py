"""Where figures come from, in Chinese: every source that ships is said, names stay."""

from __future__ import annotations

import re

import pytest

from kvgauge.cli.app import execute
from kvgauge.inventory import engines_answer, gpus_answer
from kvgauge.render.messages.origins_zh import TABLE, origin_zh

#: English words that a name of a project, file or product does not end a source with.
WORDS = re.compile(
    r"\b(the|of|from|less|released|compared|start-up|logs|rule|label|memory|figures?|code|guess|price|run|texts)\b"
)


def sources(found: object) -> set[str]:
    if isinstance(found, dict):
        own = {value for key, value in found.items() if key == "source" and isinstance(value, str)}
        return own.union(*(sources(value) for value in found.values()))
    return set().union(*(sources(value) for value in found)) if isinstance(found, list) else set()


ALL = sorted(sources(engines_answer()) | sources(gpus_answer("")))


def test_there_are_sources():
    assert len(ALL) > 60


@pytest.mark.parametrize("source", ALL)
def test_a_source_is_said_in_chinese_and_its_names_stay(source):
    said = origin_zh(source)
    assert WORDS.search(said.replace("start-up-logs", "")) is None
    for name in re.findall(r"[\w.-]+/[\w./-]+(?:#\d+)?", source):
        assert name in said


@pytest.mark.parametrize("row", TABLE)
def test_every_row_is_needed(row):
    parts = [part for source in ALL for part in source.split("; ")]
    hole = ".{1,80}?".join(re.escape(text) for text in re.split(r"[{][0-9][}]", row))
    assert any(re.fullmatch(hole, part) for part in parts)


def test_what_is_no_source_of_ours_stays():
    assert origin_zh("a price list; 2026") == "a price list；2026"
    assert origin_zh("") == ""


def test_commands_say_sources_in_the_language_asked_for(capsys):
    for words in (["gpus", "H100"], ["engines"], ["plan", "Qwen/Qwen3-8B", "--gpu", "H100"]):
        assert execute([*words, "--lang", "zh"]) == 0
        shown = "".join(capsys.readouterr().out.split())
        assert "out-of-memory" not in shown
        assert "released" not in shown
        assert "ondemand,by" not in shown
