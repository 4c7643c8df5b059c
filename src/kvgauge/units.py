"""Units: bytes are integers, GiB = 2^30, GB = 10^9, tokens are 1024-based when abbreviated."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal

from kvgauge.errors import InvalidRequestError

Units = Literal["gib", "gb", "bytes"]

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
GB = 10**9

MAX_TOKENS = 1 << 50
MAX_SEQUENCES = 1 << 30
MAX_SIZE_BYTES = 1 << 70

_TOKEN_SCALES = {"": 1, "k": KIB, "m": MIB}
_SIZE_SCALES = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": 1 << 40,
}  # fmt: skip
_BINARY_STEPS = ((1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_DECIMAL_STEPS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
#: From here on a number rounds to four figures: the next larger unit takes it.
_FOUR_FIGURES = Fraction(1999, 2)
_NUMBER = r"(\d{1,20}(?:\.\d{1,9})?)\s*([a-z]*)"  # compiled when one is read


def _scaled(text: str, scales: dict[str, int], what: str, example: str, *, rounds: bool = False) -> int:
    match = re.fullmatch(_NUMBER, text.strip().replace(",", "").replace("_", ""), re.IGNORECASE)
    scale = scales.get(match[2].lower()) if match else None
    if match is None or scale is None:
        raise InvalidRequestError(f"{what} {text!r} is not understood", hint=f"write it like {example}")
    value = Fraction(match[1]) * scale
    if value.denominator != 1 and not rounds:
        raise InvalidRequestError(f"{what} {text!r} is not a whole number", hint=f"write it like {example}")
    return round(value)


def parse_tokens(text: str | int, *, what: str = "context") -> int:
    """Read a token count: ``32768``, ``32k`` (32 x 1024), ``1m``.

    Raises:
        InvalidRequestError: malformed, negative or above 2^50.

    >>> parse_tokens("32k")
    32768
    """
    if isinstance(text, bool) or not isinstance(text, int | str):
        raise InvalidRequestError(f"{what} {text!r} is not a token count", hint="write it like 32768 or 32k")
    value = text if isinstance(text, int) else _scaled(text, _TOKEN_SCALES, what, "32768, 32k or 1m")
    if not 0 <= value <= MAX_TOKENS:
        raise InvalidRequestError(f"{what} {text!r} is out of range", hint=f"0 to {MAX_TOKENS} tokens")
    return value


def parse_size(text: str | int, *, what: str = "size", rounds: bool = False) -> int:
    """Read a memory size in bytes: ``80GiB``, ``80GB``, ``81920MiB``, or plain bytes.

    Args:
        rounds: a size that is no whole number of bytes (47.4GiB) is the nearest one, and no error.

    Raises:
        InvalidRequestError: malformed, negative or absurd.

    >>> parse_size("80GiB")
    85899345920
    """
    if isinstance(text, bool) or not isinstance(text, int | str):
        raise InvalidRequestError(f"{what} {text!r} is not a size", hint="write it like 80GiB or 80GB")
    value = (
        text
        if isinstance(text, int)
        else _scaled(text, _SIZE_SCALES, what, "80GiB, 80GB or 81920MiB", rounds=rounds)
    )
    if not 0 <= value <= MAX_SIZE_BYTES:
        raise InvalidRequestError(f"{what} {text!r} is out of range", hint="write it like 80GiB")
    return value


def _three_figures(value: Fraction) -> str:
    number = float(value)
    if number >= _FOUR_FIGURES:
        return f"{number:,.0f}"
    return f"{number:#.3g}".rstrip(".")


def format_bytes(size_bytes: int | Fraction, units: Units = "gib") -> str:
    """Three significant figures with the unit that suits the size; exact integers with ``bytes``.

    >>> format_bytes(4831838208), format_bytes(4831838208, "gb"), format_bytes(147456)
    ('4.50 GiB', '4.83 GB', '144 KiB')
    >>> format_bytes(1006 * MIB)
    '0.982 GiB'
    """
    value = Fraction(size_bytes)
    if units == "bytes":
        return f"{int(value):,} B" if value.denominator == 1 else f"{float(value):,.2f} B"
    steps = _BINARY_STEPS if units == "gib" else _DECIMAL_STEPS
    lower = [step for step, _ in steps[1:]]
    for (step, name), below in zip(steps, [*lower, steps[-1][0]], strict=True):
        if value >= step or value >= _FOUR_FIGURES * below:
            return f"{_three_figures(value / step)} {name}"
    return f"{int(value):,} B" if value.denominator == 1 else f"{_three_figures(value)} B"


def json_number(value: Fraction) -> int | float:
    """Return a rational as a JSON number: an integer where it is one."""
    return int(value) if value.denominator == 1 else float(value)
