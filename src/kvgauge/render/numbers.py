"""Ratios and shares as text: three figures, zeros kept."""

from __future__ import annotations

from fractions import Fraction


def ratio_text(ratio: Fraction | None) -> str:
    """Return a ratio in three figures, or nothing.

    >>> ratio_text(Fraction(1, 3)), ratio_text(Fraction(1234, 10)), ratio_text(Fraction(1)), ratio_text(None)
    ('0.333', '123', '1.00', '')
    """
    if ratio is None:
        return ""
    value = float(ratio)
    if value >= 999.5:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 0.001 else f"{value:#.3g}".rstrip(".")


def share_text(share: Fraction) -> str:
    """Return a share as a percentage in three figures.

    >>> share_text(Fraction(6, 52)), share_text(Fraction(14, 100)), share_text(Fraction(1))
    ('11.5 %', '14.0 %', '100 %')
    """
    return f"{ratio_text(100 * share)} %"


def change_text(change: Fraction | None) -> str:
    """Return a change in whole per cent; rounded, but never to nothing or to everything that it is not.

    >>> change_text(Fraction(-45, 100)), change_text(Fraction(1, 3)), change_text(Fraction(-9996, 10000))
    ('−45 %', '+33 %', '−99.96 %')
    """
    if change is None:
        return ""
    percent = 100 * change
    decimals = next(
        (n for n in range(4) if round(percent, n) not in (0, -100) or round(percent, n) == percent), 4
    )
    sign = "−" if percent < 0 else "+" if percent > 0 else ""
    return f"{sign}{abs(float(percent)):,.{decimals}f} %"


_STEPS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K"))


def count_text(count: int) -> str:
    """Return a number of parameters in three significant figures.

    >>> count_text(8_190_735_360), count_text(622_329_856), count_text(145)
    ('8.19 B', '622 M', '145')
    """
    for size, letter in _STEPS:
        if count >= size:
            value = count / size
            digits = 2 if value < 10 else 1 if value < 100 else 0
            return f"{value:.{digits}f} {letter}"
    return str(count)
