"""The words of explanations: one JSON file a language in ``data/explanations``, same keys in each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from kvgauge.errors import InvalidRequestError

LANGUAGES = ("en", "zh")


@lru_cache(maxsize=8)
def _document(name: str) -> Mapping[str, Mapping[str, object]]:
    text = resources.files("kvgauge.data").joinpath(f"explanations/{name}.json").read_text(encoding="utf-8")
    document: Mapping[str, Mapping[str, object]] = json.loads(text)
    return document


class Words:
    """The texts of one language.

    Raises:
        InvalidRequestError: no such language.
    """

    def __init__(self, lang: str) -> None:
        if lang not in LANGUAGES:
            raise InvalidRequestError(
                f"language {lang!r} is not known", hint=f"one of: {', '.join(LANGUAGES)}", field="lang"
            )
        self.lang = lang
        self._document = _document(lang)

    def title(self, section: str, key: str, **values: object) -> str:
        """Return a title of ``kinds``, ``mechanisms`` or ``steps``."""
        return self._entry(section, key)["title"].format_map(values)

    def text(self, section: str, key: str, **values: object) -> str:
        """Return a text of ``kinds``, ``mechanisms`` or ``steps``, placeholders filled."""
        return self._entry(section, key)["text"].format_map(values)

    def phrase(self, key: str, **values: object) -> str:
        """Return a piece of the sentence that says why."""
        return str(self._document["why"][key]).format_map(values)

    def symbol(self, name: str) -> str:
        """Return what a symbol means; numbered ones (R_1, n_2) share one meaning; "" where it is a group."""
        symbols = self._document["symbols"]
        head, _, number = name.rpartition("_")
        return str(symbols.get(name) or (symbols.get(f"{head}_i", "") if number.isdigit() else ""))

    def _entry(self, section: str, key: str) -> Mapping[str, str]:
        entry = self._document[section].get(key)
        return entry if isinstance(entry, dict) else {"title": key, "text": ""}


def formula_source(mechanism: str) -> str:
    """Return the paper and the engine code that a mechanism's formula comes from."""
    return str(_document("sources").get(mechanism, ""))
