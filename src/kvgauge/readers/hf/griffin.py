"""Griffin (RecurrentGemma): RG-LRU layers, and a sliding window at every attention block.

``block_types`` repeats over the depth; every attention block is local. Source: arXiv 2402.19427.
"""

from __future__ import annotations

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import Counted, LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf.config import MAX_HEADS, MAX_LAYERS, ConfigView
from kvgauge.readers.hf.mixers.state import state_cache
from kvgauge.readers.hf.model_code import window_tokens
from kvgauge.readers.hf.rows import ModelTypeRow
from kvgauge.readers.hf.words import word_of
from kvgauge.readers.streams import key_value_streams

_DEFAULT_BLOCKS = ("recurrent", "recurrent", "attention")
_LISTS = ("block_types", "_block_types", "layers_block_type", "layer_types")


def read_layers(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Return a state for recurrent blocks and a window for the others."""
    count = view.count("num_hidden_layers", high=MAX_LAYERS, because="says how often the block types repeat")
    blocks = _blocks(view)
    window = window_tokens(view, row)
    layers: list[LayerCache] = []
    for index in range(count):
        if blocks[index % len(blocks)] == "state":
            layers.append(state_cache(view, row, index))
        elif window is None:
            raise view.missing("attention_window_size", "attention blocks of this design need")
        else:
            layers.append(_local_attention(view, index, window))
    return tuple(layers), (), count


def _blocks(view: ConfigView) -> tuple[str, ...]:
    name, words = next(
        ((n, view.items(n)) for n in _LISTS if view.items(n) is not None), ("", _DEFAULT_BLOCKS)
    )
    if not words:
        raise InvalidFieldError(f"{view.path}{name} is empty", field=view.path + name)
    return tuple(word_of(word, f"{view.path}{name}[{i}]") for i, word in enumerate(words))


def _local_attention(view: ConfigView, index: int, window: int) -> LayerCache:
    queries = view.count("num_attention_heads", high=MAX_HEADS)
    heads = view.optional_count("num_key_value_heads", high=MAX_HEADS) or queries
    width = view.optional_count("head_dim") or view.count("hidden_size") // queries
    names = ("num_key_value_heads", "num_attention_heads", "head_dim", "hidden_size", "sliding_window")
    return LayerCache(
        index,
        LayerKind.SLIDING,
        Mechanism.ATTENTION,
        key_value_streams(heads, width, width, Counted(to_tokens=window)),
        window_tokens=window,
        sources=view.sources(*names),
    )
