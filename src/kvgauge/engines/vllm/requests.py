"""Blocks that one request needs of a cache: rule by kind of layer.

Source: ``max_memory_usage_bytes`` of the specs in ``v1/kv_cache_interface.py``, vLLM 0.33.0.
"""

from __future__ import annotations

from dataclasses import replace

from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind
from kvgauge.layers import ONE_PER_SEQUENCE, Counted, Rounding
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class RequestRules:
    """What the blocks of a request depend on beside its length.

    Args:
        in_flight_tokens: tokens whose blocks a window may not free yet.
        state_cache_mode: ``one``, ``none``, ``align`` or ``all``.
        drafted_tokens: speculative tokens of a step.
        checkpoint_pages: state pages for what prefill hands over.
        window_extra_tokens: tokens that a window keeps for drafting layers behind the first.
        context_ranks: ranks that share the tokens of whole-context layers.
        encoder_tokens: positions that cross-attention is charged for.
    """

    in_flight_tokens: int
    state_cache_mode: str = "none"
    drafted_tokens: int = 0
    checkpoint_pages: int = 0
    window_extra_tokens: int = 0
    context_ranks: int = 1
    encoder_tokens: int = 0


def blocks_of_request(spec: CacheSpec, tokens: int, rules: RequestRules) -> int:
    """Return the blocks that a request of ``tokens`` reserves in a group of this spec.

    >>> window = CacheSpec(0, SpecKind.SLIDING, 16, 32768, 2048, window_tokens=128)
    >>> blocks_of_request(window, 32768, RequestRules(in_flight_tokens=16384))
    1033
    """
    block = max(1, spec.block_tokens)
    match spec.kind:
        case SpecKind.SLIDING:
            return _ceil(min(kept_of_window(spec, rules), tokens), block) + 1
        case SpecKind.CHUNKED:
            return _ceil(min(kept_of_window(spec, rules), tokens), block)
        case SpecKind.RECURRENT:
            return _state_blocks(block, tokens, rules)
        case SpecKind.CROSS:
            return _ceil(rules.encoder_tokens, block)
    return _ceil(_ceil(tokens, rules.context_ranks), block)


def counted_blocks(spec: CacheSpec, rules: RequestRules) -> tuple[tuple[Counted, int], ...]:
    """Return the blocks of ``blocks_of_request`` as counts that hold at every length, each times a factor.

    >>> window = CacheSpec(0, SpecKind.SLIDING, 16, 32768, 2048, window_tokens=128)
    >>> counts = counted_blocks(window, RequestRules(in_flight_tokens=16384))
    >>> sum(times * counted.rows(32768) for counted, times in counts)
    1033
    """
    block = max(1, spec.block_tokens)
    whole = Counted(step_tokens=block, rounding=Rounding.CEIL)
    match spec.kind:
        case SpecKind.SLIDING:
            return (replace(whole, to_tokens=kept_of_window(spec, rules)), 1), (ONE_PER_SEQUENCE, 1)
        case SpecKind.CHUNKED:
            return ((replace(whole, to_tokens=kept_of_window(spec, rules)), 1),)
        case SpecKind.RECURRENT if rules.state_cache_mode == "all":
            drafted = rules.drafted_tokens
            return (whole, 1), *(((ONE_PER_SEQUENCE, drafted),) if drafted else ())
        case SpecKind.RECURRENT | SpecKind.CROSS:
            return ((ONE_PER_SEQUENCE, blocks_of_request(spec, 0, rules)),)
    return ((whole, 1),)


def kept_of_window(spec: CacheSpec, rules: RequestRules) -> int:
    """Return the tokens that a window or chunk has blocks for, those in flight included."""
    if spec.kind is SpecKind.CHUNKED:
        return spec.window_tokens + rules.in_flight_tokens
    return spec.window_tokens - 1 + rules.window_extra_tokens + rules.in_flight_tokens


def _state_blocks(block: int, tokens: int, rules: RequestRules) -> int:
    match rules.state_cache_mode:
        case "one":
            return 1
        case "none":
            return 1 + rules.drafted_tokens
        case "all":
            return _ceil(tokens, block) + rules.drafted_tokens
    return 2 + rules.drafted_tokens + rules.checkpoint_pages


def _ceil(tokens: int, step: int) -> int:
    return -(-tokens // step)
