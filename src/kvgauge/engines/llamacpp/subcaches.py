"""Which sub-caches llama.cpp makes of a model's layers, and the bytes of each.

A layer's K, or its latent with the rope part, is one row of a cell; V another. Layers of one kind share a
sub-cache with cells of its own. Sources: ``create_memory`` of ``src/llama-model.cpp``,
``src/llama-kv-cache*.cpp``,
``src/llama-memory-recurrent.cpp`` of v0.5.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import row_bytes
from kvgauge.engines.llamacpp.builds import NEWEST
from kvgauge.engines.llamacpp.cells import ContextSizes
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import LayerCache, LayerKind, Mechanism, Role

#: Architectures whose state can be rolled back (``llm_arch_supports_rs_rollback``); elsewhere no snapshot
#: is kept.
ROLLBACK = frozenset(
    {
        "kimi-k3", "qwen35", "qwen35moe", "qwen4exp", "deepseek4", "nemotron_h", "nemotron_h_moe", "lfm2",
        "lfm2moe", "bailingmoe3",
    }
)  # fmt: skip

_WINDOWS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})
_MAIN = frozenset({LayerKind.FULL, LayerKind.LATENT})
_COMPRESSED = {4: "kv.csa", 128: "kv.hca"}


@dataclass(frozen=True, slots=True)
class SubCache:
    """Part of a sub-cache: one layer's tensor.

    Args:
        name: as in allocations, ``kv.swa.k``.
        kind: ``cache`` or ``state``.
        layer: index of the block that it belongs to, which decides where it lies.
        cells: cells of a stream, or rows of a state.
    """

    name: str
    kind: str
    layer: int
    cells: int
    streams: int
    row_bytes: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the tensor."""
        return self.cells * self.streams * self.row_bytes


@dataclass(frozen=True)
class CacheBuilder:
    """Turns layer caches into tensors.

    Args:
        heads: query heads, for builds that keep latents expanded.
        widest_value: elements of the widest V row, which rows without flash attention are padded to.
        rollback: snapshots of a state beside its own.
        prefix: of the sub-caches' names.
    """

    settings: LlamaSettings
    sizes: ContextSizes
    model_type: str = ""
    heads: int = 0
    widest_value: int = 0
    rollback: int = 0
    k_type: str = "f16"
    v_type: str = "f16"
    prefix: str = "kv"

    def build(self, layers: Iterable[LayerCache]) -> tuple[SubCache, ...]:
        """Return the tensors of all layers."""
        return tuple(part for layer in layers for part in self._layer(layer))

    def _layer(self, layer: LayerCache) -> Iterable[SubCache]:
        if layer.mechanism is Mechanism.COMPRESSED_ATTENTION:
            return self._compressed(layer)
        if layer.kind in _MAIN:
            return self._attention(layer, self.prefix, self.sizes.cells)
        if layer.kind in _WINDOWS:
            shared = self.sizes.streams == 1
            cells = self.sizes.window_cells(layer.window_tokens or 0, self.settings, shared=shared)
            name = self.prefix + (".swa" if self.settings.build.window_pool else "")
            return self._attention(layer, name, cells)
        if layer.kind in (LayerKind.INDEX, LayerKind.BLOCK_INDEX):
            return self._index(layer)
        if layer.kind in (LayerKind.RECURRENT, LayerKind.CONVOLUTION):
            return self._state(layer)
        return ()  # shared, none, and the encoder's K and V, which are computed again

    def _attention(self, layer: LayerCache, name: str, cells: int) -> Iterable[SubCache]:
        streams = self.sizes.streams
        values = [s for s in layer.streams if s.role is Role.VALUE]
        keys = sum(s.elements for s in layer.streams if s.role is not Role.VALUE)
        value = sum(s.elements for s in values)
        if layer.mechanism is Mechanism.LATENT_ATTENTION:
            keys, value = self._latent(layer, keys)
        if value and self.settings.flash == "off":
            value = max(value, self.widest_value)  # transposed rows are as wide as the widest layer's
        yield SubCache(f"{name}.k", "cache", layer.index, cells, streams, self._row(self.k_type, keys))
        if value:
            yield SubCache(f"{name}.v", "cache", layer.index, cells, streams, self._row(self.v_type, value))

    def _latent(self, layer: LayerCache, row: int) -> tuple[int, int]:
        """Return elements of K and V that this build keeps of a latent.

        Raises:
            FeatureUnsupportedError: it keeps expanded heads, whose width the file does not state.
        """
        kept = self.settings.latents or self.settings.build.latents
        if kept == "k":
            return row, 0
        if kept == "kv":
            return row, layer.streams[0].elements
        if layer.head_widths is None or not self.heads:
            raise FeatureUnsupportedError(
                f"llama.cpp {self.settings.build.name} keeps the heads of {self.model_type} expanded, "
                "and their width is not stated",
                hint=f"a later build keeps the latent: --engine llama.cpp@{NEWEST.name}",
                field="engine",
            )
        return self.heads * layer.head_widths[0], self.heads * layer.head_widths[1]

    def _index(self, layer: LayerCache) -> Iterable[SubCache]:
        cells, streams = self.sizes.cells, self.sizes.streams
        width = sum(s.elements for s in layer.streams)
        yield SubCache(
            f"{self.prefix}.indexer.k", "cache", layer.index, cells, streams, self._row(self.k_type, width)
        )

    def _compressed(self, layer: LayerCache) -> Iterable[SubCache]:
        sequences = self.sizes.sequences
        rows = [s for s in layer.streams if s.role is not Role.COMPRESSOR]
        width = sum(s.elements for s in rows)
        if layer.kind is LayerKind.SLIDING:
            cells = self.sizes.window_cells(layer.window_tokens or 0, self.settings, shared=False)
            name = f"{self.prefix}.swa.k"
        else:
            ratio = rows[0].counted.step_tokens
            cells = self.sizes.compressed_cells(ratio)
            index = layer.kind is LayerKind.INDEX
            name = f"{self.prefix}.lightning_indexer.k" if index else f"{_COMPRESSED[ratio]}.k"
        yield SubCache(name, "cache", layer.index, cells, sequences, self._row(self.k_type, width))
        ring = sum(s.elements for s in layer.streams if s.role is Role.COMPRESSOR)
        if ring:
            planes = sequences * (1 + self.rollback)
            yield SubCache("dsv4.state", "state", layer.index, planes, 1, 4 * ring)

    def _state(self, layer: LayerCache) -> Iterable[SubCache]:
        """Return fp32 rows: one a sequence, and one a snapshot of it."""
        rows = self.sizes.sequences * (1 + self.rollback)
        for role, name in ((Role.CONV, "recurrent.r"), (Role.RECURRENT, "recurrent.s")):
            elements = sum(s.elements for s in layer.streams if s.role is role)
            if elements:
                yield SubCache(name, "state", layer.index, rows, 1, 4 * elements)

    def _row(self, dtype: str, elements: int) -> int:
        return row_bytes(dtype, Role.KEY, 1, elements)


def sub_caches(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes
) -> tuple[SubCache, ...]:
    """Return every tensor that a context of these settings keeps.

    Raises:
        FeatureUnsupportedError: a type whose blocks do not divide a row.
    """
    layers = architecture.layers
    builder = CacheBuilder(
        settings,
        sizes,
        model_type=architecture.model_type,
        heads=architecture.num_attention_heads or 0,
        widest_value=_widest_value((*layers, *architecture.mtp_layers)),
        rollback=settings.rollback_tokens if architecture.model_type in ROLLBACK else 0,
        k_type=settings.k_type,
        v_type=settings.v_type,
    )
    parts = [*builder.build(layers), *_block_values(builder, layers)]
    if settings.mtp and architecture.mtp_layers:
        draft = CacheBuilder(
            settings,
            sizes,
            widest_value=builder.widest_value,
            k_type=settings.draft_k_type,
            v_type=settings.draft_v_type,
            prefix="mtp.kv",
        )
        attention = [
            c for c in architecture.mtp_layers if c.kind not in (LayerKind.INDEX, LayerKind.COMPRESSED)
        ]
        parts += draft.build(attention)
    return tuple(parts)


def _block_values(builder: CacheBuilder, layers: tuple[LayerCache, ...]) -> Iterable[SubCache]:
    """Yield the V of block-sparse indexes: one head of the layer's V width that nothing reads.

    The index of MiniMax-M3 is a cache like any other (``src/llama-kv-cache-msa.cpp``), so it has a V.
    """
    widths = {c.index: c.streams[1].width for c in layers if c.mechanism is Mechanism.ATTENTION and c.streams}
    for layer in layers:
        if layer.kind is LayerKind.BLOCK_INDEX and layer.index in widths:
            row = row_bytes(builder.v_type, Role.KEY, 1, widths[layer.index])
            cells, streams = builder.sizes.cells, builder.sizes.streams
            yield SubCache("kv.indexer.v", "cache", layer.index, cells, streams, row)


def _widest_value(layers: Iterable[LayerCache]) -> int:
    """Return the widest V row over all layers, which rows without flash attention are padded to."""
    widths = [
        s.elements
        for layer in layers
        if layer.kind in _MAIN | _WINDOWS
        for s in layer.streams
        if s.role is Role.VALUE
    ]
    return max(widths, default=0)
