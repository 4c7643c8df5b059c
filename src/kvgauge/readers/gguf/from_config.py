"""The GGUF metadata that a conversion of a config would hold: what llama.cpp makes of a model from a hub.

The config is read as any other; its layers are then written in GGUF's words, so both dialects describe one
design.
What the converter leaves out, or llama.cpp ignores (Phi-3's window, Gemma-3n's layers beyond 20), falls
away when
those words are read again. ``data/gguf_from_config.json`` names the architecture of each model type and
what is
special about its conversion, from the converter of llama.cpp v0.5.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import cast

from kvgauge.architecture import ModelArchitecture
from kvgauge.data import read_data
from kvgauge.errors import UnknownArchitectureError
from kvgauge.layers import LayerCache, LayerKind, Mechanism
from kvgauge.readers.gguf import written
from kvgauge.readers.gguf.rows import ArchitectureRow, architecture_row
from kvgauge.readers.hf import read_config
from kvgauge.readers.hf.block_configs import block_widths
from kvgauge.readers.hf.config import ConfigView, ReadLog
from kvgauge.readers.hf.nesting import language_view
from kvgauge.readers.values import is_int, short
from kvgauge.values import dataclass

Metadata = dict[str, object]

#: Key -> spellings in configs, the first that holds a whole number wins (``set_gguf_parameters``).
_SIZES: Mapping[str, tuple[str, ...]] = {
    "embedding_length": ("hidden_size", "n_embd", "d_model", "dim"),
    "feed_forward_length": ("prefix_dense_intermediate_size", "dense_intermediate_size", "intermediate_size",
                            "ffn_hidden_size", "n_inner", "hidden_dim"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "expert_count": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "expert_used_count": ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_top_k",
                          "moe_topk", "num_experts_per_topk"),
    "expert_feed_forward_length": ("moe_intermediate_size", "expert_intermediate_size"),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size", "shared_intermediate_size",
                                          "moe_shared_expert_intermediate_size", "share_expert_dim"),
    "attention.q_lora_rank": ("q_lora_rank",),
    "attention.indexer.head_count": ("index_n_heads", "indexer_n_heads"),
    "attention.indexer.top_k": ("index_topk", "indexer_budget"),
    "attention.output_group_count": ("o_groups",),
    "attention.output_lora_rank": ("o_lora_rank",),
    "hyper_connection.count": ("hc_mult", "hc_count"),
    "embedding_length_per_layer_input": ("hidden_size_per_layer_input",),
    "leading_dense_block_count": ("first_k_dense_replace", "num_dense_layers"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conversion:
    """How one model type is converted.

    Args:
        architecture: ``general.architecture``.
        moe_architecture: the same where the config has experts, if it is another.
        classes: ``architectures`` that this row is meant for; empty is any.
        mtp: layers of multi-token prediction are written too.
        lists_windows: the pattern of windows is written as a list, whatever llama.cpp's own period.
        ffn_is_expert: experts are as wide as ``intermediate_size``, which is written for both.
        ffn_field: what the feed-forward width is named, if it is something else; ``intermediate_size`` is
            then the experts'.
        ffn_times: the feed-forward width in embedding widths where the config states none.
    """

    architecture: str
    moe_architecture: str = ""
    mtp: bool = False
    lists_windows: bool = False
    ffn_is_expert: bool = False
    ffn_field: str = ""
    ffn_times: int = 0


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, object]]:
    return cast("Mapping[str, Mapping[str, object]]", json.loads(read_data("gguf_from_config.json")))


def conversion(model_type: str) -> Conversion | None:
    """Return how a model type is converted, or None where the converter has no mapping for it.

    >>> conversion("qwen3_moe").architecture
    'qwen3moe'
    """
    raw = _table().get(model_type)
    return None if raw is None else Conversion(**raw)  # type: ignore[arg-type]


def metadata_of_config(config: Mapping[str, object]) -> Metadata:
    """Return GGUF metadata, whole keys and values, as a conversion of a config would write them.

    Raises:
        UnknownArchitectureError: the converter has no mapping for this model type; names it.
        MissingFieldError, InvalidFieldError: the config can't be understood.
    """
    view, model_type = language_view(config, ReadLog())
    row = conversion(model_type)
    drafts = _draft_class(config)
    if drafts:
        raise UnknownArchitectureError(
            f"{short(drafts)} drafts for another model; its conversion to GGUF is not known",
            hint="give the model that it drafts for",
            field="architectures",
        )
    if row is None:
        raise UnknownArchitectureError(
            f"model type {short(model_type)} has no conversion to GGUF that is known",
            hint="give the metadata of its GGUF file, or another engine",
            field="model_type",
        )
    model = read_config(config)
    sizes = _sizes(view, row)
    name = row.moe_architecture if row.moe_architecture and sizes.get("expert_count") else row.architecture
    keys = _keys(model, view, architecture_row(name), row, sizes)
    return {"general.architecture": name, **{f"{name}.{key}": value for key, value in keys.items()}}


def _draft_class(config: Mapping[str, object]) -> str:
    """Return the class of a config that describes a draft of speculative decoding, or nothing."""
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else ""
    return name if isinstance(name, str) and ("Draft" in name or "Eagle3" in name) else ""


def _sizes(view: ConfigView, row: Conversion) -> Metadata:
    """Return sizes that only working buffers depend on; those that the config does not state are left out."""
    found: Metadata = {}
    for key, spellings in _SIZES.items():
        value = next((v for s in spellings if is_int(v := _value(view, s)) and v > 0), None)
        if value is not None:
            found[key] = value
    _add_feed_forward(found, view, row)
    if row.ffn_is_expert and "expert_count" in found and "feed_forward_length" in found:
        found.setdefault("expert_feed_forward_length", found["feed_forward_length"])
    return found


def _add_feed_forward(found: Metadata, view: ConfigView, row: Conversion) -> None:
    """Correct the feed-forward width where the converter takes it from elsewhere."""
    own, width = _value(view, row.ffn_field) if row.ffn_field else None, found.get("embedding_length")
    if is_int(own) and own > 0:
        found.setdefault("expert_feed_forward_length", found.get("feed_forward_length"))
        found["feed_forward_length"] = own
    adjusted = _value(view, "block_ff_dim")
    if is_int(adjusted) and _value(view, "block_auto_adjust_ff_dim") is True:
        step = _value(view, "block_multiple_of")
        step = step if is_int(step) and step > 0 else 256
        found["feed_forward_length"] = -(-(2 * adjusted // 3) // step) * step
    if row.ffn_times and "feed_forward_length" not in found and is_int(width):
        found["feed_forward_length"] = row.ffn_times * width


def _value(view: ConfigView, name: str) -> object:
    value = view.values.get(name)
    return view.class_defaults.get(name) if value is None and name not in view.values else value


def _keys(
    model: ModelArchitecture, view: ConfigView, target: ArchitectureRow, row: Conversion, sizes: Metadata
) -> Metadata:
    steps = _mtp_steps(model) if row.mtp else ()
    layers = [*_by_layer(model.layers, model.num_layers), *steps]
    keys: Metadata = {"block_count": len(layers), **sizes}
    hidden = sizes.get("embedding_length")
    if view.items("block_configs") is not None and is_int(hidden):
        keys["feed_forward_length"] = block_widths(view, model.num_layers, hidden)
    if model.context_limit_tokens:
        keys["context_length"] = model.context_limit_tokens
    if steps:
        keys["nextn_predict_layers"] = len(steps)
    keys |= written.heads(view, layers)
    keys |= written.widths(layers)
    keys |= written.windows(layers, view, listed=row.lists_windows or _needs_list(target))
    keys |= written.latents(layers, target, view, keys["attention.head_count"])
    keys |= written.indexes(layers, target)
    keys |= written.compressed(layers)
    keys |= written.states(layers, target)
    if target.state_layers == "no_kv_heads_or_ffn":
        keys["feed_forward_length"] = written.feed_forward(layers, keys.get("feed_forward_length"))
    shared = sum(any(c.kind is LayerKind.SHARED for c in caches) for caches in layers)
    if shared and target.own_layers is None:
        keys["attention.shared_kv_layers"] = shared
    return keys


def _needs_list(target: ArchitectureRow) -> bool:
    return target.windows is not None and target.windows.period is None


def _by_layer(layers: Iterable[LayerCache], count: int) -> list[tuple[LayerCache, ...]]:
    """Return the caches of each layer; a layer that is run again counts once more."""
    found: dict[int, list[LayerCache]] = {}
    for cache in layers:
        if cache.mechanism is not Mechanism.CROSS_ATTENTION:
            found.setdefault(cache.index, []).append(cache)
    return [tuple(found.get(index, ())) for index in range(count)]


def _mtp_steps(model: ModelArchitecture) -> tuple[tuple[LayerCache, ...], ...]:
    found: dict[int, list[LayerCache]] = {}
    for cache in model.mtp_layers:
        found.setdefault(cache.index, []).append(cache)
    return tuple(tuple(caches) for _, caches in sorted(found.items()))
