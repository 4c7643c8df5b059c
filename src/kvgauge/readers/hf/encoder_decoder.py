"""Encoder-decoder models: every decoder layer keeps its own tokens and the encoder's.

T5 and its kin, BART and its kin, Whisper and other speech models. The self cache grows with decoder
tokens, the cross cache is written once with the encoder's output.
"""

from __future__ import annotations

from dataclasses import replace

from kvgauge.layers import Axis, Counted, LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf import decoder
from kvgauge.readers.hf.config import MAX_HEADS, MAX_LAYERS, ConfigView
from kvgauge.readers.hf.rows import ModelTypeRow
from kvgauge.readers.streams import key_value_streams

_DEPTHS = (
    "num_decoder_layers",
    "decoder_layers",
    "decoder_num_hidden_layers",
    "num_layers",
    "num_hidden_layers",
    "n_layers",
)
_HEADS = (
    "decoder_attention_heads",
    "num_heads",
    "num_attention_heads",
    "decoder_num_attention_heads",
    "num_decoder_attention_heads",
    "n_heads",
)
_WIDTHS = ("d_model", "hidden_size")


def _first(view: ConfigView, names: tuple[str, ...], because: str, high: int) -> tuple[int, str]:
    for name in names:
        value = view.values.get(name, view.class_defaults.get(name))
        if value is not None:
            level = view if name in view.values else None
            return (level or view).count(name, high=high), name
    raise view.missing(names[0], because)


def read_layers(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Return self and cross caches of every decoder layer."""
    if view.path.endswith("decoder.") and not view.mentions("decoder_layers"):
        return _nested_decoder(view, row)
    # Where the encoder's depth has a name of its own, so has the decoder's.
    depths = _DEPTHS[:3] if view.mentions("encoder_layers") else _DEPTHS
    depth, depth_name = _first(view, depths, "says how many decoder layers keep a cache", MAX_LAYERS)
    heads, heads_name = _first(view, _HEADS, "gives the heads of K and V", MAX_HEADS)
    shared = view.optional_count("decoder_num_key_value_heads") or view.optional_count("num_key_value_heads")
    width = view.optional_count("d_kv") or view.optional_count("head_dim")
    width_names: tuple[str, ...] = ("d_kv",)
    if width is None:
        model_width, name = _first(view, _WIDTHS, "gives the width of K and V", 1 << 26)
        if model_width % heads or row.head_dim_stated:
            raise view.missing("d_kv", f"is not {name} / {heads_name} ({model_width} / {heads})")
        width, width_names = model_width // heads, (name,)
    sources = tuple(view.path + n for n in (depth_name, heads_name, *width_names))
    layers: list[LayerCache] = []
    for index in range(depth):
        own = key_value_streams(shared or heads, width, width, Counted())
        cross = key_value_streams(shared or heads, width, width, Counted(Axis.ENCODER))
        layers.append(LayerCache(index, LayerKind.FULL, Mechanism.ATTENTION, own, sources=sources))
        layers.append(LayerCache(index, LayerKind.CROSS, Mechanism.CROSS_ATTENTION, cross, sources=sources))
    return tuple(layers), (), depth


def _nested_decoder(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Read a decoder config of its own, and give every attention layer a cross cache beside its own."""
    own, mtp, count = decoder.read_layers(view, replace(row, reader="decoder"))
    layers: list[LayerCache] = []
    for layer in own:
        layers.append(layer)
        if layer.kind in (LayerKind.FULL, LayerKind.SLIDING):
            streams = tuple(replace(s, counted=Counted(Axis.ENCODER)) for s in layer.streams)
            cross = LayerCache(layer.index, LayerKind.CROSS, Mechanism.CROSS_ATTENTION, streams)
            layers.append(replace(cross, sources=layer.sources))
    return tuple(layers), mtp, count
