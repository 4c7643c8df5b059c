"""The words of the command line in each language: one module a language, the same keys in all.

Keys, codes, enums, units and option names are never translated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import Final, Literal, Protocol, get_args

Lang = Literal["en", "zh"]
LANGUAGES: tuple[Lang, ...] = get_args(Lang)


class NoteLike(Protocol):
    """What a note has: a code, its English message, and the values of its placeholders."""

    @property
    def code(self) -> str: ...  # noqa: D102
    @property
    def message(self) -> str: ...  # noqa: D102
    @property
    def values(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102


class Texts:
    """The texts of one language; its module is imported at the first look-up.

    >>> Texts("en")("load_one", tokens="4,096 tokens")
    '1 sequence of 4,096 tokens'
    """

    def __init__(self, lang: Lang) -> None:
        self.lang: Final = lang

    @cached_property
    def _messages(self) -> Mapping[str, str]:
        messages: Mapping[str, str] = import_module(f"kvgauge.render.messages.{self.lang}").MESSAGES
        return messages

    @cached_property
    def _notes(self) -> Mapping[str, str]:
        notes: Mapping[str, str] = import_module(f"kvgauge.render.messages.{self.lang}").NOTES
        return notes

    def __call__(self, key: str, **values: object) -> str:
        """Return the text of a key with its placeholders filled."""
        template = self._messages[key]
        return template.format(**values) if values else template

    def find(self, key: str, default: str) -> str:
        """Return the text of a key, or ``default`` where there is none."""
        return self._messages.get(key, default)

    def note(self, note: NoteLike) -> str:
        """Return a note in this language, else its English message."""
        template = self._notes.get(note.code)
        if template is None:
            return note.message
        try:
            return template.format(**{name: self._value(value) for name, value in note.values})
        except (KeyError, IndexError, ValueError):
            return note.message

    def error(self, text: str) -> str:
        """Return an error's message or hint in this language, else as it is."""
        if self.lang == "en":
            return text
        from kvgauge.render.messages.errors_zh import chinese  # noqa: PLC0415 - most runs show no error

        return chinese(text)

    def origin(self, source: str) -> str:
        """Return where something comes from in this language; names stay as they are."""
        if self.lang == "en":
            return source
        from kvgauge.render.messages.origins_zh import origin_zh  # noqa: PLC0415 - few commands name sources

        return origin_zh(source)

    def _value(self, value: str) -> str:
        """Return a note's value with the phrases in it put in this language."""
        if self.lang == "en" or " " not in value:
            return value
        from kvgauge.render.messages.errors_zh import note_value  # noqa: PLC0415 - as above

        return note_value(value)
