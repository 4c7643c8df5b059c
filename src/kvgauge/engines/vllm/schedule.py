"""How many tokens vLLM batches, and how many are in flight: its own defaults by card, model and version.

Source: ``engine/arg_utils.py`` and ``config/vllm.py`` of vLLM 0.33.0, older rows of ``versions``.
"""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm.settings import DRAFTLESS_METHODS, VllmSettings
from kvgauge.engines.vllm.versions import VllmRules
from kvgauge.errors import MissingFieldError
from kvgauge.layers import STATE_KINDS, LayerKind, Mechanism
from kvgauge.units import GIB
from kvgauge.values import dataclass

#: Recurrences whose code can keep a state for every block of a prefix.
_CACHES_ALL = frozenset({Mechanism.MAMBA1, Mechanism.MAMBA2})

#: Least memory of a card in GiB -> default batch of the server and of the LLM class, default sequences.
_TIERS = ((160, 16384, 16384, 1024), (70, 8192, 16384, 1024), (0, 2048, 8192, 256))
#: Tokens of the largest item of types whose images attend both ways, which one batch must hold:
#: Gemma-4: 32 video frames x (70 + 2 + 6).
_LARGEST_ITEM = {"Gemma4ForConditionalGeneration": 2496}


@dataclass(frozen=True, slots=True)
class Schedule:
    """What the scheduler reserves for.

    Args:
        max_model_tokens: longest request; of ``auto`` the model's own limit.
        batched_tokens: tokens of one step.
        in_flight_tokens: tokens whose blocks a window may not free yet.
        state_cache_mode: ``none``, ``align``, ``all``, or ``one`` of the versions before modes.
    """

    max_model_tokens: int
    batched_tokens: int
    sequences: int
    in_flight_tokens: int
    prefix_caching: bool
    async_scheduling: bool
    state_cache_mode: str


def schedule(architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules) -> Schedule:
    """Return the scheduler's figures, defaults filled in.

    Raises:
        MissingFieldError: neither the config nor a flag says how long a request may be.
    """
    longest = _longest(architecture, settings)
    batch, sequences = _batch(architecture, settings, rules, longest)
    caching = _prefix_caching(architecture, settings, rules)
    overlapped = settings.async_scheduling
    if overlapped is None:
        speculation = settings.speculation
        overlapped = not (speculation.tokens and speculation.method in DRAFTLESS_METHODS)
    batches = 1
    if rules.in_flight_batches:
        batches = settings.pipeline + 1 if overlapped else settings.pipeline
    return Schedule(
        longest, batch, sequences, batches * batch, caching, overlapped,
        _state_cache_mode(architecture, settings, rules, caching=caching),
    )  # fmt: skip


def _longest(architecture: ModelArchitecture, settings: VllmSettings) -> int:
    if settings.max_model_tokens:
        return settings.max_model_tokens
    if architecture.context_limit_tokens is None:
        raise MissingFieldError(
            "the config does not say how long a sequence may be, which vllm reserves for",
            hint="--max-model-len says it",
            field="max_position_embeddings",
        )
    return architecture.context_limit_tokens


def _batch(
    architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules, longest: int
) -> tuple[int, int]:
    gpu = settings.gpu
    size = 0 if gpu.named(*rules.small_tier) else gpu.memory_bytes
    tiers = _TIERS if rules.tier_160 else _TIERS[1:]
    _, server, library, sequences = next(tier for tier in tiers if size >= tier[0] * GIB)
    factor = 2 if settings.throughput_mode else 1
    batch = settings.max_batched_tokens
    most = settings.max_sequences
    if batch is None:
        batch = factor * (library if settings.llm_class else server)
        if settings.chunked_prefill is False or architecture.is_encoder_decoder:
            batch = max(batch, longest)
        both_ways = dict(architecture.dimensions).get("use_bidirectional_attention", 0)
        if rules.fits_items and both_ways and not settings.language_model_only:
            batch = max(batch, _LARGEST_ITEM.get(architecture.architecture, 0))
        batch = min(batch, (most or factor * sequences) * longest)
    return batch, min(factor * sequences, batch) if most is None else most


def _prefix_caching(architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules) -> bool:
    if settings.prefix_caching is not None:
        return settings.prefix_caching
    kinds = {layer.kind for layer in architecture.layers}
    if architecture.is_encoder_decoder or not kinds - STATE_KINDS - {LayerKind.NONE}:
        return False
    return rules.prefix_caching_hybrid or not kinds & STATE_KINDS


def _state_cache_mode(
    architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules, *, caching: bool
) -> str:
    if rules.state_caching == "one":
        return "one"
    if not caching or rules.state_caching == "off":
        return "none"
    if settings.state_cache_mode not in (None, "none"):
        return settings.state_cache_mode or "align"
    mechanisms = {layer.mechanism for layer in architecture.layers if layer.kind in STATE_KINDS}
    return "all" if rules.state_caching == "all" and mechanisms <= _CACHES_ALL else "align"
