"""The words of explanations: one JSON file a language in ``data/explanations``, same keys in each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from importlib import resources

from kvgauge.errors import InvalidRequestError
from kvgauge.units import Units, format_bytes

LANGUAGES = ("en", "zh")


@lru_cache(maxsize=8)
def _document(name: str) -> Mapping[str, Mapping[str, object]]:
    text = resources.files("kvgauge.data").joinpath(f"explanations/{name}.json").read_text(encoding="utf-8")
    document: Mapping[str, Mapping[str, object]] = json.loads(text)
    return document


class Count(int):
    """A number that brings its noun: ``{heads:head|heads}`` is "1 head" or "8 heads".

    Without forms it is the number alone; ``~`` before them leaves the number out.

    >>> "{n} of {n:layer|layers} {n:~keeps|keep}".format(n=Count(1))
    '1 of 1 layer keeps'
    """

    def __format__(self, spec: str) -> str:
        if not spec:
            return f"{int(self):,}"
        one, _, many = spec.removeprefix("~").partition("|")
        form = one if self == 1 else many
        return form if spec.startswith("~") else f"{int(self):,} {form}"


class Words:
    """The texts of one language. Values that are whole numbers become a ``Count``.

    Args:
        units: how sizes in sentences are written.

    Raises:
        InvalidRequestError: no such language.
    """

    def __init__(self, lang: str, units: Units = "gib") -> None:
        if lang not in LANGUAGES:
            raise InvalidRequestError(
                f"language {lang!r} is not known", hint=f"one of: {', '.join(LANGUAGES)}", field="lang"
            )
        self.lang = lang
        self.units: Units = units
        self._document = _document(lang)

    def title(self, section: str, key: str, **values: object) -> str:
        """Return a title of ``kinds``, ``mechanisms``, ``variants`` or ``steps``."""
        return self._entry(section, key)["title"].format_map(_counted(values))

    def text(self, section: str, key: str, **values: object) -> str:
        """Return a text of ``kinds``, ``mechanisms``, ``variants`` or ``steps``, placeholders filled."""
        return self._entry(section, key)["text"].format_map(_counted(values))

    def phrase(self, key: str, section: str = "phrases", **values: object) -> str:
        """Return a piece of a sentence of ``phrases``, ``why``, ``ranks`` or ``roles``."""
        return str(self._document[section][key]).format_map(_counted(values))

    def listed(self, parts: list[str]) -> str:
        """Return parts as an enumeration."""
        return self.phrase("list_joiner").join(parts)

    def sentences(self, parts: list[str]) -> str:
        """Return sentences, one after the other."""
        text = ""
        for part in parts:
            text = self.phrase("sentences", first=text, second=part) if text else part
        return text

    def size(self, size_bytes: int | Fraction) -> str:
        """Return a size as it is written in a sentence."""
        return format_bytes(size_bytes, self.units)

    def symbol(self, name: str, mechanism: str = "") -> str:
        """Return what a symbol means; numbered ones (R_1, n_2) share one meaning.

        ``X_all`` is X in the whole model; a mechanism may use a symbol in a sense of its own.
        """
        symbols = self._document["symbols"]
        if name.endswith("_all") and name not in symbols:
            meaning = self.symbol(name.removesuffix("_all"), mechanism)
            return str(symbols["X_all"]).format(meaning=meaning) if meaning else ""
        head, _, number = name.rpartition("_")
        found = symbols.get(f"{name}/{mechanism}") or symbols.get(name)
        return str(found or (symbols.get(f"{head}_i", "") if number.isdigit() else ""))

    def source(self, key: str) -> str:
        """Return the paper and the engine code behind a mechanism or a step; our own words translated."""
        return str(self._document["sources"].get(key) or _document("sources").get(key, ""))

    def _entry(self, section: str, key: str) -> Mapping[str, str]:
        entry = self._document[section].get(key)
        return entry if isinstance(entry, dict) else {"title": key, "text": ""}


def _counted(values: Mapping[str, object]) -> dict[str, object]:
    whole = {name: Count(v) for name, v in values.items() if isinstance(v, int) and not isinstance(v, bool)}
    return {**values, **whole}
