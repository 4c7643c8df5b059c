"""Changes of the load itself: a shorter context, fewer sequences."""

from __future__ import annotations

from collections.abc import Iterator

from kvgauge.fit_asking import Posed
from kvgauge.fit_search import largest
from kvgauge.remedies.changes import Change, merged, tried, with_option


def shorter_context(posed: Posed) -> Iterator[Change]:
    """Take the longest context of as many sequences that fits."""
    tokens = _longest(posed)
    is_shorter = 0 < tokens < posed.search.prepared.request.workload.context_tokens
    change = _context(posed, tokens) if is_shorter else None
    if change is not None:
        yield change


def _longest(posed: Posed) -> int:
    """Return the longest context that fits, what the engine reserves shortened with it."""
    if posed.search.prepared.setup.reserve_tokens is None or posed.verdict.limiting == "flag":
        return posed.longest.count

    def fits(tokens: int) -> bool:
        change = _context(posed, tokens)
        found = None if change is None else tried(posed, change)
        return found is not None and found.verdict.fits

    return largest(posed.search.prepared.request.workload.context_tokens, fits)


def _context(posed: Posed, tokens: int) -> Change | None:
    load, reserve = posed.search.prepared.request.workload, posed.search.prepared.setup.reserve_tokens
    keywords = merged(
        {"context": tokens},
        with_option(posed, "max_model_len", tokens) if reserve is not None else {},
        {"shared_prefix": tokens} if load.shared_prefix_tokens > tokens else {},
    )
    if keywords is None or (reserve is not None and posed.search.prepared.engine.reads_gguf):
        return None
    return Change("shorter_context", keywords, f"{tokens:,}", {"max_context_tokens": tokens})


def fewer_sequences(posed: Posed) -> Iterator[Change]:
    """Take the most sequences of this context that fit."""
    count = posed.widest.count
    if 0 < count < posed.search.prepared.request.workload.sequences:
        keywords = with_option(posed, "sequences", count)
        if keywords is not None:
            yield Change("fewer_sequences", keywords, f"{count:,}", {"max_sequences": count})


__all__ = ["fewer_sequences", "shorter_context"]
