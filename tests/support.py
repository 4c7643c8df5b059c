"""Paths, golden records and configs that many tests use."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from kvgauge.sources.catalogue import find_model

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
GOLDEN = Path(__file__).parent / "golden"


def golden_lines(name: str) -> list[dict]:
    """Return the records of a golden file."""
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


@lru_cache
def _config_text(model: str) -> str:
    raw = find_model(model)
    assert raw is not None, f"{model} is not in the catalogue"
    return json.dumps(raw.config)


def config_of(model: str) -> dict:
    """Return the catalogue's config of a model, as a copy that may be changed."""
    return json.loads(_config_text(model))
