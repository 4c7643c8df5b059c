"""One data row a model type: what its code does that no field of a config says.

``data/model_types.json`` holds the rows, ``data/class_defaults.jsonl`` the class defaults. A new
architecture of known mechanisms is one row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Interleave:
    """Layers ``i % period in full`` are full, the others are ``other``."""

    period: int
    full: tuple[int, ...]
    other: str = "sliding"
    also_full: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelTypeRow:
    """What is known of a model type beside its config.

    Args:
        known: the type has a row; others are read by structure alone and marked inferred.
        reader: module of ``readers.hf`` for designs that are not a plain stack of decoder layers.
        multi_head_default: a missing KV head field means one KV head per query head.
        head_dim_stated: published files state head_dim; hidden/heads is not the rule.
        switch_default: what a missing use_sliding_window means.
        window_unused: the model's code never reads sliding_window.
        window_default: window in model code, used where the file has no window key.
        interleave: window layers that live in model code.
        pattern: other default patterns that live in model code.
        layer_word: what every layer is where nothing says otherwise (default full).
        state: the recurrence behind "linear_attention" where fields don't tell.
        chunked: attention_chunk_size is in force.
        encoder_only: no cache by design.
        text: model type of a nested text config that does not name its own.
    """

    model_type: str
    known: bool = False
    reader: str = "decoder"
    multi_head_default: bool = False
    head_dim_stated: bool = False
    switch_default: bool = True
    window_unused: bool = False
    window_default: int | None = None
    interleave: Interleave | None = None
    pattern: Interleave | None = None
    layer_word: str | None = None
    state: str | None = None
    chunked: bool = False
    encoder_only: bool = False
    text: str | None = None
    loops: str | None = None
    geometry: Mapping[str, object] = field(default_factory=dict)


def _data_text(name: str) -> str:
    return resources.files("kvgauge.data").joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _rows() -> dict[str, dict[str, object]]:
    table: dict[str, dict[str, object]] = json.loads(_data_text("model_types.json"))["model_types"]
    return table


@lru_cache(maxsize=1)
def _defaults_text() -> str:
    return "\n" + _data_text("class_defaults.jsonl")


@lru_cache(maxsize=256)
def class_defaults(model_type: str) -> Mapping[str, object]:
    """Return what the Transformers class of a type declares for omitted fields; empty if unknown."""
    if not model_type or '"' in model_type or "\n" in model_type:
        return {}
    start = _defaults_text().find(f'\n{{"{model_type}":')
    if start < 0:
        return {}
    line = _defaults_text()[start + 1 :].split("\n", 1)[0]
    row: dict[str, object] = json.loads(line)[model_type]
    return row


@lru_cache(maxsize=256)
def model_type_row(model_type: str) -> ModelTypeRow:
    """Return the row of a model type; an unknown type gets one with ``known`` false."""
    raw = _rows().get(model_type)
    if raw is None:
        return ModelTypeRow(model_type)
    values = dict(raw)
    base = values.pop("like", None)
    if isinstance(base, str):
        values = {**_rows()[base], **values}
        values.pop("like", None)
    for name in ("interleave", "pattern"):
        if isinstance(values.get(name), dict):
            spec: dict[str, object] = values[name]  # type: ignore[assignment]
            values[name] = Interleave(
                period=int(spec["period"]),  # type: ignore[call-overload]
                full=tuple(spec["full"]),  # type: ignore[arg-type]
                other=str(spec.get("other", "sliding")),
                also_full=tuple(spec.get("also_full", ())),  # type: ignore[arg-type]
            )
    values.pop("source", None)
    return ModelTypeRow(model_type, known=True, **values)  # type: ignore[arg-type]


def known_model_types() -> tuple[str, ...]:
    """Return all model types with a row."""
    return tuple(_rows())
