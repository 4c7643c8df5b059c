"""Bytes of one token on one rank, by pool, and the layers of each pipeline stage.

Source: ``model_executor/pool_configurator.py`` and ``configs/model_config.py`` of SGLang 0.5.23. The engine
prices every layer of a pool alike, by the heads and widths that the config states for the model.
"""

from __future__ import annotations

from dataclasses import replace

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import row_bytes
from kvgauge.engines.base import rank_vectors
from kvgauge.engines.sglang.architectures import WINDOW_POOLS, class_name
from kvgauge.engines.sglang.backends import Attention
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.versions import SglangRules
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import STATE_KINDS, LayerCache, LayerKind, Role
from kvgauge.values import dataclass

_WINDOWS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})
_PLAIN = frozenset({LayerKind.FULL, LayerKind.CROSS, *_WINDOWS})
_INDEXES = frozenset({LayerKind.INDEX, LayerKind.BLOCK_INDEX})
#: Layers that keep nothing are paid for all the same where every layer is attention to the engine.
_UNKEPT = frozenset({LayerKind.NONE, LayerKind.SHARED})
_SCALED_BLOCK = 32


@dataclass(frozen=True, slots=True)
class LayerCell:
    """What one layer adds to one token.

    Args:
        index: of the layer, which places it on a pipeline stage.
        window: it lies in the pool of windows.
        row_bytes: of its K and V, or of its latent.
        elements: values of a row, of which mxfp8 scales one in 32.
        index_bytes: of the keys of its own index.
        unpriced_bytes: of those, what the budget does not count.
    """

    index: int
    window: bool
    row_bytes: int
    elements: int
    index_bytes: int = 0
    unpriced_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CellRules:
    """What rows are priced with.

    Args:
        form: format of the cache.
        model_dtype: canonical dtype of activations.
    """

    form: str
    model_dtype: str
    settings: SglangSettings
    attention: Attention
    rules: SglangRules


def has_window_pool(architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules) -> bool:
    """Whether window layers have a pool of their own: listed architectures alone."""
    if rules.window_pools == "none" or not settings.window_pools:
        return False
    listed = class_name(architecture) in WINDOW_POOLS[rules.window_architectures]
    opted = dict(architecture.dimensions).get("is_hybrid_swa", 0) == 1
    return (listed or opted) and any(layer.kind in _WINDOWS for layer in architecture.layers)


def layer_cells(architecture: ModelArchitecture, words: CellRules) -> tuple[LayerCell, ...]:
    """Return what every layer adds to a token; state layers add nothing.

    Raises:
        FeatureUnsupportedError: a design that SGLang does not keep, or ranks that do not divide the heads.
    """
    _check_kinds(architecture)
    two_pools = has_window_pool(architecture, words.settings, words.rules)
    has_states = any(layer.kind in STATE_KINDS for layer in architecture.layers)
    by_index = {layer.index: layer for layer in architecture.layers if layer.kind in _PLAIN}
    main = _model_layer(architecture)
    cells: list[LayerCell] = []
    for layer in architecture.layers:
        if layer.kind in STATE_KINDS or layer.kind in _INDEXES:
            continue
        if layer.kind is LayerKind.NONE and (has_states or main is None):
            continue
        if layer.kind is LayerKind.LATENT:
            cells.append(_latent_cell(layer, words))
            continue
        shown = by_index.get(layer.shares_cache_of, layer) if layer.shares_cache_of is not None else layer
        window = two_pools and shown.kind in _WINDOWS
        priced = shown if two_pools and shown.kind in _PLAIN else main
        if priced is None:
            continue
        cells.append(_plain_cell(layer.index, priced, words, window=window))
    return _with_indexes(architecture, cells, words)


def _check_kinds(architecture: ModelArchitecture) -> None:
    known = _PLAIN | _INDEXES | _UNKEPT | STATE_KINDS | {LayerKind.LATENT, LayerKind.COMPRESSED}
    for layer in architecture.layers:
        if layer.kind not in known:
            raise FeatureUnsupportedError(
                f"how sglang keeps {layer.kind.value} layers is not known",
                hint="--engine theory says what must be kept",
                field="engine",
            )
        step = max((stream.counted.step_tokens for stream in layer.streams), default=1)
        if step > 1 and layer.mechanism.value != "compressed_attention":
            raise FeatureUnsupportedError(
                f"how sglang keeps records of {step} tokens is not known",
                hint="--engine theory says what must be kept",
                field="engine",
            )


def _model_layer(architecture: ModelArchitecture) -> LayerCache | None:
    """Return the layer whose heads and widths the config states for the model: a full one, else any.

    Raises:
        FeatureUnsupportedError: full layers differ in heads, which the engine refuses.
    """
    full = [layer for layer in architecture.layers if layer.kind is LayerKind.FULL]
    shapes = {tuple((s.vectors, s.width) for s in layer.streams) for layer in full}
    if len(shapes) > 1:
        raise FeatureUnsupportedError(
            f"sglang keeps one number of KV heads for all layers, this model has {len(shapes)}",
            hint="--engine vllm keeps layers of several shapes",
            field="engine",
        )
    plain = [layer for layer in architecture.layers if layer.kind in _PLAIN]
    return next(iter(full or plain), None)


def _plain_cell(index: int, layer: LayerCache, words: CellRules, *, window: bool) -> LayerCell:
    ranks = words.settings.attention_ranks
    size = elements = 0
    key_width = next((s.width for s in layer.streams if s.role is Role.KEY), 0)
    form = "fp8_e4m3" if words.form == "mxfp8" else words.form
    for stream in layer.streams:
        vectors = rank_vectors(stream.vectors, stream.shard, ranks, stream.role)
        width = stream.width if words.rules.own_value_width else key_width or stream.width
        size += row_bytes(form, stream.role, vectors, width)
        elements += vectors * width
    return LayerCell(index, window, size, elements)


def _latent_cell(layer: LayerCache, words: CellRules) -> LayerCell:
    """Latents are whole on every rank. fp8 rows of a sparse one carry scales, and rope in bf16."""
    sparse = words.attention.sparse
    packed = sparse and words.form == "fp8_e4m3" and not words.attention.raw_sparse
    form = "fp8_ds_mla" if packed else "fp8_e4m3" if words.form == "mxfp8" else words.form
    elements = sum(stream.vectors * stream.width for stream in layer.streams)
    if form == "nvfp4":
        size = elements // 2 + elements // 16
    else:
        size = sum(row_bytes(form, stream.role, stream.vectors, stream.width) for stream in layer.streams)
    unpriced = size - elements if packed and not words.rules.sparse_priced else 0
    return LayerCell(layer.index, window=False, row_bytes=size, elements=0, unpriced_bytes=unpriced)


def _with_indexes(
    architecture: ModelArchitecture, cells: list[LayerCell], words: CellRules
) -> tuple[LayerCell, ...]:
    """Add the keys of indexes to the layers that own them, or to every latent one before they were shared."""
    indexes = {layer.index: layer for layer in architecture.layers if layer.kind in _INDEXES}
    if not indexes:
        return tuple(cells)
    sample = next(iter(indexes.values()))
    found: list[LayerCell] = []
    for cell in cells:
        own = indexes.get(cell.index)
        if own is None and sample.kind is LayerKind.INDEX and not words.rules.index_shared:
            own = sample
        size = 0 if own is None else _index_bytes(own, words)
        unpriced = cell.unpriced_bytes + (0 if words.rules.index_budgeted else size)
        found.append(replace(cell, index_bytes=size, unpriced_bytes=unpriced))
    return tuple(found)


def _index_bytes(layer: LayerCache, words: CellRules) -> int:
    """An index of latents is fp8 with scales; one of blocks follows fp8 on Hopper, else the model dtype."""
    stream = layer.streams[0]
    if layer.kind is LayerKind.INDEX:
        return row_bytes(stream.declared_dtype or "fp8_e4m3", stream.role, stream.vectors, stream.width)
    eight = words.form == "fp8_e4m3" and (
        words.settings.gpu.major == 9 or words.attention.backend == "trtllm_mha"
    )
    return stream.vectors * stream.width * (1 if eight else 2)


def token_bytes(cells: tuple[LayerCell, ...], form: str) -> int:
    """Return the bytes of one token over layers of one pool, as they are budgeted; mxfp8 with its scales."""
    scales = sum(cell.elements for cell in cells) // _SCALED_BLOCK if form == "mxfp8" else 0
    return sum(cell.row_bytes + cell.index_bytes - cell.unpriced_bytes for cell in cells) + scales
