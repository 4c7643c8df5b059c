"""What each release of an engine has: flags, their values, model classes; ``data/engine_releases.json``.

A fact stands under spans of the releases that were read. Between two of them that disagree it is not known,
and None is answered; what is newer than the newest that was read has what that one has.
``tools/engine_releases.py`` rebuilds the table from unpacked releases.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError

#: Engines whose command lines take a flag by the start of its name, where only one begins so (argparse).
_ABBREVIATING = frozenset({"vllm", "sglang"})
_VERSION = re.compile(
    r"v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:\.(\d{1,6}))?(?:\.?(rc|post|dev|a|b)(\d{1,9}))?", re.ASCII
)
_STAGES = {"dev": -3, "a": -2, "b": -2, "rc": -1, None: 0, "post": 1}

Key = tuple[int, ...]


class Span(NamedTuple):
    """Releases that have something: from ``since`` (else the oldest read) to ``until`` (else the newest)."""

    since: str
    until: str


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(read_data("engine_releases.json"))
    return table


@lru_cache(maxsize=1024)
def _key(engine: str, version: str) -> Key:
    """Return what versions are ordered by."""
    if engine == "llama.cpp":
        from kvgauge.engines.llamacpp.builds import build_number  # noqa: PLC0415 - one engine is loaded

        return (build_number(version),)
    found = _VERSION.match(version.strip())
    if found is None:
        return (0,)
    numbers = tuple(int(part or 0) for part in found.groups()[:4])
    return (*numbers, _STAGES[found[5]], int(found[6] or 0))


@lru_cache(maxsize=16)
def _releases(engine: str, kind: str) -> tuple[Key, ...]:
    name = "model_releases" if kind == "models" else "releases"
    return tuple(_key(engine, word) for word in _table()[engine][name].split())


@lru_cache(maxsize=64)
def _facts(engine: str, kind: str, flag: str = "") -> Mapping[str, tuple[Span, ...]]:
    """Return word -> its spans, oldest first."""
    rows = _table()[engine][kind]
    found: dict[str, list[Span]] = {}
    for text, words in (rows.get(flag, {}) if flag else rows).items():
        since, _, until = text.partition("..")
        for word in words.split():
            found.setdefault(word, []).append(Span(since, until))
    return {
        word: (spans[0],) if len(spans) == 1 else tuple(sorted(spans, key=lambda span: _first(engine, span)))
        for word, spans in found.items()
    }


def _first(engine: str, span: Span) -> Key:
    return _key(engine, span.since) if span.since else (-9,)


def _holds(engine: str, kind: str, spans: tuple[Span, ...], version: str | None) -> bool | None:
    """Whether a version lies in a span; None where the releases around it disagree, or it may be newer."""
    releases = _releases(engine, kind)
    own = releases[-1] if version is None else _key(engine, version)
    if not spans and own > releases[-1]:
        return None  # it may be new
    at = bisect_right(releases, own)
    older = releases[max(0, at - 1)]
    newer = older if older >= own or at == len(releases) else releases[at]
    found = {any(_within(engine, span, release) for span in spans) for release in (older, newer)}
    return found.pop() if len(found) == 1 else None


def _within(engine: str, span: Span, release: Key) -> bool:
    since, until = span
    return (not since or release >= _key(engine, since)) and (not until or release <= _key(engine, until))


def is_read(engine: str) -> bool:
    """Whether releases of an engine were read.

    >>> is_read("vllm"), is_read("theory")
    (True, False)
    """
    return bool(_table().get(engine, {}).get("releases"))


def is_before(engine: str, version: str | None, other: str) -> bool:
    """Whether a version comes before another; None is the newest."""
    return version is not None and _key(engine, version) < _key(engine, other)


def loads(engine: str, model_class: str, version: str | None) -> bool | None:
    """Whether a version has a class of its own for a model; None is not known.

    >>> loads("vllm", "Qwen3ForCausalLM", "0.8.3"), loads("vllm", "Qwen3ForCausalLM", "0.8.5")
    (False, True)
    """
    releases = _releases(engine, "models")
    if version is not None and _key(engine, version) < releases[0]:
        return None
    return _holds(engine, "models", _facts(engine, "models").get(model_class, ()), version)


def model_span(engine: str, model_class: str) -> Span | None:
    """Return the releases with a class of their own for a model, the last of several spans."""
    spans = _facts(engine, "models").get(model_class, ())
    return spans[-1] if spans else None


def _spans(facts: Mapping[str, tuple[Span, ...]], flag: str) -> tuple[Span, ...]:
    """Return the spans of a flag; a switch that is taken back with ``--no-`` stands under its own name."""
    return facts.get(flag) or facts.get("--" + flag.removeprefix("--no-"), ())


def has_flag(engine: str, flag: str, version: str | None) -> bool | None:
    """Whether a version takes a flag; None is not known, and a version of None is the newest.

    >>> has_flag("vllm", "--decode-context-parallel-size", "0.10.1"), has_flag("sglang", "--tp", "0.5.9")
    (False, True)
    """
    facts = _facts(engine, "flags")
    own = _holds(engine, "flags", _spans(facts, flag), version)
    if own is not False or engine not in _ABBREVIATING or not flag.startswith("--"):
        return own
    longer = [_holds(engine, "flags", facts[name], version) for name in facts if name.startswith(flag)]
    return len(longer) - longer.count(False) == 1


def takes_value(engine: str, flag: str, value: str, version: str | None) -> bool | None:
    """Whether a version's flag takes a word; None where it is not known, as for flags without a list.

    >>> takes_value("vllm", "--kv-cache-dtype", "nvfp4", "0.19.1"), takes_value("vllm", "--port", "80", None)
    (False, None)
    """
    if not values_of(engine, flag, version):
        return None
    return _holds(engine, "flags", _facts(engine, "values", flag).get(value, ()), version)


@lru_cache(maxsize=256)
def values_of(engine: str, flag: str, version: str | None) -> tuple[str, ...]:
    """Return the words that a version's flag takes; empty where no list is known.

    >>> values_of("sglang", "--kv-cache-dtype", "0.5.3")
    ('auto', 'fp8_e4m3', 'fp8_e5m2')
    """
    facts = _facts(engine, "values", flag)
    return tuple(sorted(word for word, spans in facts.items() if _holds(engine, "flags", spans, version)))


def flag_span(engine: str, flag: str) -> Span | None:
    """Return the releases that have a flag, the last span of several; None: none that was read has it.

    >>> flag_span("vllm", "--speculative-model")
    Span(since='', until='0.8.2')
    """
    spans = _spans(_facts(engine, "flags"), flag)
    return spans[-1] if spans else None


def value_span(engine: str, flag: str, value: str) -> Span | None:
    """Return the releases whose flag takes a word; None: none that was read does."""
    spans = _facts(engine, "values", flag).get(value, ())
    return spans[-1] if spans else None


def span_words(span: Span | None) -> str:
    """Return a span in words, for a hint; empty where there is none.

    >>> span_words(Span("0.10.2", "")), span_words(Span("0.15.0", "0.31.0"))
    ('0.10.2 and later have it', '0.15.0 to 0.31.0 have it')
    >>> span_words(Span("", "0.8.2"))
    'its last version with it is 0.8.2'
    """
    if span is None:
        return ""
    if span.since and span.until:
        return f"{span.since} to {span.until} have it"
    return f"{span.since} and later have it" if span.since else f"its last version with it is {span.until}"


def released_word(
    engine: str, flag: str, word: str, forms: Mapping[str, str], version: str | None, own: str
) -> str:
    """Return the word by which a version's flag takes what ``word`` names; ``auto`` for the model's dtype.

    Args:
        forms: the engine's words -> what each names.
        own: the model's dtype.

    Raises:
        FeatureUnsupportedError: it takes none; the hint says which versions do, else what it takes.

    >>> forms = {"auto": "auto", "nvfp4": "nvfp4", "fp4_e2m1": "nvfp4", "bf16": "bf16"}
    >>> [released_word("sglang", "--kv-cache-dtype", w, forms, "0.5.10", "bf16") for w in ("nvfp4", "bf16")]
    ['fp4_e2m1', 'bf16']
    >>> released_word("sglang", "--kv-cache-dtype", "bf16", forms, "0.4.6", "bf16")
    'auto'
    """
    if takes_value(engine, flag, word, version) is not False:
        return word
    for other, form in forms.items():
        if form == forms.get(word) and takes_value(engine, flag, other, version):
            return other
    if "auto" in forms and forms.get(word) == own:
        return "auto"
    refuse_value(engine, flag, word, version)
    return word


def refuse_value(engine: str, flag: str, word: str, version: str | None) -> None:
    """Refuse a word that a version's flag does not take.

    Raises:
        FeatureUnsupportedError: it does not; the hint says which versions do, else what it takes.
    """
    if takes_value(engine, flag, word, version) is not False:
        return
    span = span_words(value_span(engine, flag, word))
    hint = span or f"it takes: {', '.join(values_of(engine, flag, version))}"
    raise FeatureUnsupportedError(f"{flag} of {engine} {version} takes no {word}", hint=hint, field="engine")


__all__ = [
    "Span", "flag_span", "has_flag", "is_before", "is_read", "loads", "model_span",
    "refuse_value", "released_word", "span_words", "takes_value", "value_span", "values_of",
]  # fmt: skip
