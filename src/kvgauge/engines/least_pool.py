"""The least pool that holds something, for engines that deal a budget out in shares: it is searched for."""

from __future__ import annotations

from collections.abc import Callable

#: A pool that no machine has; what does not fit here does not fit at all.
MOST_BYTES = 1 << 100


def least_bytes(start_bytes: int, holds: Callable[[int], bool]) -> int:
    """Return the least pool that holds; what holds in a pool holds in every larger one.

    Args:
        start_bytes: a first guess, which need not hold.

    >>> least_bytes(100, lambda size: size >= 12345)
    12345
    """
    low, high = -1, max(1, start_bytes)
    while not holds(high):
        if high >= MOST_BYTES:
            return high
        low, high = high, min(MOST_BYTES, 2 * high)
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


__all__ = ["MOST_BYTES", "least_bytes"]
