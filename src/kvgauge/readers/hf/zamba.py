"""Zamba and Zamba2: Mamba layers, some of which call a shared transformer block first.

The block's weights are shared, its cache is not: each call keeps K and V of its own beside the layer's state.
Attention reads the hidden state and the embedding side by side, so a head is 2 x hidden_size / heads wide.
Sources: arXiv 2405.16712, 2411.15242; Transformers ``configuration_zamba.py`` and ``configuration_zamba2.py``
for the layers of a file that lists none.
"""

from __future__ import annotations

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import Counted, LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf.config import MAX_HEADS, MAX_LAYERS, ConfigView
from kvgauge.readers.hf.mixers.state import state_cache
from kvgauge.readers.hf.rows import ModelTypeRow
from kvgauge.readers.hf.words import word_of
from kvgauge.readers.streams import key_value_streams

_LISTS = ("layers_block_type", "layer_types")


def read_layers(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Return a state for every layer, and K and V beside it where the shared block is called."""
    count = view.count("num_hidden_layers", high=MAX_LAYERS, because="says how many layers keep a state")
    hybrid = _hybrid_layers(view, count)
    layers: list[LayerCache] = []
    for index in range(count):
        layers.append(state_cache(view, row, index))
        if index in hybrid:
            layers.append(_attention(view, index))
    return tuple(layers), (), count


def _hybrid_layers(view: ConfigView, count: int) -> frozenset[int]:
    for name in _LISTS:
        words = view.items(name)
        if words is not None:
            if len(words) < count:
                where = view.path + name
                raise InvalidFieldError(f"{where} describes {len(words)} of {count} layers", field=where)
            kinds = [word_of(word, f"{view.path}{name}[{i}]") for i, word in enumerate(words[:count])]
            return frozenset(i for i, kind in enumerate(kinds) if kind == "full+state")
    listed = view.counts("hybrid_layer_ids", high=MAX_LAYERS)
    if listed is not None:
        where = view.path + "hybrid_layer_ids"
        if any(index >= count for index in listed):
            raise InvalidFieldError(f"{where} names layer {max(listed)} of {count}", field=where)
        return frozenset(listed)
    period = view.optional_count("attn_layer_period", high=MAX_LAYERS)
    if period is None:
        raise view.missing("layers_block_type", "says which layers call the shared block")
    offset = view.count("attn_layer_offset", low=0, high=MAX_LAYERS) % period
    # The first three layers are fixed, the period counts from the fourth on.
    return frozenset({2, *(i + 3 for i in range(count - 3) if i % period == offset)}) & frozenset(
        range(count)
    )


def _attention(view: ConfigView, index: int) -> LayerCache:
    queries = view.count("num_attention_heads", high=MAX_HEADS)
    heads = view.optional_count("num_key_value_heads", high=MAX_HEADS) or queries
    width = view.optional_count("attention_head_dim") or 2 * view.count("hidden_size") // queries
    sources = view.sources("num_key_value_heads", "num_attention_heads", "attention_head_dim", "hidden_size")
    return LayerCache(
        index,
        LayerKind.FULL,
        Mechanism.ATTENTION,
        key_value_streams(heads, width, width, Counted()),
        sources=sources,
    )
