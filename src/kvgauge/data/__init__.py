"""Facts: catalogue, model types, class defaults, explanations, schemas.

Read as plain files beside this module: ``importlib.resources`` would double the start-up time, and
``pathlib`` add a tenth.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER = __file__.removesuffix("__init__.py")


def data_file(name: str) -> Path:
    """Return the path of a data file."""
    from pathlib import Path  # noqa: PLC0415 - see above

    return Path(_FOLDER) / name


def read_data(name: str) -> str:
    """Return the text of a data file."""
    with open(_FOLDER + name, encoding="utf-8") as stream:  # noqa: PTH123 - see above
        return stream.read()


def read_part(name: str, start: int, length: int) -> bytes:
    """Return a range of bytes of a data file."""
    with open(_FOLDER + name, "rb") as stream:  # noqa: PTH123 - see above
        stream.seek(start)
        return stream.read(length)


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
