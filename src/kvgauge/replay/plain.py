"""Replay engines whose rules are not known here: what must be kept, by shape and dtype alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kvgauge.replay.figures import Figure, Skip, needed
from kvgauge.replay.models import ModelFinder
from kvgauge.replay.records import Record
from kvgauge.size_result import SizeResult
from kvgauge.sizing import size
from kvgauge.units import GIB, MIB

#: A printed size in GiB has three decimals, and counts whole segments of an allocator.
_HALF_STEP, _SEGMENT = 0.0005, 2 * MIB
#: Tokens a block where an engine has one size.
_BLOCK_TOKENS: Mapping[str, int] = MappingProxyType({"lmdeploy": 128})


@dataclass(frozen=True)
class PlainReplay:
    """One record and the theory of its model."""

    record: Record
    found: SizeResult

    def tokens(self) -> int:
        """Return the tokens that the printed bytes hold."""
        record = self.record
        block = next((n for word, n in _BLOCK_TOKENS.items() if word in record.family), None)
        blocks = record.whole("blocks")
        counted = record.whole("tokens") or (blocks * block if blocks and block else None)
        if not (counted or record.whole("context")):
            raise Skip("null", "tokens")
        return counted or record.whole("context") or 0

    def printed(self) -> tuple[float, float]:
        """Return (bytes, rounding in bytes) of the cache."""
        size_bytes = self.record.number("kv_bytes")
        if size_bytes is not None:
            return size_bytes, 0.5
        return needed(self.record.number("kv_gib"), "kv_gib") * GIB, _HALF_STEP * GIB + _SEGMENT

    def ours(self, tokens: int) -> float:
        """Return the bytes that one rank keeps for so many tokens of one sequence."""
        cache = self.found.cache
        share = max(cache.per_rank_bytes) / cache.total_bytes if cache.total_bytes else 1.0
        return float(cache.bytes_at(tokens)) * share


def replays(record: Record, finder: ModelFinder) -> PlainReplay:
    """Return the theory of a record's model.

    Raises:
        Skip: no public shape. KvgaugeError: the settings are not possible.
    """
    word = record.text("kv_dtype")
    dtype = None if word in (None, "auto", "default") else word
    found = size(
        finder.model(record), context=1024, tp=record.whole("tp") or 1, kv_dtype=dtype, no_weights=True
    )
    return PlainReplay(record, found)


def cache_size(replay: PlainReplay) -> Figure:
    """MiB of the cache for the printed tokens."""
    printed, rounding = replay.printed()
    return Figure(printed / MIB, replay.ours(replay.tokens()) / MIB, rounding / MIB)


def bytes_per_token(replay: PlainReplay) -> Figure:
    """Bytes of the cache over its tokens."""
    printed, rounding = replay.printed()
    tokens = replay.tokens()
    return Figure(printed / tokens, replay.ours(tokens) / tokens, rounding / tokens)


FIGURES: Mapping[str, Callable[[PlainReplay], Figure]] = MappingProxyType({
    "kv_bytes_per_token": bytes_per_token,
    "kv_cache_mib": cache_size,
})  # fmt: skip
