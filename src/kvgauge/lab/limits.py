"""Bounds of what the lab runs: every number that is asked for is checked once, here."""

from __future__ import annotations

from kvgauge.errors import InvalidRequestError
from kvgauge.units import parse_tokens

MAX_SEED = (1 << 32) - 1


def bounded(value: int | str | None, default: int, low: int, high: int, option: str) -> int:
    """Return a number that was asked for, or the default.

    Raises:
        InvalidRequestError: it is no number, or outside of ``low`` to ``high``.

    >>> bounded("4k", 1, 1, 8192, "tokens")
    4096
    """
    if value is None:
        return default
    number = parse_tokens(value, what=f"--{option}")
    if not low <= number <= high:
        raise InvalidRequestError(
            f"--{option} {number} is out of range", hint=f"the lab takes {low} to {high}", field=option
        )
    return number


def bounded_list(value: str | None, default: tuple[int, ...], high: int, option: str) -> tuple[int, ...]:
    """Return numbers separated by commas, at most twelve, without repeats, or the default.

    Raises:
        InvalidRequestError: one of them is no number or outside of 1 to ``high``, or they are too many.
    """
    if value is None:
        return default
    words = value.split(",")
    if len(words) > 12:
        raise InvalidRequestError(
            f"--{option} names {len(words)} numbers", hint="twelve at most", field=option
        )
    return tuple(dict.fromkeys(bounded(word, 0, 1, high, option) for word in words))
