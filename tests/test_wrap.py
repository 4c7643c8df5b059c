"""Lines of prose: no wider than asked, nothing lost, no closing punctuation in front."""

from __future__ import annotations

import io
import json
import re
from importlib import resources

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

import kvgauge
from kvgauge.cli.output import terminal_columns, write_note
from kvgauge.render.explain import draw_explanation
from kvgauge.render.messages import Texts, en, zh
from kvgauge.render.size import draw_size
from kvgauge.render.view import View
from kvgauge.render.wrap import wrap

CLOSING = "、。，．；：！？）》〉」』】〕］｝”’…,.;:!?)]}%％"
WIDTHS = st.integers(24, 200)


def explanation_texts(lang: str) -> list[str]:
    text = resources.files("kvgauge.data").joinpath(f"explanations/{lang}.json").read_text(encoding="utf-8")

    def leaves(value: object) -> list[str]:
        if isinstance(value, dict):
            return [leaf for item in value.values() for leaf in leaves(item)]
        return [value] if isinstance(value, str) else []

    return leaves(json.loads(text))


SHIPPED = [*en.MESSAGES.values(), *zh.MESSAGES.values(), *zh.NOTES.values()]
SHIPPED += explanation_texts("en") + explanation_texts("zh")


def ink(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("width", [24, 33, 40, 61, 80, 100, 120, 200])
def test_every_shipped_text_wraps(width):
    for text in SHIPPED:
        lines = wrap(text, width)
        assert max(map(cell_len, lines)) <= width, text
        assert ink("".join(lines)) == ink(text)
        starts = {line.strip()[0] for line in lines[1:] if line.strip()}
        assert not starts & set(CLOSING), text
        words = [word for word in re.findall(r"[A-Za-z0-9_]+", text) if len(word) < 20]
        found = re.findall(r"[A-Za-z0-9_]+", "\n".join(lines))
        assert not set(words) - set(found), text


MIXED = st.lists(
    st.one_of(
        st.sampled_from(
            ["缓存", "每个 token ", "，", "。", "（", "）", "：", " ", "  ", "KiB", "x/y-z_", "\n"]
        ),
        st.sampled_from(["4.50 GiB", "−45 %", "32,768 tokens", "48 层", "num_key_value_heads", "H_kv × D"]),
        st.text("ab/（）。 中é\u0301한ｱ🙂", max_size=40),
        st.text(max_size=12).filter(lambda text: text.isprintable()),
    ),
    max_size=60,
).map("".join)


@given(MIXED, WIDTHS)
@example("a" * 24 + "，" + "b" * 90, 24)
@example("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 24)
def test_any_text_wraps(text, width):
    lines = wrap(text, width)
    assert max(map(cell_len, lines)) <= width
    assert ink("".join(lines)) == ink(text)
    for line in lines:
        assert line == line.rstrip()


@given(st.text("中文字，。（）ab 12", max_size=200), WIDTHS)
def test_no_line_starts_with_closing_punctuation(text, width):
    if re.search(r"[，。）]{8}", text):
        return  # nothing to keep it with
    for line in wrap(text, width)[1:]:
        assert line.strip()[0] not in CLOSING
        assert line[-1] not in "（"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("状态、卷积列。", 6, ["状态、", "卷积", "列。"]),
        ("一条序列 4.50 GiB", 14, ["一条序列", "4.50 GiB"]),
        ("比第一个少 −45 %", 13, ["比第一个少", "−45 %"]),
        ("共 48 层（全部）", 8, ["共 48 层", "（全部）"]),
        ("org/a-long-name", 11, ["org/", "a-long-name"]),
        ("", 24, [""]),
        ("a\n\nb", 24, ["a", "", "b"]),
        ("  indented", 24, ["  indented"]),
    ],
)
def test_where_lines_end(text, width, lines):
    assert wrap(text, width) == lines


def test_long_hostile_text_is_quick():
    assert len(wrap("(" * 20_000 + "）" * 20_000, 80)) == 751


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_notes_are_wrapped_on_a_terminal_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    note = "说明：检查点要求使用 fp8 的 KV 缓存（quantization_config）"
    for stream, count in ((Terminal(), 2), (io.StringIO(), 1)):
        monkeypatch.setattr("sys.stderr", stream)
        write_note(note)
        lines = stream.getvalue().splitlines()
        assert len(lines) == count
        assert ink("".join(lines)) == ink(note)


@pytest.mark.parametrize(("asked", "columns"), [("100", 100), ("0", 80), ("wide", 80), ("", 80)])
def test_columns(monkeypatch, asked, columns):
    monkeypatch.setenv("COLUMNS", asked)
    assert terminal_columns(io.StringIO()) == columns


MODELS = [
    "Qwen/Qwen3-8B",
    "google/gemma-3-27b-it",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "deepseek-ai/DeepSeek-V3.2",
]


def letters(text: str) -> list[str]:
    return sorted(character for character in text if character.isalnum())


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("model", MODELS)
def test_answers_keep_every_letter_at_any_width(model, lang):
    result = kvgauge.size(model)
    texts = Texts(lang)
    explanation = kvgauge.explain(result, lang=lang)
    whole = letters(draw_explanation(explanation, View(texts, "gib", 400)))
    for width in range(24, 201, 11):
        text = draw_explanation(explanation, View(texts, "gib", width))
        assert letters(text) == whole, width
        for shown in (text, draw_size(result, View(texts, "gib", width))):
            assert max(map(cell_len, shown.splitlines())) <= width
