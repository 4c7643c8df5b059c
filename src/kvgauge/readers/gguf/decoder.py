"""A stack of blocks, each turned into the caches that it keeps."""

from __future__ import annotations

from dataclasses import replace

from kvgauge.layers import LayerCache, LayerKind, Mechanism
from kvgauge.readers.gguf import plan
from kvgauge.readers.gguf.attention import attention_cache, cross_cache, index_cache, latent_cache, read_heads
from kvgauge.readers.gguf.metadata import Metadata
from kvgauge.readers.gguf.rows import ArchitectureRow
from kvgauge.readers.values import MAX_LAYERS

Layers = tuple[LayerCache, ...]

MLA_KEYS = ("attention.key_length_mla", "attention.value_length_mla")


def block_counts(meta: Metadata, row: ArchitectureRow) -> tuple[int, int]:
    """Return (blocks of the model, blocks with those of multi-token prediction)."""
    blocks = meta.count("block_count", high=MAX_LAYERS, because="says how many blocks keep a cache")
    if row.encoder_decoder:
        blocks = meta.optional_count("decoder_block_count", high=MAX_LAYERS) or blocks
    extra = meta.optional_count("nextn_predict_layers", low=0, high=MAX_LAYERS) or 0
    if extra >= blocks:
        raise meta.invalid(
            "nextn_predict_layers", f"is {extra} of {blocks} blocks: none is left for the model"
        )
    return blocks - extra, blocks


def read_layers(meta: Metadata, row: ArchitectureRow) -> tuple[Layers, Layers, int]:
    """Return the layer caches, those of multi-token prediction, and the number of layers."""
    builder = BlockBuilder(meta, row)
    count = builder.count
    layers = [cache for index in range(count) for cache in builder.build(index)]
    mtp = tuple(c for index in range(count, builder.blocks) for c in builder.build_mtp(index))
    loops = (meta.optional_count("num_loops", high=MAX_LAYERS) or 1) if row.loops else 1
    passes = [replace(c, index=c.index + count * turn) for turn in range(loops) for c in layers]
    if row.router_layer:
        passes.append(builder.router(count))
    return tuple(passes), tuple(c for c in mtp if c.kind is not LayerKind.NONE), count * loops


class BlockBuilder:
    """Builds the caches of one block; what the whole model shares is read once."""

    def __init__(self, meta: Metadata, row: ArchitectureRow) -> None:
        self.meta = meta
        self.row = row
        self.count, self.blocks = block_counts(meta, row)
        self.heads = read_heads(meta, row, self.blocks)
        self.window = None if row.compressed else plan.window_tokens(meta, row, self.count)
        none = (False,) * self.blocks
        self.slides = plan.sliding_blocks(meta, row, self.count, self.blocks) if self.window else none
        design = plan.state_design(meta, row, self.heads)
        self.mechanism: Mechanism | None = design[0] if design else None
        self.state_layers = design[1] if design else ""
        bare = self.state_layers == "no_kv_heads_or_ffn"
        self.feed_forward = plan.feed_forward(meta, self.blocks) if bare else ()
        self.histories = frozenset(meta.per_layer("ple.layers", len(meta.listed("ple.layers") or ())) or ())
        recurrent = (
            plan.recurrent_blocks(meta, row, self.state_layers, self.heads, self.count) if design else none
        )
        self.recurrent = recurrent
        self.indexed = plan.indexed_blocks(meta, row, recurrent, self.count)
        self.owners = plan.shared_owners(meta, row, self.slides, self.count)
        self.ratios = meta.per_layer("attention.compress_ratios", self.count) if row.compressed else None
        self.latent = self._is_latent()
        self.alike: dict[tuple[object, ...], Layers] = {}

    def _is_latent(self) -> bool:
        stated = [self.meta.has(name) for name in MLA_KEYS]
        if any(stated) != all(stated) or (self.row.latent_needed and not all(stated)):
            raise self.meta.missing(MLA_KEYS[1 if stated[0] else 0], "latent attention needs")
        one_head = set(self.heads.key_value) == {1} and max(self.heads.query) > 1
        if self.row.latent and one_head and self.meta.has("attention.kv_lora_rank") and not any(stated):
            raise self.meta.missing(MLA_KEYS[0], "rows of one head need: they are latents")
        return self.row.latent and all(stated)

    def build(self, index: int) -> Layers:
        """Return the caches of block ``index`` of the model."""
        owner = self.owners[index]
        if owner is not None:
            sources = self.meta.sources("attention.shared_kv_layers")
            shared = LayerCache(
                index, LayerKind.SHARED, Mechanism.SHARED, shares_cache_of=owner, sources=sources
            )
            return (shared,)
        own = self._own(index)
        if index not in self.histories:
            return own
        from kvgauge.readers.gguf.state import history_cache  # noqa: PLC0415

        return (*own, history_cache(self.meta, index))

    def _own(self, index: int) -> Layers:
        if self.row.compressed:
            return self._compressed(index)
        key = (self.recurrent[index], self.slides[index], self.indexed[index], self._attends(index),
               self.heads.query[index], self.heads.key_value[index], self._ratio(index))  # fmt: skip
        if key not in self.alike:
            self.alike[key] = self._build(index)
        self._check_widths(index)
        return tuple(replace(cache, index=index) for cache in self.alike[key])

    def _build(self, index: int) -> Layers:
        caches: list[LayerCache] = []
        if self._attends(index):
            caches.append(self._attention(index, slides=self.slides[index]))
            if self.row.encoder_decoder:
                caches.append(cross_cache(caches[0]))
        if self.mechanism is not None and self.recurrent[index]:
            from kvgauge.readers.gguf.state import state_cache  # noqa: PLC0415

            caches.append(state_cache(self.meta, self.mechanism, index))
        if self.indexed[index]:
            caches.append(index_cache(self.meta, self.row, index))
        return tuple(caches) or (LayerCache(index, LayerKind.NONE, Mechanism.NONE),)

    def _attends(self, index: int) -> bool:
        """Whether a block has attention: all have, but recurrent ones and Nemotron-H's feed-forward ones."""
        if self.state_layers == "beside":
            return True
        if self.feed_forward and self.feed_forward[index]:
            return False
        return not self.recurrent[index]

    def _attention(self, index: int, *, slides: bool) -> LayerCache:
        window = self.window if slides else None
        if self.latent:
            return latent_cache(self.meta, self.heads, index, window)
        return attention_cache(self.meta, self.row, self.heads, index, window)

    def _check_widths(self, index: int) -> None:
        """Hold every block against its own weights, not only the first of its kind."""
        if self.meta.shapes and self._attends(index) and not self.latent:
            attention_cache(
                self.meta, self.row, self.heads, index, self.window if self.slides[index] else None
            )

    def _ratio(self, index: int) -> object:
        """Return what pools a block's index keys; blocks that differ in it are not alike."""
        entries = self.meta.listed("attention.compress_ratios") if self.indexed[index] else None
        return None if entries is None or index >= len(entries) else entries[index]

    def _compressed(self, index: int) -> Layers:
        from kvgauge.readers.gguf.compressed import compressed_caches  # noqa: PLC0415

        if self.ratios is None:
            raise self.meta.missing("attention.compress_ratios", "says which layers compress")
        return compressed_caches(self.meta, index, self.ratios[index] if index < self.count else 0)

    def build_mtp(self, index: int) -> Layers:
        """Return the caches of a multi-token-prediction block: attention, index keys if the model has."""
        if self.row.compressed:
            return self._compressed(index)
        own = self._attention(index, slides=self.slides[index])
        if self.row.indexer is None or not any(self.indexed):
            return (own,)
        return (own, index_cache(self.meta, self.row, index))

    def router(self, index: int) -> LayerCache:
        """Return the extra attention layer of one head that routes adapters."""
        full = next(i for i in range(self.count) if self.heads.key_value[i])
        model = self._attention(full, slides=False)
        return replace(model, index=index, streams=tuple(replace(s, vectors=1) for s in model.streams))
