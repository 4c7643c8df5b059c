"""What the flag readers of serving engines have in common: words, values, contradictions, slips."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from kvgauge.dtypes import canonical_dtype
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.units import GIB

#: Reads the value of a flag: (flag, text) -> the setting.
Reader = Callable[[str, str], object]
#: Reads a word that begins with a dash: the flag as the tables spell it, and the value that is joined to it.
Spelling = Callable[[str], tuple[str, str | None]]

#: A flag this close to one of the table is taken for a slip, not for one that does not matter.
_SLIP = 0.9


def split_words(args: str) -> list[str]:
    """Return the words of a line as a shell splits them.

    Raises:
        InvalidRequestError: a quote is not closed.
    """
    try:
        return shlex.split(args)
    except ValueError as error:
        raise InvalidRequestError(f"--engine-args: {error}", field="engine-args") from None


def dashed(word: str) -> tuple[str, str | None]:
    """Return a flag with dashes for underscores, and what follows its ``=``.

    >>> dashed("--tp_size=2"), dashed("-c")
    (('--tp-size', '2'), ('-c', None))
    """
    flag, equals, value = word.partition("=")
    return flag.replace("_", "-") if flag.startswith("--") else flag, value if equals else None


def grouped(words: Iterable[str], spelling: Spelling = dashed) -> Iterator[tuple[str, list[str]]]:
    """Yield each flag with the words up to the next one; words before the first are a command and a model."""
    flag, values = "", list[str]()
    for word in words:
        if not word.startswith("-") or re.fullmatch(r"-\d+", word, re.ASCII):
            values.append(word)
            continue
        if flag:
            yield flag, values
        flag, joined = spelling(word)
        values = [] if joined is None else [joined]
    if flag:
        yield flag, values


def given(flag: str, value: str | None) -> str:
    """Return a value that a flag can't do without.

    Raises:
        InvalidRequestError: there is none.
    """
    if not value:
        raise InvalidRequestError(f"{flag} needs a value", field="engine-args")
    return value


def first(flag: str, values: list[str]) -> str:
    """Return the first of a flag's values, as ``given`` does."""
    return given(flag, values[0] if values else None)


def set_once(facts: dict[str, object], flag: str, name: str, value: object) -> None:
    """Note a setting.

    Raises:
        InvalidRequestError: it was noted with another value.
    """
    if facts.setdefault(name, value) != value:
        raise InvalidRequestError(
            f"--engine-args contradicts itself: {flag} is given with two values",
            hint="give it once",
            field="engine-args",
        )


def refuse_unfollowed(flag: str, refused: Mapping[str, str]) -> None:
    """Refuse a flag that changes the cache in ways that no rule here follows.

    Args:
        refused: flag -> what to do instead.

    Raises:
        FeatureUnsupportedError: it is one of them.
    """
    if flag in refused:
        raise FeatureUnsupportedError(
            f"what {flag} changes in the cache is not known", hint=refused[flag], field="engine-args"
        )


def refuse_slip(flag: str, known: Iterable[str], engine: str) -> None:
    """Refuse a flag that is close to a known one.

    Raises:
        InvalidRequestError: it is; the hint names the nearest.
    """
    near = difflib.get_close_matches(flag, list(known), n=1, cutoff=_SLIP)
    if near:
        raise InvalidRequestError(
            f"--engine-args: {flag!r} is not known to {engine}",
            hint=f"did you mean {near[0]}?",
            field="engine-args",
        )


def read_dtype(flag: str, text: str) -> str | None:
    """Return a canonical dtype; None for ``auto``."""
    del flag
    return None if text == "auto" else canonical_dtype(text)


def read_gib(flag: str, text: str) -> int:
    """Return bytes of a number of GiB, as both engines count what they name GB.

    Raises:
        InvalidRequestError: it is no such number.
    """
    if not re.fullmatch(r"\d{1,6}(?:\.\d{1,9})?", text, re.ASCII):
        raise InvalidRequestError(
            f"{flag} {text!r} is not a number of GiB", hint="write it like 4 or 1.5", field=flag[2:]
        )
    return int(Fraction(text) * GIB)


def read_share(flag: str, text: str) -> str:
    """Return a share of the card as it is written.

    Raises:
        InvalidRequestError: it is no number above 0 and up to 1.
    """
    if not re.fullmatch(r"[01]?(?:\.\d{1,9})?", text, re.ASCII) or not 0 < float(text or 0) <= 1:
        raise InvalidRequestError(
            f"{flag} {text!r} is not a share of the card", hint="write it like 0.9", field=flag[2:]
        )
    return text
