"""Changes of how an engine is started: what it reserves, its share, batch and graphs, the cache's dtype."""

from __future__ import annotations

from collections.abc import Iterator

from kvgauge.engines.flag_tables import (
    BATCHED_TOKENS,
    EAGER,
    MAX_SEQUENCES,
    NO_PREFIX_CACHING,
    flag_for,
    spellings,
)
from kvgauge.fit_asking import Posed
from kvgauge.layers import STATE_KINDS
from kvgauge.remedies.changes import Change, engine_of, version_of, with_flag, with_option

#: Shares of the card that leave a driver its room, least first.
_SHARES = ("0.95", "0.97")
#: Batches that prefill still runs well with, in tokens, largest first.
_BATCHES = (8192, 4096, 2048, 1024, 512)
_MICRO_BATCHES = (256, 128)
#: Types of llama.cpp's cache, least lossy first.
_GGML_TYPES = ("q8_0", "q4_0")


def reserve_the_load(posed: Posed) -> Iterator[Change]:
    """Let the engine reserve what the load needs, where it is told of longer requests."""
    prepared = posed.search.prepared
    reserve, tokens = prepared.setup.reserve_tokens, prepared.request.workload.context_tokens
    if prepared.engine.reads_gguf or reserve is None or reserve <= tokens:
        return
    keywords = with_option(posed, "max_model_len", tokens)
    if keywords is not None:
        yield Change("reserve_less", keywords, f"--max-model-len {tokens}", {"max_model_len": tokens})


def raise_limit(posed: Posed) -> Iterator[Change]:
    """Let the engine take as many sequences, and as many tokens of each, as the load has."""
    request, asked = posed.search.prepared.request, posed.asked
    load = request.workload
    option, most = MAX_SEQUENCES, load.sequences
    if asked.max_context_tokens is not None and load.context_tokens > asked.max_context_tokens:
        option, most = "max_model_len", load.context_tokens
    elif asked.max_sequences is None or load.sequences <= asked.max_sequences:
        return
    if posed.search.prepared.engine.reads_gguf:  # its flag states the tokens of all sequences
        option, most = "max_model_len", load.context_tokens * load.sequences
    flag = flag_for(engine_of(posed), option, version_of(posed))
    keywords = with_flag(posed, option, str(most))
    if option != MAX_SEQUENCES:
        keywords = with_option(posed, option, most)
    if flag is not None and keywords is not None:
        yield Change("raise_limit", keywords, f"{flag} {most}")


def larger_share(posed: Posed) -> Iterator[Change]:
    """Let the engine use more of each GPU."""
    cards, question = posed.search.cards, posed.question
    if cards is None or question.reserve is not None or cards.share_base_bytes(posed.asked) is None:
        return
    for share in _SHARES:
        keywords = with_option(posed, "utilization", share)
        if keywords is not None and float(share) > cards.share(posed.asked):
            yield Change("larger_share", keywords, f"--utilization {share}")


def fewer_batched_tokens(posed: Posed) -> Iterator[Change]:
    """Take fewer tokens in one step: activations shrink, prefill takes more steps."""
    if posed.search.cards is None:
        return
    if posed.search.prepared.engine.reads_gguf:
        yield from _smaller_batch(posed, "micro_batch", "micro_batch_tokens", _MICRO_BATCHES)
        return
    told = spellings(engine_of(posed), MAX_SEQUENCES)
    if any(flag in posed.question.engine_args for flag in told):
        return  # a step holds a token of every sequence
    yield from _smaller_batch(posed, BATCHED_TOKENS, "max_num_batched_tokens", _BATCHES)


def _smaller_batch(posed: Posed, option: str, name: str, sizes: tuple[int, ...]) -> Iterator[Change]:
    now = batched_tokens(posed)
    flag = flag_for(engine_of(posed), option, version_of(posed))
    for tokens in sizes:
        keywords = with_flag(posed, option, str(tokens))
        if tokens < now and keywords is not None:
            yield Change("fewer_batched_tokens", keywords, f"{flag} {tokens}", {name: tokens})


def batched_tokens(posed: Posed) -> int:
    """Return the tokens of one step; 0 where the pool is given."""
    cards = posed.search.cards
    if cards is None:
        return 0
    prepared = posed.search.prepared
    if prepared.engine.reads_gguf:
        return int(posed.asked.load.settings.micro_batch_tokens)  # type: ignore[attr-defined]
    return cards.rules.running(prepared, posed.asked).batched_tokens


def narrower_cache(posed: Posed) -> Iterator[Change]:
    """Keep keys and values in fewer bits."""
    if posed.asked.dtypes.k not in ("bf16", "f16", "f32"):
        return
    if posed.search.prepared.engine.reads_gguf:
        told = posed.search.prepared.engine.told(posed.question.engine_args)
        if not {"k_dtype", "v_dtype"} & set(told):
            for word in _GGML_TYPES:
                types = {"k_dtype": None, "v_dtype": None, "kv_dtype": word}
                yield Change(f"kv_dtype_{word}", types, f"--kv-dtype {word}")
        return
    keywords = with_option(posed, "kv_dtype", "fp8")
    if keywords is not None:
        yield Change("kv_dtype_fp8", keywords, "--kv-dtype fp8")


def eager(posed: Posed) -> Iterator[Change]:
    """Capture no graphs: their memory is freed, decoding is slower."""
    if posed.search.cards is None or posed.search.prepared.engine.reads_gguf:
        return
    flag = flag_for(engine_of(posed), EAGER, version_of(posed))
    keywords = with_flag(posed, EAGER, "")
    if flag is not None and keywords is not None and flag not in posed.question.engine_args.split():
        yield Change("eager", keywords, flag)


def no_prefix_caching(posed: Posed) -> Iterator[Change]:
    """Keep no states of prompts gone by: a sequence of a hybrid then needs fewer of them."""
    groups = posed.search.prepared.architecture.groups
    flag = flag_for(engine_of(posed), NO_PREFIX_CACHING, version_of(posed))
    keywords = with_flag(posed, NO_PREFIX_CACHING, "")
    if flag is not None and keywords is not None and any(group.kind in STATE_KINDS for group in groups):
        yield Change("no_prefix_caching", keywords, flag)


__all__ = [
    "batched_tokens", "eager", "fewer_batched_tokens", "larger_share", "narrower_cache", "no_prefix_caching",
    "raise_limit", "reserve_the_load",
]  # fmt: skip
