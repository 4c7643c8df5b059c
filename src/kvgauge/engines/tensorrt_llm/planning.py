"""``plan``: an architecture and the engine's settings become bytes a token, groups by window and states.

Source: ``_torch/pyexecutor/resource_manager.py`` and ``mamba_cache_manager`` of the main branch of 2026.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import row_bytes
from kvgauge.engines.base import rank_vectors
from kvgauge.engines.ranks import refuse_ranks
from kvgauge.engines.tensorrt_llm.kv_dtypes import kv_format, model_dtype
from kvgauge.engines.tensorrt_llm.pool import TrtllmGroup, TrtllmPlan
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
from kvgauge.engines.tensorrt_llm.versions import rules_for
from kvgauge.errors import FeatureUnsupportedError, MissingFieldError
from kvgauge.layers import STATE_KINDS, LayerCache, LayerKind, Mechanism, Role, Shard

_KEPT = frozenset({LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED, LayerKind.LATENT})
_UNKEPT = frozenset({LayerKind.NONE, LayerKind.SHARED})
_RECURRENCES = frozenset({Mechanism.MAMBA2, Mechanism.GATED_DELTA_NET, Mechanism.KIMI_DELTA})
#: Tokens of a block that keys of a sparse index are laid out for.
_INDEX_BLOCK = 64


def plan(architecture: ModelArchitecture, settings: TrtllmSettings) -> TrtllmPlan:
    """Return what TensorRT-LLM sets aside for a model under these settings.

    Raises:
        FeatureUnsupportedError: this version, dtype or layout can't hold the model.
        InvalidRequestError: a setting is malformed.
        MissingFieldError: nothing says how long a request may be.
    """
    rules = rules_for(settings.version)
    _check(architecture, settings)
    form = kv_format(architecture, settings)
    block = settings.tokens_per_block or rules.tokens_per_block
    longest = settings.max_seq_tokens or architecture.context_limit_tokens
    if longest is None:
        raise MissingFieldError(
            "the config does not say how long a sequence may be, which tensorrt-llm bounds blocks by",
            hint="--max_seq_len says it",
            field="max_position_embeddings",
        )
    stages = pipeline_stages(architecture.num_layers, settings.pipeline)
    stages = (*stages[:-1], range(stages[-1].start, 1 << 62))
    return TrtllmPlan(
        rules,
        settings,
        form,
        block,
        longest,
        settings.max_batch or rules.max_batch,
        _groups(architecture, settings, form, block, longest, stages),
        _states(architecture, settings, stages),
        _assumed(architecture, settings),
        _layer_windows(architecture, settings, longest),
        stages,
    )


def pipeline_stages(num_layers: int, stages: int) -> tuple[range, ...]:
    """Return the layers of each stage: those that are left over go one each to the first stages.

    >>> [len(stage) for stage in pipeline_stages(30, 4)]
    [8, 8, 7, 7]
    """
    base, rest = divmod(num_layers, stages)
    bounds = [rank * base + min(rank, rest) for rank in range(stages + 1)]
    return tuple(range(start, stop) for start, stop in pairwise(bounds))


def _check(architecture: ModelArchitecture, settings: TrtllmSettings) -> None:
    if architecture.encoder_only:
        raise FeatureUnsupportedError(
            "this model keeps no cache, and tensorrt-llm sets none aside",
            hint="it is an encoder; --engine theory says the same",
            field="engine",
        )
    for layer in architecture.layers:
        known = layer.kind in _KEPT | _UNKEPT | STATE_KINDS or layer.kind is LayerKind.INDEX
        if not known or layer.mechanism is Mechanism.COMPRESSED_ATTENTION:
            raise FeatureUnsupportedError(
                f"how tensorrt-llm keeps {layer.kind.value} layers is not known",
                hint="--engine theory says what must be kept",
                field="engine",
            )
        if layer.kind in STATE_KINDS and layer.mechanism not in _RECURRENCES:
            raise FeatureUnsupportedError(
                f"tensorrt-llm keeps no state of the kind {layer.mechanism.value}",
                hint="--engine theory says what must be kept",
                field="engine",
            )
    refuse_ranks(architecture, settings.tensor, settings.pipeline, settings.attention_ranks)


def _groups(
    architecture: ModelArchitecture, settings: TrtllmSettings, form: str, block: int, longest: int,
    stages: tuple[range, ...],
) -> tuple[TrtllmGroup, ...]:  # fmt: skip
    """Return the groups by window, smallest window first; without told windows there is one."""
    kept = [layer for layer in architecture.layers if layer.kind in _KEPT or layer.kind is LayerKind.INDEX]
    sizes: dict[int, list[Fraction]] = {}
    counts: dict[int, set[int]] = {}
    windows = dict(_layer_windows(architecture, settings, longest))
    for layer in kept:
        window = windows[layer.index]
        stage = next(i for i, layers in enumerate(stages) if layer.index in layers)
        row = sizes.setdefault(window, [Fraction(0)] * len(stages))
        row[stage] += token_bytes(layer, settings, form, block)
        counts.setdefault(window, set()).add(layer.index)
    if settings.mtp and kept:
        drafts = [token_bytes(one, settings, form, block) for one in architecture.mtp_layers]
        sizes.setdefault(longest, [Fraction(0)] * len(stages))[-1] += sum(drafts, Fraction(0))
        counts.setdefault(longest, set()).update(~one.index for one in architecture.mtp_layers)
    return tuple(TrtllmGroup(w, len(counts[w]), tuple(sizes[w])) for w in sorted(sizes))


def _layer_windows(
    architecture: ModelArchitecture, settings: TrtllmSettings, longest: int
) -> tuple[tuple[int, int], ...]:
    """Return (layer, window) of the layers with blocks: told windows are repeated over them."""
    told = settings.attention_windows or (longest,)
    kept = [layer.index for layer in architecture.layers if layer.kind in _KEPT | {LayerKind.INDEX}]
    return tuple(
        (index, min(longest, told[number % len(told)])) for number, index in enumerate(dict.fromkeys(kept))
    )


def token_bytes(layer: LayerCache, settings: TrtllmSettings, form: str, block: int) -> Fraction:
    """Return the bytes of one token; keys of an index scale with the cache's dtype and its block."""
    if layer.kind is LayerKind.INDEX:
        stream = layer.streams[0]
        keys = row_bytes("fp8_e4m3", stream.role, stream.vectors, stream.width)
        return Fraction(keys * row_bytes(form, Role.KEY, 1, 16) * _INDEX_BLOCK, 16 * block)
    size = 0
    for stream in layer.streams:
        vectors = stream.vectors
        if stream.shard is Shard.HEADS:
            # A head is not cut: ranks beyond the heads hold one each.
            vectors = -(-vectors // settings.attention_ranks)
        size += row_bytes(form, stream.role, vectors, stream.width)
    return Fraction(size)


def _states(
    architecture: ModelArchitecture, settings: TrtllmSettings, stages: tuple[range, ...]
) -> tuple[int, ...]:
    """Return one request's state by stage, in bytes: convolution in the model dtype, state as configured."""
    conv = model_dtype(architecture, settings)
    sizes = [0] * len(stages)
    for layer in architecture.layers:
        if layer.kind not in STATE_KINDS:
            continue
        stage = next(i for i, layers in enumerate(stages) if layer.index in layers)
        for stream in layer.streams:
            vectors = rank_vectors(stream.vectors, stream.shard, settings.attention_ranks, stream.role)
            own = settings.state_dtype or stream.declared_dtype or conv
            dtype = own if stream.role is Role.RECURRENT else conv
            sizes[stage] += row_bytes(dtype, stream.role, vectors, stream.width, stream.columns)
    return tuple(sizes)


def _assumed(architecture: ModelArchitecture, settings: TrtllmSettings) -> tuple[str, ...]:
    kinds = {layer.kind for layer in architecture.layers}
    rows = (
        ("windows", bool(settings.attention_windows)),
        ("sparse_index", LayerKind.INDEX in kinds),
        ("states", bool(kinds & STATE_KINDS)),
    )
    return tuple(code for code, holds in rows if holds)
