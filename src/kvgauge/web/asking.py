"""From a request to keywords: what stands in the address or in the body, checked against one table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, get_args
from urllib.parse import parse_qsl

from kvgauge.cli.requests import parse_overrides
from kvgauge.errors import DamagedFileError, InvalidRequestError
from kvgauge.keywords import Kinds, checked
from kvgauge.render.messages import Lang, Texts
from kvgauge.sources.json_text import parse_object
from kvgauge.units import Units

if TYPE_CHECKING:
    from kvgauge.web.settings import WebSettings

#: Keywords of every request: how to answer.
Format = Literal["json", "markdown"]
SPEECH: Mapping[str, tuple[str, ...]] = {
    "lang": get_args(Lang),
    "units": get_args(Units),
    "format": get_args(Format),
}
_MAX_FIELDS = 100
_TRUE, _FALSE = ("", "1", "true", "yes", "on"), ("0", "false", "no", "off")
_EXAMPLE = 'for example: {"model": "Qwen/Qwen3-8B", "context": 32768}'


@dataclass(frozen=True)
class Speech:
    """How to answer."""

    lang: Lang = "en"
    units: Units = "gib"
    format: Format = "json"

    @cached_property
    def texts(self) -> Texts:
        """The texts of the language."""
        return Texts(self.lang)


def speech_of(given: Mapping[str, object], settings: WebSettings) -> Speech:
    """Return how to answer, whatever else is wrong with a request."""
    lang: Lang = "zh" if given.get("lang", settings.lang) == "zh" else "en"
    units: Units = next((known for known in get_args(Units) if known == given.get("units")), "gib")
    return Speech(lang, units, "markdown" if given.get("format") == "markdown" else "json")


def of_query(query: bytes, keywords: Mapping[str, Kinds]) -> dict[str, object]:
    """Return what stands in an address; values are text, numbers where the keyword takes numbers alone.

    ``overrides`` is a JSON object, or ``override`` once or several times as KEY=VALUE; ``models``
    is repeated.

    Raises:
        InvalidRequestError: too many fields, no UTF-8, or a value of another kind.
    """
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
        )
    except ValueError:
        raise InvalidRequestError("the address can't be read", hint="write it as UTF-8, in %XX") from None
    found: dict[str, object] = {}
    overrides = tuple(value for name, value in pairs if name == "override")
    if overrides:
        found["overrides"] = parse_overrides(overrides)
    models = [value for name, value in pairs if name == "models"]
    for name, text in pairs:
        if name == "override":
            continue
        if name in found and name != "models":
            raise InvalidRequestError(f"{name[:80]} stands twice in the address", hint="", field=name)
        found[name] = models if name == "models" else _value(name, text, keywords.get(name, (str,)))
    return found


def _value(name: str, text: str, kinds: Kinds) -> object:
    if bool in kinds:
        word = text.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else text
    if kinds == (int,) and re.fullmatch(r"[+-]?\d{1,18}", text.strip()):
        return int(text)
    if kinds == (dict,):
        try:
            return parse_object(text.encode("utf-8", "replace"), name)
        except DamagedFileError as error:
            raise InvalidRequestError(error.message, hint="write it as a JSON object", field=name) from None
    return text


def of_body(body: bytes) -> dict[str, object]:
    """Return the JSON object of a body.

    Raises:
        InvalidRequestError: it is none.
    """
    try:
        return parse_object(body, "the request")
    except DamagedFileError as error:
        raise InvalidRequestError(error.message, hint=_EXAMPLE) from None


def split_speech(given: Mapping[str, object]) -> dict[str, object]:
    """Return a request without the words that say how to answer.

    Raises:
        InvalidRequestError: one of these is none that is known.
    """
    for name, words in SPEECH.items():
        value = given.get(name)
        if value is not None and value not in words:
            raise InvalidRequestError(
                f"{name}: {str(value)[:40]!r} is not one of {', '.join(words)}", hint="", field=name
            )
    return {name: value for name, value in given.items() if name not in SPEECH}


def request_keywords(given: Mapping[str, object], keywords: Mapping[str, Kinds]) -> dict[str, object]:
    """Return the keywords of a request.

    Raises:
        InvalidRequestError: a keyword that is not known, a value of another kind, a model that is missing.
    """
    found = checked(split_speech(given), keywords, _EXAMPLE)
    if "models" in keywords:
        found["models"] = _models(found.get("models"))
    return found


def _models(value: object) -> Sequence[object]:
    models = value if isinstance(value, list) else []
    if not models:
        raise InvalidRequestError("MODEL is missing", hint="give models, two or more", field="models")
    for model in models:
        if not isinstance(model, str | dict) or model == "-":
            raise InvalidRequestError("models is to be a list of names and configs", hint="", field="models")
    return models
