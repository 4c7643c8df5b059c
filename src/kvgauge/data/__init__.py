"""Facts: catalogue, model types, class defaults, explanations, schemas.

Read as plain files beside this module: ``importlib.resources`` would double the start-up time.
"""

from __future__ import annotations

from pathlib import Path


def data_file(name: str) -> Path:
    """Return the path of a data file."""
    return Path(__file__).parent / name


def read_data(name: str) -> str:
    """Return the text of a data file."""
    return data_file(name).read_text(encoding="utf-8")
