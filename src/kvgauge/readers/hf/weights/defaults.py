"""What a Transformers class assumes for an omitted field that tensor shapes follow from."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.data import read_row


def weight_defaults(model_type: str) -> Mapping[str, object]:
    """Return the class defaults of a model type; empty if unknown."""
    return read_row("weight_defaults.jsonl", model_type)
