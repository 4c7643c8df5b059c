"""``learn paged``: one stream of requests through pieces and through blocks; sharing; one decode step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kvgauge.architecture import Note
from kvgauge.errors import InvalidRequestError
from kvgauge.lab.limits import MAX_SEED, bounded, bounded_list
from kvgauge.lab.paging.blocks import BlockManager
from kvgauge.lab.paging.contiguous import Buddy, FirstFit
from kvgauge.lab.paging.replay import ContiguousScheme, Outcome, PagedScheme, Scheme, replay
from kvgauge.lab.paging.requests import Request, request_stream
from kvgauge.lab.paging.tracing import DecodeStep, TraceStep, run_decode_step, trace_sharing

_BLOCKS = (1, 8, 16, 32, 64, 128, 256)
_SPARE_SHARE = 100  # one block in so many is left free at admission


class Quote(NamedTuple):
    """What others say: shares of the memory that hold tokens, without and with paging."""

    source: str
    without_low: float
    without_high: float
    paged: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return self._asdict()


#: Quoted, not computed: the source article's table A.4, and the PagedAttention paper as it is cited.
QUOTES = (Quote("article", 0.50, 0.70, 0.95), Quote("arXiv:2309.06180", 0.204, 0.382, 0.963))


@dataclass(frozen=True, slots=True)
class SchemeRow:
    """One scheme. Fractions are of the pool, over all steps in which a request waited; they sum to 1.

    Where no request ever waited, the pool was never put to the test: fractions and ratios are None.

    Args:
        block_tokens: None for contiguous schemes.
        running_ratio: mean requests at once against those of the first scheme.
        shared_tokens: tokens of prompts that were found in the pool and not computed again.
    """

    scheme: str
    block_tokens: int | None
    filled_fraction: float | None
    reserved_fraction: float | None
    internal_fraction: float | None
    external_fraction: float | None
    free_fraction: float | None
    mean_running: float | None
    max_running: int
    running_ratio: float | None
    num_steps: int
    num_preemptions: int
    shared_tokens: int

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Stream:
    """What was asked for, and the requests that came of it."""

    pool_tokens: int
    max_tokens: int
    seed: int
    shared_prefix: int
    requests: tuple[Request, ...]

    @property
    def mean_tokens(self) -> float:
        """Tokens of a request at its end, on average."""
        return sum(request.num_tokens for request in self.requests) / len(self.requests)

    @property
    def longest_tokens(self) -> int:
        """Tokens of the longest request."""
        return max(request.num_tokens for request in self.requests)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "pool_tokens": self.pool_tokens,
            "max_model_len": self.max_tokens,
            "seed": self.seed,
            "shared_prefix_tokens": self.shared_prefix,
            "num_requests": len(self.requests),
            "mean_tokens": self.mean_tokens,
            "longest_tokens": self.longest_tokens,
        }


@dataclass(frozen=True, slots=True)
class PagedAnswer:
    """The answer of ``learn paged``."""

    stream: Stream
    schemes: tuple[SchemeRow, ...]
    sharing: tuple[TraceStep, ...]
    decode: DecodeStep
    quotes: tuple[Quote, ...] = QUOTES
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_paged/1`` object."""
        return {
            "schema": "kvgauge.learn_paged/1",
            "request": self.stream.to_dict(),
            "schemes": [row.to_dict() for row in self.schemes],
            "quotes": [quote.to_dict() for quote in self.quotes],
            "sharing": [step.to_dict() for step in self.sharing],
            "decode": self.decode.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_paged(
    *,
    pool: int | str | None = None,
    requests: int | None = None,
    max_model_len: int | str | None = None,
    block_sizes: str | None = None,
    shared_prefix: int | str | None = None,
    seed: int | None = None,
    offline: bool = False,
) -> PagedAnswer:
    """Run a stream of requests through each scheme.

    Args:
        pool: slots for tokens.
        requests: how many.
        max_model_len: the longest that a request may get, which the first scheme reserves.
        block_sizes: tokens a block, separated by commas.
        shared_prefix: tokens that all prompts begin with.

    Raises:
        InvalidRequestError: a number is out of range, or the longest request has no room.
    """
    slots = bounded(pool, 16_384, 256, 1 << 20, "pool")
    longest = bounded(max_model_len, 2048, 32, 1 << 16, "max-model-len")
    prefix = bounded(shared_prefix, 0, 0, 4096, "shared-prefix")
    number = bounded(seed, 0, 0, MAX_SEED, "seed")
    if prefix + 16 > longest:
        raise InvalidRequestError(
            f"--shared-prefix {prefix} leaves no room in --max-model-len {longest}",
            hint="16 tokens at least must follow it",
            field="shared_prefix",
        )
    sizes = bounded_list(block_sizes, _BLOCKS, slots, "block-sizes")
    _check_room(slots, longest, sizes)
    count = bounded(requests, 200, 1, 1000, "requests")
    stream = request_stream(count, longest, seed=number, shared_prefix=prefix)
    asked = Stream(slots, longest, number, prefix, stream)
    rows = _rows(asked, sizes)
    return PagedAnswer(asked, rows, trace_sharing(), run_decode_step(), notes=_untested(rows))


def _untested(rows: Sequence[SchemeRow]) -> tuple[Note, ...]:
    count = sum(row.filled_fraction is None for row in rows)
    if not count:
        return ()
    message = (
        f"schemes under which no request had to wait: {count}; more requests or a smaller pool test them"
    )
    return (Note("paged_untested", "info", message, (("count", str(count)),)),)


def _check_room(pool: int, longest: int, sizes: Sequence[int]) -> None:
    """Refuse a pool in which the longest request would never run."""
    largest_hole = 1 << (pool.bit_length() - 1)
    room = min([largest_hole, *(pool // size * size for size in sizes)])
    if longest > room:
        raise InvalidRequestError(
            f"--max-model-len {longest} does not fit in --pool {pool} under every scheme",
            hint=f"{room} tokens do",
            field="max_model_len",
        )


def _schemes(pool: int, longest: int, sizes: Sequence[int]) -> Iterator[tuple[str, int | None, Scheme]]:
    yield "reserve_maximum", None, ContiguousScheme(FirstFit(pool), lambda _: longest)
    yield "buddy", None, ContiguousScheme(Buddy(pool), lambda request: request.num_tokens)
    yield "true_length", None, ContiguousScheme(FirstFit(pool), lambda request: request.num_tokens)
    for size in sizes:
        blocks = pool // size
        yield "paged", size, PagedScheme(BlockManager(blocks, size), blocks // _SPARE_SHARE)


def _rows(stream: Stream, sizes: Sequence[int]) -> tuple[SchemeRow, ...]:
    rows: list[SchemeRow] = []
    for name, block, scheme in _schemes(stream.pool_tokens, stream.max_tokens, sizes):
        outcome = replay(stream.requests, scheme)
        shared = scheme.num_shared_tokens if isinstance(scheme, PagedScheme) else 0
        rows.append(_row(name, block, outcome, shared, rows[0].mean_running if rows else None))
    return tuple(rows)


def _row(name: str, block: int | None, outcome: Outcome, shared: int, base: float | None) -> SchemeRow:
    steps, total = outcome.num_counted_steps, sum(outcome.slots)
    filled, reserved, internal, external, free = (n / total if total else None for n in outcome.slots)
    mean = outcome.running_sum / steps if steps else None
    return SchemeRow(
        scheme=name,
        block_tokens=block,
        filled_fraction=filled,
        reserved_fraction=reserved,
        internal_fraction=internal,
        external_fraction=external,
        free_fraction=free,
        mean_running=mean,
        max_running=outcome.max_running,
        running_ratio=None if mean is None else mean / (base or mean),
        num_steps=outcome.num_steps,
        num_preemptions=outcome.num_preemptions,
        shared_tokens=shared,
    )
