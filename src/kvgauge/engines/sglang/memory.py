"""``mem_fraction_static`` and the defaults that go with it: chunk, decode graphs, prefill graphs.

Source: ``arg_groups/memory_hook.py`` of SGLang 0.5.23, ``server_args.py`` of older versions. Sizes are MiB,
as there.
"""

from __future__ import annotations

from fractions import Fraction

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.sglang.architectures import (
    GRAPHED_DELTA,
    GRAPHS_TO_LIMIT,
    captures_images,
    class_name,
    is_multimodal,
    tower_size,
)
from kvgauge.engines.sglang.devices import memory_mib
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.versions import SglangRules, Tier
from kvgauge.layers import LayerKind, Mechanism
from kvgauge.units import MIB
from kvgauge.values import dataclass

#: Tokens of a prefill that is not chunked (``--max-prefill-tokens``).
_WHOLE_PREFILL = 16384
_LARGE_CARD = 60 * 1024
#: Requests where drafting is on and none are told.
DRAFTING_REQUESTS = 48
#: Requests of DeepSeek-V4 where none are told.
COMPRESSED_REQUESTS = 256
#: Caches of image embeddings; pools that hand features over on the card, of many told requests a larger one.
_EMBEDDINGS_MIB, _FEATURES_MIB, _MANY_FEATURES_MIB, _MANY_REQUESTS = 100, 1024, 3072, 400
_ON_CARD = ("cuda_ipc", "cuda_vmm")

#: Below this memory: (GiB a card, GiB a rank) that 0.4.8 to 0.5.2 reserve; the rest a fixed amount.
_CLASS_RESERVES = ((35 * 1024, 2.8, 0.1), (90 * 1024, 9.5, 0.5), (160 * 1024, 12.0, 0.5))
_CLASS_REST_GIB = 32.0
#: Ranks from which on 0.4 takes this fraction.
_RANK_FRACTIONS = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))


@dataclass(frozen=True, slots=True)
class MemoryDefaults:
    """What the card's memory sets.

    Args:
        fraction: ``mem_fraction_static``, as told or as found.
        told: the fraction was given.
        chunk_tokens: largest piece of a prefill, of one attention group.
        graph_max_batch: largest captured decode batch.
        max_requests: the limit that was told or goes with a design; None leaves it to the tokens.
        image_reserve_bytes: held back for caches of image features.
    """

    fraction: float
    told: bool
    chunk_tokens: int
    graph_max_batch: int
    max_requests: int | None
    image_reserve_bytes: int


def memory_defaults(
    architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules
) -> MemoryDefaults:
    """Return the defaults of a model on this card."""
    memory = memory_mib(settings.gpu)
    tier = next(tier for tier in rules.tiers if memory < tier.below_mib)
    chunk = settings.chunked_prefill_tokens or tier.chunk
    images = _has_images(architecture, settings, rules)
    batch = _graph_batch(architecture, settings, tier, images=images)
    told = settings.mem_fraction is not None
    fraction = (
        float(settings.mem_fraction) * (rules.flat_multimodal if images and rules.told_multimodal else 1)
        if settings.mem_fraction is not None
        else _fraction(architecture, settings, rules, memory, chunk, batch, images=images)
    )
    held_back = _image_reserve(architecture, settings) if images and rules.multimodal_reserve else 0
    return MemoryDefaults(
        fraction,
        told,
        chunk // settings.attention_groups if chunk > 0 else chunk,
        batch,
        _requests(architecture, settings),
        held_back * MIB,
    )


def _has_images(architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules) -> bool:
    asked = settings.multimodal or rules.told_multimodal  # a flag of its own came later
    return not settings.text_only and is_multimodal(architecture, asked=asked)


def _is_large_hopper(settings: SglangSettings) -> bool:
    return settings.gpu.major == 9 and memory_mib(settings.gpu) >= _LARGE_CARD


def _image_reserve(architecture: ModelArchitecture, settings: SglangSettings) -> int:
    """Return MiB that caches of image features take after the pool is sized.

    Embeddings are cached, and features travel through the host, unless told; Qwen3-VL on large Hopper cards
    caches none and hands features over on the card.
    """
    transport = settings.feature_transport
    if class_name(architecture) in GRAPHS_TO_LIMIT and _is_large_hopper(settings):
        many = transport is None and (settings.max_running_requests or 0) >= _MANY_REQUESTS
        on_card = transport is None or transport in _ON_CARD
        return (_MANY_FEATURES_MIB if many else _FEATURES_MIB) if on_card else 0
    return _EMBEDDINGS_MIB + (_FEATURES_MIB if transport in _ON_CARD else 0)


def _requests(architecture: ModelArchitecture, settings: SglangSettings) -> int | None:
    if settings.max_running_requests is not None:
        return settings.max_running_requests
    if any(layer.kind is LayerKind.COMPRESSED for layer in architecture.layers):
        return COMPRESSED_REQUESTS
    return DRAFTING_REQUESTS if settings.speculation.on else None


def _graph_batch(
    architecture: ModelArchitecture, settings: SglangSettings, tier: Tier, *, images: bool
) -> int:
    if settings.graph_max_batch is not None:
        return settings.graph_max_batch
    batch = tier.batch if settings.tensor < 4 else tier.batch_wide
    limit = settings.max_running_requests
    if limit is None:
        return batch
    if images and _is_large_hopper(settings) and limit <= 512 and class_name(architecture) in GRAPHS_TO_LIMIT:
        return limit
    return min(batch, limit)


def _fraction(
    architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules, memory: float, chunk: int,
    batch: int, *, images: bool,
) -> float:  # fmt: skip
    if rules.fraction == "reserve":
        reserved = _reserve(architecture, settings, rules, memory, chunk, batch, images=images)
        found = round((memory - reserved) / memory, 3)
    elif rules.fraction == "classes":
        found = round((memory - _class_reserve(settings, rules, memory)) / memory, 3)
    else:
        found = _rank_fraction(settings, rules, memory)
    if not images or settings.role == "decode":
        return found
    return found * (rules.flat_multimodal or _tower_factor(architecture))


def _reserve(
    architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules, memory: float, chunk: int,
    batch: int, *, images: bool,
) -> float:  # fmt: skip
    if settings.role == "decode":
        tokens = (settings.max_running_requests or batch) * (settings.speculation.draft_tokens or 1)
    else:
        tokens = chunk if chunk > 0 else _WHOLE_PREFILL
    reserved = 512 + max(tokens, 2048) * 1.5 + settings.tensor * settings.pipeline / 8 * 1024
    reserved += _graph_reserve(architecture, settings, rules, chunk, batch, images=images)
    if memory > _LARGE_CARD:
        reserved = max(reserved, 10 * 1024)
    own_model, other = rules.draft_reserve_gib
    if settings.speculation.on and settings.speculation.algorithm != "NGRAM":
        reserved += 1024 * (own_model if settings.speculation.algorithm == "STANDALONE" else other)
    if settings.all_to_all == "deepep" and settings.decode_graphs and settings.role != "prefill":
        reserved += 2 * 1024
    return reserved


def _graph_reserve(
    architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules, chunk: int, batch: int, *,
    images: bool,
) -> float:  # fmt: skip
    reserved = 0.0
    decodes = settings.role != "prefill"
    if decodes and settings.decode_graphs:
        reserved += batch * 2
    if decodes and settings.attention_groups > 1:
        reserved += batch * settings.attention_groups * (3 if batch <= 300 else 4.5)
    captured = rules.prefill_graphs and settings.role != "decode"
    if not captured or not _captures_prefill(architecture, settings, images=images):
        return reserved
    if settings.all_to_all == "deepep":
        reserved += 1024
    if any(layer.kind is LayerKind.LATENT for layer in architecture.layers):
        return reserved + 1.5 * 1024
    largest = settings.prefill_graph_max_tokens or chunk
    if settings.prefill_graph_max_tokens is None and settings.max_total_tokens is not None:
        largest = min(largest, settings.max_total_tokens)
    return reserved + prefill_graph_count(largest) * 8


def _captures_prefill(architecture: ModelArchitecture, settings: SglangSettings, *, images: bool) -> bool:
    """Whether prefill graphs are captured: as told, else where the engine holds them for sound."""
    if settings.prefill_graphs is not None:
        return settings.prefill_graphs
    name = class_name(architecture)
    layers = architecture.layers
    kimi_delta = any(layer.mechanism is Mechanism.KIMI_DELTA for layer in layers)
    return not (
        settings.pipeline > 1
        or (kimi_delta and name not in GRAPHED_DELTA)
        or any(layer.kind is LayerKind.COMPRESSED for layer in layers)
        or (images and not captures_images(architecture))
    )


def prefill_graph_count(largest: int) -> int:
    """Return how many token counts are captured up to ``largest``.

    >>> prefill_graph_count(8192)
    58
    """
    steps = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 4097, 256))
    small = sum(size <= largest for step in steps for size in range(*step))
    return small + max(0, (largest - 4096) // 512)


def _tower_factor(architecture: ModelArchitecture) -> float:
    """A tower of the usual size leaves 0.95, a larger one less, down to four fifths of that."""
    size = tower_size(architecture)
    if size is None:
        return 1.0
    layers, hidden = size
    ratio = layers * hidden**2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (ratio - 1.0)))


def _class_reserve(settings: SglangSettings, rules: SglangRules, memory: float) -> float:
    ranks = settings.tensor * settings.pipeline
    row = next((row for row in _CLASS_RESERVES if memory < row[0]), None)
    gib = _CLASS_REST_GIB if row is None else row[1] + row[2] * ranks
    if settings.speculation.on:
        gib += rules.draft_reserve_gib[settings.speculation.algorithm != "STANDALONE"]
    if settings.attention_groups > 1:
        gib += 4
    return gib * 1024


def _rank_fraction(settings: SglangSettings, rules: SglangRules, memory: float) -> float:
    ranks = settings.tensor * (1 if rules.fraction == "ranks" else settings.pipeline)
    by_ranks = next(fraction for least, fraction in _RANK_FRACTIONS if ranks >= least)
    if rules.fraction == "ranks":
        return by_ranks
    found = by_ranks if memory <= 80 * 1024 else 0.88
    if memory > 96 * 1024:
        found = min(found + 48 * 1024 * (1 - found) / memory, (memory - 18 * 1024) / memory)
    return found


def static_bytes(
    available_bytes: int, before_bytes: int, fraction: str | float, reserve_bytes: int = 0
) -> int:
    """Return the bytes left for pools: of the memory free before loading, all but the fraction stays free.

    Args:
        available_bytes: free on the rank that has least after the weights are loaded.
        before_bytes: free before they were.
        fraction: ``mem_fraction_static``.
        reserve_bytes: held back for caches of image features.
    """
    slack = before_bytes * (1 - Fraction(str(fraction)))
    return max(0, int(available_bytes - slack - reserve_bytes))
