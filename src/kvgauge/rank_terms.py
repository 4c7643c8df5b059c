"""What one sequence keeps on the fullest rank: a fixed part and terms, the twin of ``cache.terms``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.cache import Term, layers_in_stage
from kvgauge.layers import Axis, Rounding
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.cache import CacheAnswer
    from kvgauge.engines.base import StreamDemand


@dataclass(frozen=True, slots=True)
class RankTerms:
    """One sequence on one rank: ``fixed_bytes`` and the terms that grow with its context.

    A rank holds ``sequences / data`` (rounded up) times the bytes of one sequence.

    Args:
        rank: pipeline stage x tensor ranks + tensor rank, the fullest at the context of the load.
    """

    rank: int
    fixed_bytes: int
    terms: tuple[Term, ...]

    def bytes_at(self, tokens: int) -> int:
        """Return the bytes of one sequence on the rank at a context of ``tokens``, exactly."""
        return self.fixed_bytes + sum(term.bytes_at(tokens) for term in self.terms)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {
            "rank": self.rank,
            "fixed_bytes": self.fixed_bytes,
            "terms": [term.to_dict() for term in self.terms],
        }


def rank_terms(answer: CacheAnswer) -> RankTerms | None:
    """Return the terms of the fullest rank; None where sequences share rows, or ranks share the tokens.

    Raises:
        FeatureUnsupportedError: the model can't be divided this way.
    """
    load, parallelism = answer.workload, answer.parallelism
    shares = load.shared_prefix_tokens and load.sequences > 1
    if shares or parallelism.context > 1 or any(group.pooled for group in answer.demand.groups):
        return None
    held = answer.per_rank_bytes
    rank = max(range(len(held)), key=held.__getitem__)
    stages = answer.stages
    number = rank // parallelism.tensor
    fixed = 0
    merged: dict[tuple[str, int, int | None, int, Rounding], int] = {}
    for group in answer.demand.groups:
        count = layers_in_stage(group.group, stages[number], is_last=number == len(stages) - 1)
        if not count:
            continue
        for stream in group.streams:
            row = count * stream.rank_row_bytes(parallelism.tensor)
            if stream.counted.axis is Axis.DECODER:
                key = _key(group.group.name, stream)
                merged[key] = merged.get(key, 0) + row
            else:
                fixed += row * stream.counted.rows(load.tokens_on(stream.counted.axis))
    return RankTerms(rank, fixed, tuple(Term(*key, size) for key, size in merged.items() if size))


def _key(name: str, stream: StreamDemand) -> tuple[str, int, int | None, int, Rounding]:
    counted = stream.counted
    return name, counted.from_tokens, counted.to_tokens, counted.step_tokens, counted.rounding
