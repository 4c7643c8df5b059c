"""A field that is lost (absent or null) is refused or makes no difference; it never changes a number in silence.

Every field of one model of each type in the catalogue is taken away in turn. What is left to differ is listed with
the reason: there, absence has a meaning of its own in the model's class.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import kvgauge
from kvgauge.sources.catalogue import all_models

#: (model type, field) -> what absence or null means there.
MEANT = {
    # Transformers classes: K and V heads that are not stated equal the query heads.
    ("*", "num_key_value_heads"),
    # No window at all (phi-4, Mistral since 0.2, StarCoder2's class default, flash-linear-attention).
    ("mistral", "sliding_window"), ("mistral", "sliding_window_size"), ("starcoder2", "sliding_window"),
    ("phi3", "sliding_window"), ("phi3_v", "sliding_window"), ("phimoe", "sliding_window"),
    ("infimm-zephyr", "sliding_window"), ("samba", "window_size"),
    # head_dim that is not stated is hidden_size / heads in these classes.
    ("mistral", "head_dim"), ("llama", "head_dim"), ("minicpmv", "head_dim"), ("falcon_h1", "head_dim"),
    # A nested config without the field has its class default; said in a note.
    ("gemma3_text", "sliding_window"),
    # Gemma 4: K and V projected apart, or null, means the heads of the other layers; five windows to one full layer.
    ("gemma4_text", "num_global_key_value_heads"), ("gemma4_unified_text", "num_global_key_value_heads"),
    ("gemma4_text", "layer_types"),
    # The dtype that is assumed instead is said in a note.
    ("*", "torch_dtype"), ("*", "dtype"),
    # Switches whose absence is off.
    ("falcon", "new_decoder_architecture"), ("falcon", "multi_query"), ("gpt_bigcode", "multi_query"),
}  # fmt: skip
OTHER_PARTS = {"vision_config", "audio_config", "rope_scaling", "rope_parameters", "quantization_config"}


def one_model_a_type() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for raw, _ in all_models():
        found.setdefault(
            kvgauge.load(dict(raw.config)).architecture.model_type, json.loads(json.dumps(raw.config))
        )
    return found


def fields(config: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in config.items():
        if value is not None:
            yield (*path, key)
        if isinstance(value, dict) and key not in OTHER_PARTS:
            yield from fields(value, (*path, key))


def without(config: dict[str, Any], path: tuple[str, ...], *, null: bool) -> dict[str, Any]:
    copy = json.loads(json.dumps(config))
    level = copy
    for key in path[:-1]:
        level = level[key]
    if null:
        level[path[-1]] = None
    else:
        del level[path[-1]]
    return copy


def total(config: dict[str, Any]) -> int | None:
    try:
        return kvgauge.size(config, context=131_072, kv_dtype="bf16", encoder_tokens=100).cache.total_bytes
    except kvgauge.KvgaugeError as error:
        assert error.code in ("missing_field", "invalid_field", "unknown_architecture")
        assert error.hint or error.field
        return None


@pytest.mark.parametrize("null", [False, True], ids=["absent", "null"])
def test_nothing_is_lost_in_silence(null):
    silent: list[tuple[str, str]] = []
    for model_type, config in one_model_a_type().items():
        whole = total(config)
        for path in fields(config):
            left = total(without(config, path, null=null))
            meant = {(model_type, path[-1]), ("*", path[-1])} & MEANT
            if left not in (None, whole) and not meant:
                silent.append((model_type, ".".join(path)))
    assert silent == []
