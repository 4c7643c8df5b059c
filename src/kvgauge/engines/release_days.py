"""The newest release of an engine on a day, for logs that state a day and no version."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import cast

from kvgauge.data import read_data

_DAY = re.compile(r"20\d\d-\d\d-\d\d")


@lru_cache(maxsize=4)
def _days(engine: str) -> tuple[tuple[str, str], ...]:
    found = cast("dict[str, dict[str, str]]", json.loads(read_data("release_days.json"))).get(engine, {})
    return tuple(sorted((day, version) for version, day in found.items()))


def released_by(engine: str, day: str) -> str | None:
    """Return the newest version whose release is known and not after ``day``; None without one.

    >>> [released_by("sglang", day) for day in ("2025-10-07", "2025-10", "2020-01-01")]
    ['0.5.3', None, None]
    """
    if not _DAY.fullmatch(day[:10]):
        return None
    known = [version for at, version in _days(engine) if at <= day[:10]]
    return known[-1] if known else None


__all__ = ["released_by"]
