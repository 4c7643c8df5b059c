"""Which sub-caches llama.cpp makes of a model's layers, and the bytes of each.

A layer's K, or its latent with the rope part, is one row of a cell; V another. Layers of one kind share a
sub-cache with cells of its own. Sources: ``create_memory`` of ``src/llama-model.cpp``,
``src/llama-kv-cache*.cpp``,
``src/llama-memory-recurrent.cpp`` of v0.5.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import row_bytes
from kvgauge.engines.llamacpp.builds import NEWEST
from kvgauge.engines.llamacpp.cells import ContextSizes
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import STATE_KINDS, LayerCache, LayerKind, Mechanism, Role, Shard, Stream
from kvgauge.values import dataclass

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
        dtype: of its rows, canonical.
        shapes: what one row is made of.
        cell_tokens: tokens that one cell stands for.
    """

    name: str
    kind: str
    layer: int
    cells: int
    streams: int
    row_bytes: int
    dtype: str = "f32"
    shapes: tuple[Stream, ...] = ()
    cell_tokens: int = 1

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
        if layer.kind in STATE_KINDS:
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
        kept = [s for s in layer.streams if s.role is not Role.VALUE]
        yield self._part(f"{name}.k", layer, cells, streams, self.k_type, _shapes(kept, keys, Role.KEY))
        if value:
            shapes = _shapes(values, value, Role.VALUE)
            yield self._part(f"{name}.v", layer, cells, streams, self.v_type, shapes)

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
        name = f"{self.prefix}.indexer.k"
        yield self._part(name, layer, cells, streams, self.k_type, layer.streams)

    def _compressed(self, layer: LayerCache) -> Iterable[SubCache]:
        sequences = self.sizes.sequences
        rows = tuple(s for s in layer.streams if s.role is not Role.COMPRESSOR)
        ratio = 1
        if layer.kind is LayerKind.SLIDING:
            cells = self.sizes.window_cells(layer.window_tokens or 0, self.settings, shared=False)
            name = f"{self.prefix}.swa.k"
        else:
            ratio = rows[0].counted.step_tokens
            cells = self.sizes.compressed_cells(ratio)
            index = layer.kind is LayerKind.INDEX
            name = f"{self.prefix}.lightning_indexer.k" if index else f"{_COMPRESSED[ratio]}.k"
        yield self._part(name, layer, cells, sequences, self.k_type, rows, ratio)
        ring = tuple(s for s in layer.streams if s.role is Role.COMPRESSOR)
        if ring:
            yield self._state_part("dsv4.state", layer, ring)

    def _state(self, layer: LayerCache) -> Iterable[SubCache]:
        """Return fp32 rows: one a sequence, and one a snapshot of it."""
        for role, name in ((Role.CONV, "recurrent.r"), (Role.RECURRENT, "recurrent.s")):
            held = tuple(s for s in layer.streams if s.role is role and s.elements)
            if held:
                yield self._state_part(name, layer, held)

    def _state_part(self, name: str, layer: LayerCache, shapes: tuple[Stream, ...]) -> SubCache:
        rows, elements = self.sizes.sequences * (1 + self.rollback), sum(s.elements for s in shapes)
        return SubCache(name, "state", layer.index, rows, 1, 4 * elements, "f32", shapes)

    def _part(
        self,
        name: str,
        layer: LayerCache,
        cells: int,
        streams: int,
        dtype: str,
        shapes: tuple[Stream, ...],
        ratio: int = 1,
    ) -> SubCache:
        row = row_bytes(dtype, Role.KEY, 1, sum(s.elements for s in shapes))
        return SubCache(name, "cache", layer.index, cells, streams, row, dtype, shapes, ratio)


def _shapes(streams: Iterable[Stream], elements: int, role: Role) -> tuple[Stream, ...]:
    """Return what a row is made of: the design's own streams, or as many elements as this build keeps."""
    own = tuple(streams)
    if sum(s.elements for s in own) == elements:
        return own
    heads = own[0].vectors if own and elements % own[0].vectors == 0 else 1
    return (Stream(role, heads, elements // heads, shard=Shard.REPLICATED),)


def sub_caches(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes
) -> tuple[SubCache, ...]:
    """Return every tensor that a context of these settings keeps.

    Raises:
        FeatureUnsupportedError: a type whose blocks do not divide a row.
    """
    return tuple(part for _, parts in parts_by_layer(architecture, settings, sizes) for part in parts)


def parts_by_layer(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes
) -> Iterator[tuple[LayerCache, tuple[SubCache, ...]]]:
    """Yield every cache of every layer with its tensors; those of multi-token prediction where it is on.

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
    values = {c.index: c.streams[1] for c in layers if c.mechanism is Mechanism.ATTENTION and c.streams}
    for layer in layers:
        yield layer, (*builder.build([layer]), *_block_values(builder, layer, values.get(layer.index)))
    if not settings.mtp:
        return
    draft = replace(
        builder, rollback=0, k_type=settings.draft_k_type, v_type=settings.draft_v_type, prefix="mtp.kv"
    )
    for layer in architecture.mtp_layers:
        is_read = layer.kind not in (LayerKind.INDEX, LayerKind.COMPRESSED)
        yield layer, draft.build([layer]) if is_read else ()


def _block_values(builder: CacheBuilder, layer: LayerCache, value: Stream | None) -> Iterator[SubCache]:
    """Yield the V of a block-sparse index: one head of the layer's V width that nothing reads.

    The index of MiniMax-M3 is a cache like any other (``src/llama-kv-cache-msa.cpp``), so it has a V.
    """
    if layer.kind is LayerKind.BLOCK_INDEX and value is not None:
        cells, streams = builder.sizes.cells, builder.sizes.streams
        row = row_bytes(builder.v_type, Role.KEY, 1, value.width)
        head = replace(value, vectors=1)
        yield SubCache("kv.indexer.v", "cache", layer.index, cells, streams, row, builder.v_type, (head,))


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
