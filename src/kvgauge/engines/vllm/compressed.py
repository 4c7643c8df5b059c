"""DeepSeek-V4 in vLLM: window, compressed records, index keys and the compressors' own windows.

Source: ``models/deepseek_v4`` of vLLM 0.33.0. Every page is rounded up to a whole number of records' strides.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvgauge.dtypes import row_bytes
from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import LayerCache, LayerKind, Role, Stream

#: Tokens of a block of compressed records and index keys.
COMPRESSED_BLOCK = 256
_WINDOW_BLOCK = 64
#: Tokens a block of a compressor's window, by the tokens that it joins.
_COMPRESSOR_BLOCKS = {4: 4, 128: 8}
_ALIGNMENT = {"fp8_ds_mla": 576}
_PLAIN_ALIGNMENT = 512


def compressed_specs(layer: LayerCache, dtype: str) -> Iterator[CacheSpec]:
    """Yield the specs of one of the layer's caches, each compressor's window after what it fills.

    Raises:
        FeatureUnsupportedError: a compression ratio whose blocks are not known.
    """
    alignment = _ALIGNMENT.get(dtype, _PLAIN_ALIGNMENT)
    rows = [s for s in layer.streams if s.role is not Role.COMPRESSOR]
    kept = tuple(_dtype(s, dtype) for s in rows)
    record = sum(row_bytes(d, s.role, s.vectors, s.width) for d, s in zip(kept, rows, strict=True))
    shape = (tuple((s.role.value, s.width) for s in rows), kept)
    if layer.kind is LayerKind.SLIDING:
        page = _round_up(_WINDOW_BLOCK * record, alignment)
        window = layer.window_tokens or 0
        yield CacheSpec(layer.index, SpecKind.SLIDING, _WINDOW_BLOCK, page, 0, window, shape)
        return
    ratio = rows[0].counted.step_tokens
    if ratio not in _COMPRESSOR_BLOCKS:
        raise FeatureUnsupportedError(
            f"how vllm keeps records of {ratio} tokens is not known",
            hint="--engine theory says what must be kept",
            field="compress_ratios",
        )
    kind = SpecKind.INDEX if layer.kind is LayerKind.INDEX else SpecKind.LATENT
    page = _round_up(COMPRESSED_BLOCK // ratio * record, alignment)
    yield CacheSpec(layer.index, kind, COMPRESSED_BLOCK, page, 0, 0, (*shape, ratio))
    for stream in layer.streams:
        if stream.role is Role.COMPRESSOR:
            yield _compressor_spec(layer.index, stream, _COMPRESSOR_BLOCKS[ratio], alignment)


def _compressor_spec(index: int, stream: Stream, block: int, alignment: int) -> CacheSpec:
    """One row a token of the compressor's window, in fp32 whatever the KV dtype."""
    row = row_bytes(stream.declared_dtype or "f32", stream.role, 1, stream.width)
    page = _round_up(block * row, alignment)
    return CacheSpec(index, SpecKind.SLIDING, block, page, 0, stream.vectors, ("compressor", stream.width))


def _dtype(stream: Stream, dtype: str) -> str:
    return stream.declared_dtype or dtype if stream.role is Role.INDEX else dtype


def _round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
