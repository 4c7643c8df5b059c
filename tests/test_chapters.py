"""The chapters of docs/learn: built from their sources, no figure by hand, both languages alike."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from kvgauge.cli.app import execute

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import chapters  # noqa: E402 - the tool is beside the package

NAMES = [source.name for source in chapters.chapters("en")]
SLIPS = range(1, 26)


@pytest.mark.parametrize("lang", chapters.LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_chapters_are_as_built(lang, name):
    built = chapters.build(chapters.SOURCE / lang / name, lang)
    assert (chapters.ROOT / lang / name).read_text(encoding="utf-8") == built, (
        "python tools/chapters.py build"
    )


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_show_the_same_figures(name):
    shown = [
        sorted(
            set(re.findall(r"\{\{([\w.]+)\}\}", (chapters.SOURCE / lang / name).read_text(encoding="utf-8")))
        )
        for lang in chapters.LANGUAGES
    ]
    assert shown[0] == shown[1]


def test_every_chapter_is_there_in_both_languages():
    assert [source.name for source in chapters.chapters("zh")] == NAMES


@pytest.mark.parametrize("lang", chapters.LANGUAGES)
def test_every_slip_of_the_article_is_corrected_once(lang):
    word = {"en": "Correction", "zh": "更正"}[lang]
    found = [
        int(number)
        for source in chapters.chapters(lang)
        for number in re.findall(rf"\*\*{word} (\d+)[.。]\*\*", source.read_text(encoding="utf-8"))
    ]
    assert sorted(found) == list(SLIPS)


@pytest.mark.parametrize(
    ("lang", "text", "found"),
    [
        ("en", "takes 4.5 GiB of memory", ["4.5 GiB"]),
        ("en", "the article says “5 GB”", []),
        ("en", "about 5 GB, it says", ["5 GB"]),
        ("en", "of 36 layers and {{q8.heads}} heads", ["36 layers"]),
        ("en", "Qwen3-8B with `--context 32k`", []),
        ("en", "kvgauge fit x --memory 80GiB\n80GiB", ["80GiB"]),
        ("zh", "共 4.5 GiB", ["4.5 GiB"]),
        ("zh", "有 36 层、{{q8.heads}} 个头", ["36 层"]),
        ("zh", "每 16 个 token 一块，占 95%", ["16 个", "95%"]),
        ("zh", "权重占5 GiB、共4.5GiB", ["5 GiB", "4.5GiB"]),
        ("zh", "Qwen3-8B的权重占16 GB，快 2.4 倍，5 毫秒", ["16 GB", "2.4 倍", "5 毫秒"]),
        ("zh", "8 亿参数、256 颗、16 位", ["8 亿", "256 颗", "16 位"]),
        ("en", "5-6 GB, **5** GB, ½ GB, 2&nbsp;GiB", ["6 GB", "5** GB", "½ GB", "2&nbsp;GiB"]),
        ("en", "150 TB/s over 25 Gb/s or 10 Gbps", ["150 TB/s", "25 Gb/s", "10 Gbps"]),
        ("en", "3 µs, 7 ms, 5 minutes, 2 GHz", ["3 µs", "7 ms", "5 minutes", "2 GHz"]),
        ("en", "1.2 PFLOPS at 300 W", ["1.2 PFLOPS", "300 W"]),
        ("en", "48K, 4x as fast, 2.4× more", ["48K", "4x", "2.4×"]),
        ("en", "a 16-bit value, 8 billion of them, 1e9 bytes", ["16-bit", "8 billion", "1e9 bytes"]),
        ("en", "Gemma-3-27B, gpt-oss-20b, Qwen3.5-35B-A3B, vLLM 0.19.0, fp8, 36 × 2 × 8", []),
    ],
)
def test_a_figure_by_hand_is_seen(lang, text, found):
    assert chapters.written_by_hand(text, lang) == found


#: The article's subsections, each with a counterpart of the same number.
SECTIONS = {
    "L1": [f"1.{number}" for number in range(1, 6)],
    "L2": [f"2.{number}" for number in range(1, 5)],
    "L3": [f"3.{number}" for number in range(1, 6)],
    "L4": [f"4.{number}" for number in range(1, 5)],
    "L5": [f"5.{number}" for number in range(1, 5)],
    "A": [f"A.{number}" for number in range(1, 6)],
    "B": [f"B.{number}" for number in range(1, 7)],
    "C": [f"C.{number}" for number in range(1, 7)],
}


@pytest.mark.parametrize("lang", chapters.LANGUAGES)
@pytest.mark.parametrize("chapter", SECTIONS)
def test_every_section_of_the_article_has_its_counterpart(lang, chapter):
    text = (chapters.SOURCE / lang / f"{chapter}.md").read_text(encoding="utf-8")
    assert re.findall(r"^## ([\w.]+) ", text, re.MULTILINE) == SECTIONS[chapter]


@pytest.mark.parametrize("lang", chapters.LANGUAGES)
def test_no_blank_is_lost_or_doubled_beside_a_figure(lang):
    """A figure and a Latin word want a blank between them and Chinese, Chinese among itself none."""
    for source in chapters.chapters(lang):
        prose = re.sub(r"^```.*?^```$", "", chapters.build(source, lang), flags=re.MULTILINE | re.DOTALL)
        lines = [line for line in prose.splitlines() if not line.startswith("|")]
        assert not [line for line in lines if re.search(r"[\u4e00-\u9fff] [\u4e00-\u9fff]|\S  \S", line)]
        assert not [line for line in lines if re.search(r"[\u4e00-\u9fff]\d|\d[\u4e00-\u9fff]", line)]


def test_every_expression_is_used_and_every_quotation_quoted():
    texts = "".join(
        source.read_text(encoding="utf-8")
        for lang in chapters.LANGUAGES
        for source in chapters.chapters(lang)
    )
    unused = [name for name in chapters.expressions() if f"{{{{{name}}}}}" not in texts]
    assert not unused
    assert not [quoted for quoted in chapters.quotations() if f"“{quoted}”" not in texts]


def test_a_name_without_an_expression_is_refused(tmp_path):
    source = tmp_path / "X.md"
    source.write_text("{{no.such_name}}", encoding="utf-8")
    with pytest.raises(ValueError, match="no expression is named"):
        chapters.build(source, "en")


def commands() -> list[str]:
    """Return every command that the chapters and their index name, placeholders left out."""
    found = set()
    for page in [ROOT / "docs/learn/README.md", *(ROOT / "docs/learn").glob("??/*.md")]:
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            found |= {line for line in block.splitlines() if line.startswith("kvgauge ")}
        found |= set(re.findall(r"`(kvgauge [^`]*)`", text))
    named = {f"kvgauge {verb}" for verb in ("size", "explain", "fit", "plan", "verify")}
    return sorted(line for line in found - named if not re.search(r"\b(MODEL|VALUE)\b", line))


@pytest.mark.parametrize("command", commands())
def test_every_command_of_the_chapters_runs(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert execute([*shlex.split(command.removeprefix("kvgauge ")), "--offline"]) == 0
    assert capsys.readouterr().out.strip()
