"""Facts: catalogue, model types, class defaults, explanations, schemas.

Read as plain files beside this module: ``importlib.resources`` would double the start-up time.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path


def data_file(name: str) -> Path:
    """Return the path of a data file."""
    return Path(__file__).parent / name


def read_data(name: str) -> str:
    """Return the text of a data file."""
    return data_file(name).read_text(encoding="utf-8")


@lru_cache(maxsize=4)
def _lines(name: str) -> str:
    return "\n" + read_data(name)


@lru_cache(maxsize=512)
def read_row(name: str, key: str) -> dict[str, object]:
    """Return the row of ``key`` in a file of one-key JSON lines, or an empty one; one line is parsed."""
    if not key or '"' in key or "\n" in key:
        return {}
    start = _lines(name).find(f'\n{{"{key}":')
    if start < 0:
        return {}
    row: dict[str, object] = json.loads(_lines(name)[start + 1 :].split("\n", 1)[0])[key]
    return row
