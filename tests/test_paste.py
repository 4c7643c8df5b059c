"""Markdown to paste, and what notebooks show."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import kvgauge
from designs import DESIGNS
from kvgauge.cli.app import execute
from kvgauge.render.html import to_html
from kvgauge.render.markdown import escape, to_markdown
from kvgauge.render.sheet import Sheet, TableOf

MODELS = ("Qwen/Qwen3-8B", "Qwen/Qwen3.5-35B-A3B", "deepseek-ai/DeepSeek-V4-Flash", "openai/whisper-large-v3")
HOSTILE = "<script>alert('x')</script>|`*_[a](b)\x1b[2J\u202e\n# x"


@pytest.fixture
def text(capsys):
    def call(*argv: str) -> str:
        assert execute([*argv, "--markdown"]) == 0
        return capsys.readouterr().out

    return call


def tables(markdown: str) -> list[list[list[str]]]:
    """Return the cells of every table."""
    found = re.findall(r"(?:^\|.*\|\n)+", markdown, re.MULTILINE)
    return [[re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()] for table in found]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "argv",
    [
        *((verb, model) for verb in ("size", "explain") for model in MODELS),
        ("size", MODELS[0], "--tp", "2", "--pp", "2", "--dp", "3"),
        ("size", MODELS[0], "--engine", "transformers"),
        ("compare", *MODELS),
        ("models",),
        ("models", "deepseek"),
        ("size", MODELS[0], "--why"),
    ],
)
def test_tables_are_whole(text, argv, lang):
    out = text(*argv, "--lang", lang)
    found = tables(out)
    assert found
    for table in found:
        assert {len(row) for row in table} == {len(table[0])}
        assert all(re.fullmatch(r" -{3}:? ", cell) for cell in table[1])
    assert "\x1b" not in out
    assert not re.search(r"[ \t]$", out, re.MULTILINE)


@pytest.mark.parametrize(("units", "unit"), [("gib", "GiB"), ("gb", "GB"), ("bytes", "B")])
def test_units_stand_in_the_cells(text, units, unit):
    for argv in (("size", MODELS[0]), ("compare", *MODELS[:2]), ("explain", MODELS[0])):
        out = text(*argv, "--units", units)
        assert re.search(rf"\| [\d.,]+ {unit} \|", out)
        assert units == "gib" or "iB" not in out


def test_formulas_are_code(text):
    assert "| `L × 2 × H_kv × D × T × B × b` |" in text("size", MODELS[0])
    assert " = 4,831,838,208 B` |" in text("explain", MODELS[0])


def test_json_goes_before_it(capsys):
    assert execute(["size", MODELS[0], "--markdown", "--json"]) == 0
    assert capsys.readouterr().out.startswith("{")


def test_a_bad_row_stays_in_the_table(capsys):
    assert execute(["compare", "no/such-model", MODELS[0], "--markdown"]) == 1
    out = capsys.readouterr().out
    assert "| no/such-model |" in out
    assert "No ratios: no/such-model comes first" in out


def test_nothing_in_a_text_is_markup():
    shown = to_markdown(Sheet(HOSTILE, (TableOf(("a", "b"), ((HOSTILE, HOSTILE),), code=frozenset({1})),)))
    assert len(shown.splitlines()) == 5
    assert [len(row) for row in tables(shown)[0]] == [2, 2, 2]
    assert "\\<script\\>" in shown
    assert escape("_a_ H_kv") == "\\_a\\_ H_kv"


class Tags(HTMLParser):
    """Collects tags, attributes and texts; refuses what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def parsed(html: str) -> Tags:
    tags = Tags()
    tags.feed(html)
    tags.close()
    assert tags.open == []
    assert tags.tags <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert tags.attributes <= {"class", "style"}
    return tags


@pytest.mark.parametrize("design", DESIGNS)
def test_notebooks_show_tables(design):
    result = kvgauge.size(DESIGNS[design])
    for answer in (
        result,
        kvgauge.explain(result),
        kvgauge.explain(result, lang="zh"),
        kvgauge.compare([DESIGNS[design]]),
    ):
        assert len(answer._repr_html_()) < 40_000
        assert parsed(answer._repr_html_()).texts


def test_notebooks_show_the_figures():
    result = kvgauge.size("Qwen/Qwen3-8B")
    assert "4.50 GiB" in parsed(result._repr_html_()).texts
    assert "4.50 GiB" in parsed(kvgauge.compare(["Qwen/Qwen3-8B"])._repr_html_()).texts
    assert any("4,831,838,208" in text for text in parsed(kvgauge.explain(result)._repr_html_()).texts)


def test_everything_is_escaped():
    parsed(to_html(Sheet(HOSTILE, (HOSTILE, TableOf((HOSTILE,), ((HOSTILE,),), code=frozenset({0}))))))
    config = {**kvgauge.load("Qwen/Qwen3-8B").raw.config, "_name_or_path": HOSTILE}
    overrides = {"<b>": "<script>"}
    result = kvgauge.size(config, overrides=overrides)
    for answer in (result, kvgauge.explain(result), kvgauge.compare([config], overrides=overrides)):
        assert "<script" not in answer._repr_html_()
        parsed(answer._repr_html_())
