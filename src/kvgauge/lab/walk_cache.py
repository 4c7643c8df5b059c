"""Generation with and without a cache: what is held, computed and read in each step, and whether it stays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import kvgauge
from kvgauge.lab.arrays import Floats
from kvgauge.lab.cache import Cache
from kvgauge.lab.decoder import Watch
from kvgauge.lab.folder import Folder
from kvgauge.lab.generate import Sampling, Step, generate
from kvgauge.lab.peeks import Vector, vector
from kvgauge.lab.trace import Trace

#: The dtype of the arrays here, as ``size`` calls it.
CACHE_DTYPE = "fp32"


@dataclass(frozen=True, slots=True)
class CacheStep:
    """One step of the generation.

    Args:
        tokens: that the cache holds behind it.
        chosen: the token that follows, ``share`` of the probability that it had.
        held_bytes: what the arrays of the cache take; ``size_bytes`` what ``kvgauge.size`` says of it.
        rows, rows_without: tokens whose key and value were computed in this step, in each layer.
        read_bytes: keys and values that attention read in this step, in all layers.
        query: of the last token, in the first head of the first layer.
        scores: of that query, for each token.
        seconds, seconds_without: how long the step took here.
    """

    tokens: int
    chosen: int
    text: str
    share: float
    held_bytes: int
    size_bytes: int
    rows: int
    rows_without: int
    read_bytes: int
    query: Vector
    scores: tuple[float, ...]
    seconds: float
    seconds_without: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "tokens": self.tokens,
            "chosen": {"id": self.chosen, "text": self.text, "share": self.share},
            "held_bytes": self.held_bytes,
            "size_bytes": self.size_bytes,
            "rows": self.rows,
            "rows_without_cache": self.rows_without,
            "read_bytes": self.read_bytes,
            "query": self.query.to_dict(),
            "scores": list(self.scores),
            "seconds": self.seconds,
            "seconds_without_cache": self.seconds_without,
        }


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation in both modes.

    Args:
        moved: the largest change of any cached number between the first step and the last.
        recomputed: the largest difference between a cached number and the same computed anew at the end.
        same_tokens: both modes chose the same tokens.
    """

    prompt_tokens: int
    steps: tuple[CacheStep, ...]
    moved: float
    recomputed: float
    same_tokens: bool

    @property
    def tokens(self) -> int:
        """Tokens in the cache at the end: T."""
        return self.steps[-1].tokens

    @property
    def rows(self) -> int:
        """Rows computed with the cache, in each layer: T."""
        return sum(step.rows for step in self.steps)

    @property
    def rows_without(self) -> int:
        """Rows computed without: each step takes all tokens anew."""
        return sum(step.rows_without for step in self.steps)

    @property
    def rows_from_one(self) -> int:
        """Rows without a cache had the prompt been one token: T (T + 1) / 2."""
        return self.tokens * (self.tokens + 1) // 2

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "steps": [step.to_dict() for step in self.steps],
            "rows": self.rows,
            "rows_without_cache": self.rows_without,
            "rows_without_cache_from_one_token": self.rows_from_one,
            "cache_dtype": CACHE_DTYPE,
            "largest_move_of_cached": self.moved,
            "largest_difference_recomputed": self.recomputed,
            "same_tokens": self.same_tokens,
        }


@dataclass(frozen=True, slots=True)
class _Timed:
    """A step with what surrounded it."""

    step: Step
    seconds: float
    rows: int
    held_bytes: int
    read_bytes: int
    query: Vector
    scores: tuple[float, ...]


def run_generation(folder: Folder, ids: Sequence[int], new_tokens: int, sampling: Sampling) -> Generation:
    """Generate with a cache and without, and compare."""
    cache = folder.decoder.new_cache()
    first: list[tuple[Floats, Floats]] = []
    cached = _run(folder, ids, new_tokens, sampling, cache, first)
    plain = _run(folder, ids, new_tokens, sampling, None, [])
    steps = tuple(
        _joined(folder, len(ids) + n, one, other)
        for n, (one, other) in enumerate(zip(cached, plain, strict=False))
    )
    chosen = [one.step.chosen for one in cached]
    anew = folder.decoder.new_cache()
    folder.decoder.forward(np.array([[*ids, *chosen[:-1]]]), anew, last_only=True)
    return Generation(
        len(ids),
        steps,
        _largest(first, _arrays(cache), len(ids)),
        _largest(_arrays(anew), _arrays(cache), anew.num_tokens),
        chosen == [one.step.chosen for one in plain],
    )


def _run(
    folder: Folder,
    ids: Sequence[int],
    new_tokens: int,
    sampling: Sampling,
    cache: Cache | None,
    first: list[tuple[Floats, Floats]],
) -> list[_Timed]:
    """Run a mode; ``first`` receives copies of what the cache holds behind the first step."""
    found: list[_Timed] = []
    trace = Trace(frozenset({0}))
    watch: Watch = trace
    steps = generate(folder.decoder, ids, new_tokens, cache=cache, choose=sampling.chooser(), watch=watch)
    while True:
        written, read = (cache.rows_written, cache.bytes_read) if cache else (0, 0)
        begin = time.perf_counter()
        step = next(steps, None)
        if step is None:
            return found
        seconds = time.perf_counter() - begin
        rows = cache.rows_written - written if cache else step.computed
        scores = tuple(float(score) for score in trace.of(0, "scores")[0, -1])
        query = vector(trace.of(0, "query")[0, -1])
        held, reads = (cache.num_bytes, cache.bytes_read - read) if cache else (0, 0)
        found.append(_Timed(step, seconds, rows, held, reads, query, scores))
        if cache and not first:
            first += [(keys.copy(), values.copy()) for keys, values in _arrays(cache)]


def _joined(folder: Folder, tokens: int, cached: _Timed, plain: _Timed) -> CacheStep:
    step = cached.step
    powers = np.exp(step.logits - step.logits.max())
    said = kvgauge.size(folder.model, context=tokens, kv_dtype=CACHE_DTYPE, no_weights=True)
    return CacheStep(
        tokens=tokens,
        chosen=step.chosen,
        text=folder.word(step.chosen),
        share=float(powers[step.chosen] / powers.sum()),
        held_bytes=cached.held_bytes,
        size_bytes=said.cache.total_bytes,
        rows=cached.rows,
        rows_without=plain.rows,
        read_bytes=cached.read_bytes,
        query=cached.query,
        scores=cached.scores,
        seconds=cached.seconds,
        seconds_without=plain.seconds,
    )


def _arrays(cache: Cache) -> list[tuple[Floats, Floats]]:
    return [
        (layer.keys, layer.values)
        for layer in cache.layers
        if layer.keys is not None and layer.values is not None
    ]


def _largest(ones: list[tuple[Floats, Floats]], others: list[tuple[Floats, Floats]], tokens: int) -> float:
    """Return the largest difference in the first tokens' rows."""
    differences = (
        np.abs(one[:, :, :tokens] - other[:, :, :tokens]).max()
        for pair, pair_of_other in zip(ones, others, strict=True)
        for one, other in zip(pair, pair_of_other, strict=True)
    )
    return float(max(differences))
