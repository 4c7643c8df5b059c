"""DeepSeek-V4 from GGUF keys: a window of records, and compressed records every 4 or 128 tokens."""

from __future__ import annotations

from kvgauge.layers import Counted, LayerCache, LayerKind, Mechanism, Stream
from kvgauge.readers.gguf.metadata import Metadata
from kvgauge.readers.streams import DSA_INDEX_DTYPE, compressor_ring, index_stream, record_streams
from kvgauge.readers.values import MAX_WINDOW

#: Ratio -> (windows that overlap, layers have an index).
_DESIGNS = {4: (2, True), 128: (1, False)}


def compressed_caches(meta: Metadata, index: int, ratio: int) -> tuple[LayerCache, ...]:
    """Return the window, and for a ratio the compressed records and their index keys, of one block."""
    window = meta.count(
        "attention.sliding_window", high=MAX_WINDOW, because="every layer of this design needs"
    )
    width = meta.count("attention.key_length", because="is the width of a record")
    rope = meta.count("rope.dimension_count", low=0, high=width, because="is the rope part of a record")
    shape = ("attention.key_length", "rope.dimension_count")
    caches = [
        LayerCache(
            index,
            LayerKind.SLIDING,
            Mechanism.COMPRESSED_ATTENTION,
            record_streams(width, rope, Counted(to_tokens=window)),
            window_tokens=window,
            sources=meta.sources(*shape, "attention.sliding_window"),
        )
    ]
    if not ratio:
        return tuple(caches)
    if ratio not in _DESIGNS:
        raise meta.invalid("attention.compress_ratios", f"holds {ratio}; 0, 4 and 128 are known")
    overlap, indexed = _DESIGNS[ratio]
    counted = Counted(step_tokens=ratio)
    records = (*record_streams(width, rope, counted), compressor_ring(ratio, overlap, width))
    caches.append(_part(meta, index, LayerKind.COMPRESSED, records, shape))
    if indexed:
        name = "attention.indexer.key_length"
        keys = meta.count(name, because="is the width of an index key")
        streams = (index_stream(keys, DSA_INDEX_DTYPE, counted), compressor_ring(ratio, overlap, keys))
        caches.append(_part(meta, index, LayerKind.INDEX, streams, (name,)))
    return tuple(caches)


def _part(
    meta: Metadata, index: int, kind: LayerKind, streams: tuple[Stream, ...], names: tuple[str, ...]
) -> LayerCache:
    sources = meta.sources(*names, "attention.compress_ratios")
    return LayerCache(index, kind, Mechanism.COMPRESSED_ATTENTION, streams, sources=sources)
