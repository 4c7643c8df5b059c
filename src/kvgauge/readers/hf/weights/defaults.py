"""What a Transformers class assumes for an omitted field that tensor shapes follow from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from kvgauge.data import read_data


@lru_cache(maxsize=1)
def _text() -> str:
    return "\n" + read_data("weight_defaults.jsonl")


@lru_cache(maxsize=256)
def weight_defaults(model_type: str) -> Mapping[str, object]:
    """Return the class defaults of a model type; empty if unknown."""
    if not model_type or '"' in model_type or "\n" in model_type:
        return {}
    start = _text().find(f'\n{{"{model_type}":')
    if start < 0:
        return {}
    row: dict[str, object] = json.loads(_text()[start + 1 :].split("\n", 1)[0])[model_type]
    return row
