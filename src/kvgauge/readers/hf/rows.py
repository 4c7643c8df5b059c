"""One data row a model type: what its code does that no field of a config says.

``data/model_types.json`` holds the rows, ``data/class_defaults.jsonl`` the class defaults. A new
architecture of known mechanisms is one row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import cast

from kvgauge.data import read_data, read_row
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class LayerCycle:
    """Layer words that live in model code: repeated over the layers, some indices forced to full."""

    words: tuple[str, ...]
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
        window_everywhere: a window without a pattern slides on every layer.
        window_unused: the model's code never reads sliding_window.
        sliding_heads_multiple: KV heads of sliding layers over those of full ones where no field says.
        needs: fields without which a file of this type says too little, alternatives split by "|"; null
            counts as an answer where a "?" follows, a class default does not where a "!" does.
        implied: fields that the class fills in, whatever else the file holds.
        layers: layer words that live in model code; windows among them need a window in force.
        layer_word: what every layer is where nothing says otherwise (default full).
        state: the recurrence behind "linear_attention" where fields don't tell.
        chunked: attention_chunk_size is in force.
        encoder_only: no cache by design.
        refused: what of this design is not known; models of the type are refused.
        text: model type of a nested text config that does not name its own.
    """

    model_type: str
    known: bool = False
    reader: str = "decoder"
    multi_head_default: bool = False
    head_dim_stated: bool = False
    switch_default: bool = True
    window_everywhere: bool = False
    window_unused: bool = False
    needs: tuple[str, ...] = ()
    sliding_heads_multiple: int = 1
    implied: Mapping[str, object] = field(default_factory=dict)
    layers: LayerCycle | None = None
    layer_word: str | None = None
    state: str | None = None
    chunked: bool = False
    encoder_only: bool = False
    refused: str = ""
    text: str | None = None


@lru_cache(maxsize=1)
def _table() -> dict[str, object]:
    table: dict[str, object] = json.loads(read_data("model_types.json"))
    return table


def _rows() -> dict[str, dict[str, object]]:
    return cast("dict[str, dict[str, object]]", _table()["model_types"])


def _encoders() -> list[str]:
    return cast("list[str]", _table()["encoders"])


def class_defaults(model_type: str) -> Mapping[str, object]:
    """Return what the Transformers class of a type declares for omitted fields; empty if unknown."""
    return read_row("class_defaults.jsonl", model_type)


@lru_cache(maxsize=256)
def model_type_row(model_type: str) -> ModelTypeRow:
    """Return the row of a model type; an unknown type gets one with ``known`` false."""
    raw = _rows().get(model_type)
    if raw is None:
        encoder = model_type in _encoders()
        return ModelTypeRow(model_type, known=encoder, encoder_only=encoder)
    values = dict(raw)
    base = values.pop("like", None)
    if isinstance(base, str):
        values = {**_rows()[base], **values}
        values.pop("like", None)
    spec = values.get("layers")
    if isinstance(spec, dict):
        values["layers"] = LayerCycle(tuple(spec["cycle"]), tuple(spec.get("also_full", ())))
    needs = values.get("needs")
    if isinstance(needs, list):
        values["needs"] = tuple(needs)
    values.pop("source", None)
    return ModelTypeRow(model_type, known=True, **values)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _by_class_stem() -> Mapping[str, str]:
    return {_stem(name): name for name in (*_encoders(), *_rows())}


def _stem(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def model_type_of_class(class_name: str) -> str:
    """Return the model type that a class name of ``architectures`` belongs to, or an empty string.

    >>> model_type_of_class("MiniCPM3ForCausalLM")
    'minicpm3'
    """
    for suffix in ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "Model"):
        if class_name.endswith(suffix):
            return _by_class_stem().get(_stem(class_name.removesuffix(suffix)), "")
    return ""
