"""The decoder reader: a stack of layers, each word of the pattern turned into caches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kvgauge.errors import FeatureUnsupportedError, InvalidFieldError
from kvgauge.layers import LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf.config import MAX_LAYERS, ConfigView
from kvgauge.readers.hf.model_code import window_tokens
from kvgauge.readers.hf.patterns import read_pattern
from kvgauge.readers.hf.rows import ModelTypeRow
from kvgauge.readers.hf.words import LayerPattern, word_of

Layers = tuple[LayerCache, ...]

_ATTENTION_WORDS = frozenset({"full", "sliding", "chunked", "cross"})


def read_layers(view: ConfigView, row: ModelTypeRow) -> tuple[Layers, Layers, int]:
    """Return the layer caches, those of multi-token prediction, and the number of layers."""
    pattern = read_pattern(view, row)
    count = len(pattern.words)
    if not count:
        raise InvalidFieldError(f"{pattern.source} describes no layers", field=pattern.source)
    builder = LayerBuilder(view, row, pattern, count)
    layers: list[LayerCache] = []
    owners = layer_owners(view, pattern.words)
    for index, word in enumerate(pattern.words):
        owner = owners[index]
        if owner is None:
            layers.extend(builder.build(index, word))
        else:
            layers.append(LayerCache(index, LayerKind.SHARED, Mechanism.SHARED, shares_cache_of=owner))
    return tuple(layers), builder.build_mtp(), count


class LayerBuilder:
    """Builds the caches of one layer from its word; what the whole model shares is read once."""

    def __init__(self, view: ConfigView, row: ModelTypeRow, pattern: LayerPattern, count: int) -> None:
        from kvgauge.readers.hf.mixers import attention, block_index, compressed, latent  # noqa: PLC0415

        self.view = view
        self.row = row
        self.pattern = pattern
        self.count = count
        self.compressed = compressed.is_compressed(pattern.words)
        self.latent = not self.compressed and latent.is_latent(view)
        self.indexed = latent.has_indexer(view) and not self.compressed
        self.block_indexed = not self.indexed and block_index.has_block_index(view)
        self.varies = attention.varies_by_layer(view)
        self.alike: dict[tuple[str, str], Layers] = {}
        self.window = self._window()

    def _window(self) -> int | None:
        section = self.view.section("efficient_attention_config")
        nested = section.section("swa") if section else None
        if nested is None and isinstance(self.view.values.get("attn"), dict):
            nested = self.view.section("attn")
        if nested is not None and nested.has("sliding_window"):
            return window_tokens(nested, self.row)
        return window_tokens(self.view, self.row)

    def build(self, index: int, word: str) -> Layers:
        """Return the caches of layer ``index``."""
        if self.compressed:
            from kvgauge.readers.hf.mixers.compressed import compressed_caches  # noqa: PLC0415

            return compressed_caches(self.view, index, word)
        caches: list[LayerCache] = []
        parts = word.split("+")
        for part in parts:
            caches.extend(self._part(index, part, beside=parts[0]))
        return tuple(caches)

    def _part(self, index: int, part: str, *, beside: str) -> Layers:
        """Return one part of a layer; parts of one word are alike unless the config varies by layer."""
        key = (part, beside)
        if key not in self.alike:
            built = self._build_part(index, part, beside)
            if part in _ATTENTION_WORDS and self.varies:
                return (*built, *self._indexes(index, part))
            self.alike[key] = built
        own = tuple(replace(cache, index=index) for cache in self.alike[key])
        return (*own, *self._indexes(index, part))

    def _build_part(self, index: int, part: str, beside: str) -> Layers:
        if part == "none":
            return (LayerCache(index, LayerKind.NONE, Mechanism.NONE),)
        if part == "state":
            from kvgauge.readers.hf.mixers.state import state_cache  # noqa: PLC0415

            return (state_cache(self.view, self.row, index, beside),)
        if part == "conv":
            from kvgauge.readers.hf.mixers.state import short_convolution_cache  # noqa: PLC0415

            return (short_convolution_cache(self.view, index),)
        return self._attention(index, part)

    def _attention(self, index: int, word: str) -> Layers:
        from kvgauge.readers.hf.mixers import attention, latent  # noqa: PLC0415

        window = attention.window_of(self.view, word, self.window)
        if self.latent and word in ("full", "sliding"):
            return latent.latent_cache(self.view, index, window)
        return attention.attention_cache(self.view, self.row, index, self.count, word, window)

    def _indexes(self, index: int, word: str) -> Layers:
        if word != "full":
            return ()
        if self.indexed:
            from kvgauge.readers.hf.mixers.latent import index_cache  # noqa: PLC0415

            return index_cache(self.view, index, self.count)
        if self.block_indexed:
            from kvgauge.readers.hf.mixers.block_index import block_index_cache  # noqa: PLC0415

            return block_index_cache(self.view, index, self.count)
        return ()

    def build_mtp(self) -> Layers:
        """Return the caches of the multi-token-prediction module, after the model's own layers."""
        words = self._mtp_words()
        caches: list[LayerCache] = []
        for offset, word in enumerate(words):
            try:
                caches.extend(self.build(self.count + offset, word))
            except (InvalidFieldError, FeatureUnsupportedError):
                caches.extend(self.build(self.count - 1, word))
        return tuple(c for c in caches if c.kind is not LayerKind.NONE)

    def _mtp_words(self) -> Sequence[str]:
        view = self.view
        modules = view.optional_count("num_nextn_predict_layers", low=0, high=MAX_LAYERS)
        if modules is None and view.flag("use_mtp", default=False):
            modules = view.optional_count("num_mtp_modules", low=0, high=MAX_LAYERS)
        if not modules:
            return ()
        listed = view.items("mtp_layers_block_type")
        if listed is not None:
            return [
                word_of(v, f"{view.path}mtp_layers_block_type[{i}]") for i, v in enumerate(listed)
            ] * modules
        letters = view.text("mtp_hybrid_override_pattern")
        if letters is not None:
            return [
                word_of(c, view.path + "mtp_hybrid_override_pattern") for c in letters[:MAX_LAYERS]
            ] * modules
        if self.pattern.tail:
            return [*self.pattern.tail[:modules]]
        if self.compressed:
            return ["sliding"] * modules
        return ["full"] * modules


def layer_owners(view: ConfigView, words: Sequence[str]) -> list[int | None]:
    """Return, for each layer, the layer whose cache it reads, or None where it keeps its own."""
    count = len(words)
    owners: list[int | None] = [None] * count
    shared = view.optional_count("num_kv_shared_layers", low=0, high=MAX_LAYERS) or 0
    if shared:
        own = count - shared
        if own < 1:
            raise InvalidFieldError(
                f"num_kv_shared_layers is {shared} of {count} layers: none is left to own a cache",
                field=view.path + "num_kv_shared_layers",
            )
        for index in range(own, count):
            owner = next((i for i in range(own - 1, -1, -1) if words[i] == words[index]), None)
            if owner is None:
                raise InvalidFieldError(
                    f"layer {index} shares a {words[index]} layer's cache, none of the first {own} is one",
                    field=view.path + "num_kv_shared_layers",
                )
            owners[index] = owner
    elif view.flag("use_cla", default=False):
        factor = view.count("cla_share_factor", high=MAX_LAYERS, because="says how many layers share a cache")
        for index in range(count):
            if index % factor:
                owners[index] = index - index % factor
    return owners
