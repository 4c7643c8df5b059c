"""DeepSeek-V4: a window of records, and compressed records every 4 (CSA) or 128 (HCA) tokens.

A record is one vector of head_dim that serves as key and value. The compressor keeps a small fp32 ring
of what has not been compressed yet: both its key-value and its score half; CSA windows overlap, so
its ring is twice as long and twice as wide. Source: DeepSeek-V4 report; vLLM ``models/deepseek_v4``.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import Counted, LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf.config import MAX_WINDOW, ConfigView, as_count
from kvgauge.readers.streams import DSA_INDEX_DTYPE, compressor_ring, index_stream, record_streams

_RATE_NAMES = {"csa": "compressed_sparse_attention", "hca": "heavily_compressed_attention"}


def is_compressed(words: tuple[str, ...]) -> bool:
    """Whether a layer pattern holds compressed layers."""
    return "csa" in words or "hca" in words


def compressed_caches(view: ConfigView, index: int, word: str) -> tuple[LayerCache, ...]:
    """Return the window, the compressed records and the index keys of one layer."""
    window = view.count("sliding_window", high=MAX_WINDOW, because="every layer of this design needs")
    head_dim = view.count("head_dim")
    rope = view.count("qk_rope_head_dim", low=0, high=head_dim)
    names = ("head_dim", "qk_rope_head_dim", "sliding_window")
    caches = [
        LayerCache(
            index,
            LayerKind.SLIDING,
            Mechanism.COMPRESSED_ATTENTION,
            record_streams(head_dim, rope, Counted(to_tokens=window)),
            window_tokens=window,
            sources=view.sources(*names),
        )
    ]
    if word == "sliding":
        return tuple(caches)
    ratio = _ratio(view, index, word)
    overlap = 2 if word == "csa" else 1
    counted = Counted(step_tokens=ratio)
    sources = view.sources("head_dim", "qk_rope_head_dim", "compress_ratios", "compress_rates")
    caches.append(
        LayerCache(
            index,
            LayerKind.COMPRESSED,
            Mechanism.COMPRESSED_ATTENTION,
            (*record_streams(head_dim, rope, counted), compressor_ring(ratio, overlap, head_dim)),
            sources=sources,
        )
    )
    if word == "csa":
        width = view.count("index_head_dim", because="is the width of CSA's index keys")
        keys = index_stream(width, DSA_INDEX_DTYPE, counted)
        caches.append(
            LayerCache(
                index,
                LayerKind.INDEX,
                Mechanism.COMPRESSED_ATTENTION,
                (keys, compressor_ring(ratio, overlap, width)),
                sources=view.sources("index_head_dim", "compress_ratios", "compress_rates"),
            )
        )
    return tuple(caches)


def _ratio(view: ConfigView, index: int, word: str) -> int:
    ratios = view.counts("compress_ratios")
    if ratios is not None:
        return ratios[index]
    found = view.find("compress_rates")
    rates = found[1] if found else None
    if not isinstance(rates, Mapping):
        raise view.missing("compress_rates", "says how many tokens one compressed record stands for")
    where = f"{view.path}compress_rates.{_RATE_NAMES[word]}"
    if rates.get(_RATE_NAMES[word]) is None:
        raise InvalidFieldError(f"the config has no {where}", field=where)
    return as_count(rates[_RATE_NAMES[word]], where, low=1, high=MAX_WINDOW)
