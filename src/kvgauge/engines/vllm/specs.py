"""From an architecture to what each of its layers asks of vLLM on one tensor-parallel rank.

Sources: ``model_executor/layers/attention``, ``v1/kv_cache_interface.py`` and the model code of vLLM 0.33.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import row_bytes
from kvgauge.engines.base import rank_vectors
from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind
from kvgauge.engines.vllm.compressed import compressed_specs
from kvgauge.engines.vllm.kv_dtypes import KV_WORDS, model_dtype
from kvgauge.engines.vllm.settings import VllmSettings
from kvgauge.engines.vllm.states import state_spec
from kvgauge.engines.vllm.versions import VllmRules
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.identity import Identity
from kvgauge.layers import STATE_KINDS, LayerCache, LayerKind, Role, Shard, Stream
from kvgauge.values import dataclass

_KINDS = {
    LayerKind.FULL: SpecKind.FULL,
    LayerKind.SLIDING: SpecKind.SLIDING,
    LayerKind.CHUNKED: SpecKind.CHUNKED,
    LayerKind.LATENT: SpecKind.LATENT,
    LayerKind.INDEX: SpecKind.INDEX,
    LayerKind.BLOCK_INDEX: SpecKind.INDEX,
    LayerKind.CROSS: SpecKind.CROSS,
}
#: TurboQuant leaves this many attention layers at either end of a model without state as they are.
_TURBOQUANT_EDGE = 2


@dataclass(frozen=True, slots=True)
class SpecWords:
    """What the specs of one model are written with.

    Args:
        kv_dtype: canonical format of attention rows.
        model_dtype: canonical dtype of activations.
        block_tokens: block of attention layers before hybrids are aligned.
    """

    kv_dtype: str
    model_dtype: str
    block_tokens: int


def layer_specs(
    architecture: ModelArchitecture, settings: VllmSettings, word: str, block_tokens: int
) -> tuple[CacheSpec, ...]:
    """Return the specs of every cache on one rank, drafting layers behind the model's own.

    Raises:
        FeatureUnsupportedError: a design that vLLM does not run, or ranks that do not divide it.
    """
    if settings.speculation.drafter is not None:  # a model inside the key would be compared field by field
        return _layer_specs(architecture, settings, word, block_tokens)
    return _known_specs(Identity(architecture), _shaping(settings), word, block_tokens)


def first_engine_specs(specs: tuple[CacheSpec, ...], rules: VllmRules) -> tuple[CacheSpec, ...]:
    """Return caches as the V0 engine keeps them: cross-attention like any other, states beside the blocks.

    Source: ``worker/cache_engine.py`` of 0.7.3, where rows of latents are aligned.
    """
    return tuple(
        spec.as_full(spec.block_tokens)
        if spec.kind is SpecKind.CROSS
        else spec.with_rows_of(rules.latent_row_bytes)
        if spec.kind is SpecKind.LATENT
        else spec
        for spec in specs
        if spec.kind is not SpecKind.RECURRENT
    )


def _shaping(settings: VllmSettings) -> VllmSettings:
    """Return the settings that shape what a layer keeps on a rank, all others at their defaults."""
    return VllmSettings(
        tensor=settings.tensor,
        decode_context=settings.decode_context,
        dtype=settings.dtype,
        speculation=settings.speculation,
        state_dtype=settings.state_dtype,
        conv_dtype=settings.conv_dtype,
    )


@lru_cache(maxsize=128)
def _known_specs(
    architecture: Identity[ModelArchitecture], settings: VllmSettings, word: str, block_tokens: int
) -> tuple[CacheSpec, ...]:
    """Keep the specs of questions that differ in nothing a layer depends on: a search asks hundreds."""
    return _layer_specs(architecture.of, settings, word, block_tokens)


def _layer_specs(
    architecture: ModelArchitecture, settings: VllmSettings, word: str, block_tokens: int
) -> tuple[CacheSpec, ...]:
    own = model_dtype(architecture, settings.dtype)
    words = SpecWords(own if KV_WORDS[word] == "auto" else KV_WORDS[word], own, block_tokens)
    specs = list(_specs(architecture, architecture.layers, settings, words))
    speculation = settings.speculation
    if speculation.uses_mtp:
        specs += _specs(architecture, architecture.mtp_layers, settings, words)
    elif speculation.tokens and speculation.drafter is not None:
        specs += _drafter_specs(architecture, speculation.drafter, settings, words)
    return tuple(specs)


def _drafter_specs(
    target: ModelArchitecture, drafter: ModelArchitecture, settings: VllmSettings, words: SpecWords
) -> list[CacheSpec]:
    drafts = _specs(drafter, drafter.layers, settings, words)
    return [replace(spec, index=spec.index + target.num_layers) for spec in drafts]


def _specs(
    architecture: ModelArchitecture,
    layers: tuple[LayerCache, ...],
    settings: VllmSettings,
    words: SpecWords,
) -> Iterator[CacheSpec]:
    plain = _unquantised(architecture, words.kv_dtype)
    for layer in _in_order(layers):
        if layer.kind in (LayerKind.NONE, LayerKind.SHARED):
            continue
        own: Iterable[CacheSpec]
        if layer.kind in STATE_KINDS:
            own = (state_spec(architecture, layer, settings),)
        elif layer.mechanism.value == "compressed_attention":
            own = compressed_specs(layer, words.kv_dtype)
        else:
            kept = words.model_dtype if layer.index in plain else words.kv_dtype
            own = (_attention_spec(layer, settings, kept, words),)
        yield from (replace(spec, layer=layer) for spec in own)


def _in_order(layers: tuple[LayerCache, ...]) -> list[LayerCache]:
    """Order the caches of a layer as the engine registers them: an index before the rows that it serves."""
    first = (LayerKind.INDEX, LayerKind.BLOCK_INDEX)
    return sorted(layers, key=lambda layer: (layer.index, layer.kind not in first))


def _unquantised(architecture: ModelArchitecture, dtype: str) -> frozenset[int]:
    if not dtype.startswith("turboquant"):
        return frozenset()
    if any(layer.kind in STATE_KINDS for layer in architecture.layers):
        return frozenset()
    indices = [layer.index for layer in architecture.layers if layer.kind in _KINDS]
    return frozenset((*indices[:_TURBOQUANT_EDGE], *indices[-_TURBOQUANT_EDGE:]))


def _attention_spec(layer: LayerCache, settings: VllmSettings, dtype: str, words: SpecWords) -> CacheSpec:
    kind = _KINDS.get(layer.kind)
    if kind is None:
        raise FeatureUnsupportedError(
            f"how vllm keeps {layer.kind.value} layers is not known",
            hint="--engine theory says what must be kept",
            field="engine",
        )
    step = max(stream.counted.step_tokens for stream in layer.streams)
    if step > 1:
        raise FeatureUnsupportedError(
            f"how vllm keeps records of {step} tokens is not known",
            hint="--engine theory says what must be kept",
            field="engine",
        )
    _check_context_ranks(layer, kind, settings)
    widths = tuple((s.role.value, _rank_vectors(s, settings.tensor), s.width) for s in layer.streams)
    kept = tuple(_stored_dtype(s, dtype) for s in layer.streams)
    token = sum(
        row_bytes(form, stream.role, vectors, width, stream.columns)
        for stream, (_, vectors, width), form in zip(layer.streams, widths, kept, strict=True)
    )
    return CacheSpec(
        layer.index,
        kind,
        words.block_tokens,
        words.block_tokens * token,
        token,
        layer.window_tokens or 0,
        (widths, kept),
    )


def _rank_vectors(stream: Stream, tensor: int) -> int:
    return rank_vectors(stream.vectors, stream.shard, tensor, stream.role)


def _stored_dtype(stream: Stream, dtype: str) -> str:
    """An index keeps its own format; latents and their rope part follow the KV dtype."""
    return stream.declared_dtype or dtype if stream.role is Role.INDEX else dtype


def _check_context_ranks(layer: LayerCache, kind: SpecKind, settings: VllmSettings) -> None:
    ranks = settings.decode_context
    if ranks == 1:
        return
    if kind in (SpecKind.SLIDING, SpecKind.CHUNKED, SpecKind.CROSS):
        raise FeatureUnsupportedError(
            f"vllm does not spread {layer.kind.value} layers over decode-context ranks",
            hint="leave --decode-context-parallel-size out",
            field="dcp",
        )
    for stream in layer.streams:
        if stream.shard is not Shard.HEADS:
            continue
        replication = max(1, settings.tensor // max(1, stream.vectors))
        if replication % ranks:
            raise FeatureUnsupportedError(
                f"--dcp {ranks} needs each KV head on {ranks} ranks, "
                f"--tp {settings.tensor} holds each on {replication}",
                hint=f"at most --dcp {replication} with --tp {settings.tensor}",
                field="dcp",
            )
