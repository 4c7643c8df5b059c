"""Bounded whole numbers from untrusted files, in every dialect."""

from __future__ import annotations

import math
from typing import TypeGuard

from kvgauge.errors import InvalidFieldError

MAX_LAYERS = 10_000
MAX_HEADS = 1 << 20
MAX_WIDTH = 1 << 26
MAX_WINDOW = 1 << 50
MAX_KERNEL = 1 << 12


def is_int(value: object) -> TypeGuard[int]:
    """Whether a JSON value is an integer (true and false are not)."""
    return isinstance(value, int) and not isinstance(value, bool)


def as_count(value: object, where: str, *, low: int, high: int) -> int:
    """Check that a JSON value is a whole number within bounds.

    Raises:
        InvalidFieldError: it is not.
    """
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        value = int(value)
    if not is_int(value):
        raise InvalidFieldError(f"{where} must be a whole number, not {short(value)}", field=where)
    if not low <= value <= high:
        raise InvalidFieldError(f"{where} is {short(value)}, expected {low} to {high}", field=where)
    return value


def short(value: object) -> str:
    """Return a value for an error message, never long."""
    text = repr(value) if isinstance(value, str | int | float | bool | None) else type(value).__name__
    return text if len(text) <= 40 else text[:37] + "..."
