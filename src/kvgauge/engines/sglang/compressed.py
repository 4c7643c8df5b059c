"""DeepSeek-V4: records of a window, compressed records with their index, and rings of the compressors' state.

Source: ``DSV4PoolConfigurator`` (``model_executor/pool_configurator.py``) and
``mem_cache/deepseek_v4_memory_pool.py`` of SGLang 0.5.23.
"""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import row_bytes
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import LayerCache, LayerKind, Role
from kvgauge.values import dataclass

#: Rows of a page are padded up to a multiple of this many bytes.
ALIGNMENT = 576
#: Rows of a compressor's ring, without drafting and with it.
RINGS = {4: (8, 16), 128: (128, 256)}
_STATE_BYTES = 4
#: Vectors a ring row holds: keys and gates, twice where compressions overlap.
_OVERLAPPED, _SIMPLE = 4, 2
_STATE_ROWS = 128


@dataclass(frozen=True, slots=True)
class CompressedCell:
    """What a token costs.

    Args:
        window_bytes: of one slot of the window pool, the ring of ratio 4 included.
        token_bytes: of compressed records and index keys of one token, by no window.
        ring_rows, ring_bytes: of the rings of ratio 128: rows of a request, bytes of a row over all layers.
    """

    window_bytes: float
    token_bytes: float
    ring_rows: int
    ring_bytes: int

    def full_bytes(self, ratio: float) -> float:
        """Bytes of a token of the main pool, its share of the window pool included."""
        return ratio * self.window_bytes + self.token_bytes

    def fixed_bytes(self, requests: int) -> int:
        """Bytes of the rings of that many running requests."""
        if not self.ring_bytes:
            return 0
        rows = (requests + 1) * self.ring_rows + self.ring_rows + 1
        return -(-rows // _STATE_ROWS) * _STATE_ROWS * self.ring_bytes

    @property
    def spare_ring_bytes(self) -> int:
        """Bytes of ring rows that are no request's."""
        return self.fixed_bytes(0)


def compressed_cell(
    architecture: ModelArchitecture, page_tokens: int, stage: range, *, drafts: bool
) -> CompressedCell:
    """Return what a token of one pipeline stage costs.

    Raises:
        FeatureUnsupportedError: a compression ratio whose rings are not known.
    """
    layers = [layer for layer in architecture.layers if layer.index in stage]
    windows = [layer for layer in layers if layer.kind is LayerKind.SLIDING]
    window = sum((_paged(layer, page_tokens) for layer in windows), 0.0)
    tokens = 0.0
    ring_bytes = 0
    for layer in layers:
        if layer.kind is LayerKind.COMPRESSED:
            ratio = _ratio(layer)
            tokens += _paged(layer, page_tokens // ratio) / ratio
            state = _elements(layer) * _STATE_BYTES
            if ratio == 4:
                rows = RINGS[4][drafts] / page_tokens
                window += rows * _OVERLAPPED * (state + _index_width(layers, layer) * _STATE_BYTES)
            else:
                ring_bytes += _SIMPLE * state
        elif layer.kind is LayerKind.INDEX:
            tokens += _index_row(layer) / _ratio(layer)
    if drafts and windows:
        growth = (len(windows) + 1) / len(windows)
        window, tokens = window * growth, tokens * growth
    return CompressedCell(window, tokens, RINGS[128][drafts], ring_bytes)


def _ratio(layer: LayerCache) -> int:
    ratio = layer.streams[0].counted.step_tokens
    if ratio not in RINGS:
        raise FeatureUnsupportedError(
            f"how sglang keeps records of {ratio} tokens is not known",
            hint="--engine theory says what must be kept",
            field="compress_ratios",
        )
    return ratio


def _paged(layer: LayerCache, page_rows: int) -> float:
    """Bytes of one row, the padding of its page included; the layout is FlashMLA's, whatever the KV dtype."""
    row = sum(
        row_bytes("fp8_ds_mla", s.role, s.vectors, s.width)
        for s in layer.streams
        if s.role in (Role.RECORD, Role.ROPE)
    )
    page = page_rows * row
    return -(-page // ALIGNMENT) * ALIGNMENT / page_rows


def _elements(layer: LayerCache) -> int:
    return sum(s.width for s in layer.streams if s.role in (Role.RECORD, Role.ROPE))


def _index_width(layers: list[LayerCache], beside: LayerCache) -> int:
    own = (one for one in layers if one.kind is LayerKind.INDEX and one.index == beside.index)
    return next((s.width for one in own for s in one.streams if s.role is Role.INDEX), 0)


def _index_row(layer: LayerCache) -> int:
    return sum(
        row_bytes("fp8_e4m3", s.role, s.vectors, s.width) for s in layer.streams if s.role is Role.INDEX
    )
