"""What ``engines`` lists: every version of a table of rules has a rule in both languages, with its source."""

from __future__ import annotations

import json
import re

import pytest

from kvgauge.cli.app import execute
from kvgauge.data import read_data
from kvgauge.engines.index import ENGINES
from kvgauge.inventory import engines_answer, rules_of

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("name", ENGINES)
def test_each_version_has_a_rule(name):
    found = rules_of(name)
    assert tuple(rule.since for rule in found) == ENGINES[name].versions
    for rule in found:
        assert rule.source
        assert CHINESE.search(rule.texts["zh"])
        assert not CHINESE.search(rule.texts["en"])
        assert rule.texts["en"]


@pytest.mark.parametrize("name", ENGINES)
def test_figures_are_the_same_in_both_languages(name):
    for rule in rules_of(name):
        english, chinese = (set(re.findall(r"\d[\d.,]*\d|\d", rule.texts[lang])) for lang in ("en", "zh"))
        assert english == chinese


def test_no_engine_is_missing_in_the_table():
    assert set(json.loads(read_data("engine_rules.json"))) == set(ENGINES)


def test_json_has_them(capsys):
    assert execute(["engines", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == engines_answer()
    vllm = next(engine for engine in listed["engines"] if engine["name"] == "vllm")
    assert {"since", "rule", "source"} == set(vllm["rules"][0])


@pytest.mark.parametrize(("lang", "words"), [("en", "printed tokens"), ("zh", "打印的 token 数")])
def test_text_has_them(lang, words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert execute(["engines", "--lang", lang]) == 0
    assert words in capsys.readouterr().out
