"""``kvgauge learn``: the list of topics, their help, what they refuse."""

from __future__ import annotations

import json
import re
import sys

import pytest

from kvgauge.cli.app import execute
from kvgauge.cli.arguments import in_order
from kvgauge.cli.completion import FILES, offers
from kvgauge.cli.topics import COMMANDS, OPTIONS, TOPICS
from kvgauge.render.messages import LANGUAGES, Texts


@pytest.fixture
def kv(capsys, monkeypatch):
    monkeypatch.setenv("KVGAUGE_LANG", "en")
    monkeypatch.setenv("COLUMNS", "80")

    def call(*argv: str) -> tuple[int, str, str]:
        code = execute(argv)
        return (code, *capsys.readouterr())

    return call


def test_the_topics_are_listed(kv):
    code, out, err = kv("learn")
    assert (code, err) == (0, "")
    assert all(f"kvgauge learn {name}" in out for name in TOPICS)
    listed = json.loads(kv("learn", "--json")[1])
    assert [topic["name"] for topic in listed["topics"]] == list(TOPICS)
    assert all(name in kv("learn", "--help")[1] for name in TOPICS)


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_topic_has_help_with_its_options(kv, name, lang):
    code, out, err = kv("learn", name, "--help", "--lang", lang)
    assert (code, err) == (0, "")
    words = set(re.findall(r"(?<![\w-])--?[\w-]+", out))
    assert {flag for row in TOPICS[name].options for flag in row.flags} <= words
    assert kv("help", "learn", name, "--lang", lang)[1] == out
    texts = Texts(lang)
    assert texts(f"help.verb.learn {name}") in " ".join(out.split()) or lang == "zh"
    assert all(texts(f"help.option.{row.name}") for row in OPTIONS)


def test_options_stand_anywhere():
    words = ["learn activations", "--json", "m"]
    assert in_order(["--json", "learn", "activations", "m"]) == words
    assert in_order(["learn", "--json", "activations", "m"]) == words
    assert in_order(in_order(["learn", "--json", "activations", "m"])) == words
    assert in_order(["learn", "--tokens", "4k", "activations", "m"])[0] == "learn activations"
    assert in_order(["learn", "m"]) == ["learn", "m"]


def test_completion_offers_topics_and_their_options():
    assert offers(["learn", ""]) == list(TOPICS)
    assert "--tokens" in offers(["learn", "activations", "--to"])
    assert "Qwen/Qwen3-8B" in offers(["learn", "activations", "Qwen/Qwen3-8"])
    assert offers(["learn", "activations", "m", ""]) == []
    assert offers(["learn", "walk", "--model", ""]) == [FILES]
    assert offers(["verify", "server.log", "--model", "Qwen/Qwen3-8B-"])[0].startswith("Qwen/Qwen3-8B-")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("activation",), 2, "did you mean activations?"),
        (("zzz",), 2, "there is no topic zzz"),
        (("activations",), 2, "MODEL is missing"),
        (("activations", "a", "b"), 2, "b is one word too many"),
        (("activations", "no/such", "--offline"), 4, "no/such"),
    ],
)
def test_what_is_wrong_is_one_line(kv, words, code, said):
    found, out, err = kv("learn", *words)
    assert (found, out) == (code, "")
    assert said in err
    assert len(err.splitlines()) <= 2


def test_a_missing_extra_is_named(kv, monkeypatch):
    command = next(iter(COMMANDS))
    needy = COMMANDS[command]._replace(needs=("no_such_module",))
    monkeypatch.setitem(COMMANDS, command, needy)
    for lang, said in (("en", "not installed here"), ("zh", "尚未安装")):
        code, out, err = kv(*command.split(), "x", "--lang", lang)
        assert (code, out) == (1, "")
        assert said in err.splitlines()[0]
        assert "pip install 'kvgauge[lab]'" in err.splitlines()[0]
    assert json.loads(kv(*command.split(), "x", "--json")[1])["error"]["code"] == "missing_extra"


def test_the_core_runs_without_the_extra(kv, monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert kv("learn")[0] == 0
