"""Both languages say the same things."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

import kvgauge
from kvgauge.cli.options import LOAD, OUTPUT, WHY
from kvgauge.engines.index import ENGINES
from kvgauge.layers import LayerKind
from kvgauge.render.messages import LANGUAGES, Texts, en, zh

SOURCE = Path(kvgauge.__file__).parent


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_both_languages_have_the_same_keys():
    assert set(en.MESSAGES) == set(zh.MESSAGES)


@pytest.mark.parametrize("key", [key for key in en.MESSAGES if key != "error_line"])
def test_both_languages_fill_the_same_placeholders(key):
    assert placeholders(en.MESSAGES[key]) == placeholders(zh.MESSAGES[key])


def notes_in_source() -> dict[str, set[str] | None]:
    """Code -> placeholders of every ``Note(...)`` in the package; None where its values are not literal."""
    found: dict[str, set[str] | None] = {}
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note" and node.args:
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    found[code.value] = _literal_values(node)
    return found


def _literal_values(call: ast.Call) -> set[str] | None:
    if len(call.args) < 4:
        return set()
    if not isinstance(call.args[3], ast.Tuple):
        return None
    return {pair.elts[0].value for pair in call.args[3].elts}


def test_every_note_is_translated():
    notes = notes_in_source()
    assert len(notes) > 5
    assert not set(notes) - set(zh.NOTES)
    for code, values in notes.items():
        if values is not None:
            assert placeholders(zh.NOTES[code]) <= values, code


def test_every_word_that_is_looked_up_exists():
    for lang in LANGUAGES:
        texts = Texts(lang)
        for kind in LayerKind:
            assert texts(f"kind.{kind.value}")
        for row in (*LOAD, WHY, *OUTPUT):
            assert texts(f"help.option.{row.name}")
            assert texts(f"help.section.{row.section}")
        for engine in ENGINES:
            assert texts.find(f"engine.{engine}", "")
        for source in ("catalogue", "hub", "file", "gguf", "stdin", "dict"):
            assert texts(f"source_{source}", provenance="x")


def error_codes(base: type[kvgauge.KvgaugeError] = kvgauge.KvgaugeError) -> set[str]:
    return {base.code}.union(*(error_codes(child) for child in base.__subclasses__()))


def test_every_error_has_a_title():
    import kvgauge.cli.app
    import kvgauge.cli.output  # noqa: F401 - both define errors

    for code in error_codes():
        assert f"error.{code}" in zh.MESSAGES, code


def test_unknown_notes_speak_english():
    class Note:
        code, message, values = "no_such_note", "as it is", ()

    assert Texts("zh").note(Note()) == "as it is"
