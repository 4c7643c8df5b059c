"""The rule of thumb ``W + K + 0.1 W``: weights, the cache that must be kept, a tenth of the weights.

It is the rule of the article that this project grew from, kept for comparison: what engines need beside
weights and cache does not follow the weights (5 times them for a small model, a twelfth for a large one).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from kvgauge.architecture import Note
from kvgauge.engines.base import Demand, GroupDemand, RequestedDtypes
from kvgauge.engines.pools import Pool
from kvgauge.units import MAX_TOKENS
from kvgauge.values import dataclass
from kvgauge.workload import Parallelism, Workload

#: Share of the weights that the rule takes for everything else.
OVERHEAD_SHARE = 0.1


@dataclass(frozen=True)
class TheoryCapacity:
    """A load by the rule of thumb, the cache divided over tensor-parallel ranks."""

    found: Demand
    workload: Workload
    parallelism: Parallelism

    @cached_property
    def needed_bytes(self) -> int:
        """Cache and state of the load on a rank."""
        return self._bytes(self.workload)

    def _bytes(self, load: Workload) -> int:
        sequences = -(-load.sequences // self.parallelism.data)
        total = 0
        for group in self.found.groups:
            one, shared = self._layer_bytes(group, load)
            total += group.group.num_layers * (one * sequences - shared * (sequences - 1))
        return total

    def _layer_bytes(self, group: GroupDemand, load: Workload) -> tuple[int, int]:
        """Return bytes of one layer for one sequence, and those that further sequences share."""
        own = shared = 0
        for stream in group.streams:
            row = stream.rank_row_bytes(self.parallelism.tensor)
            own += row * stream.counted.rows(load.tokens_on(stream.counted.axis))
            if load.shared_prefix_tokens:
                rows = stream.counted.shared_rows(load.context_tokens, load.shared_prefix_tokens)
                shared += row * rows
        return own, shared

    @property
    def dtypes(self) -> RequestedDtypes:
        """The formats of the cache, canonical."""
        return self.found.dtypes

    @property
    def notes(self) -> tuple[Note, ...]:
        """That this is a rule of thumb."""
        text = "a rule of thumb: weights + cache + a tenth of the weights; an engine's own answer says more"
        return (*self.found.notes, Note("rule_of_thumb", "warning", text))

    @property
    def details(self) -> dict[str, object]:
        """The share of the rule."""
        return {"overhead_share": OVERHEAD_SHARE}

    @property
    def max_sequences(self) -> int | None:
        """None: no flag says it."""
        return None

    @property
    def max_context_tokens(self) -> int | None:
        """None: no flag says it."""
        return None

    def with_sequences(self, count: int) -> TheoryCapacity:
        """Return the same for another number of sequences."""
        return replace(self, workload=replace(self.workload, sequences=count))

    def pool(self, available_bytes: int) -> Pool:
        """Return the tokens of one sequence that a room holds, and how many times the load it is."""
        one = replace(self.workload, sequences=1)
        each = self._bytes(one)
        return Pool(
            available_bytes,
            bytes_per_request=each,
            capacity_tokens=self._tokens(max(0, available_bytes)),
            max_concurrency=available_bytes / each if each else None,
        )

    def _tokens(self, room: int) -> int | None:
        """Return the tokens that fit where their bytes go on growing as they do at the load's context.

        None where they do not grow there: room is no limit of theirs.
        """
        at = min(self.workload.context_tokens, MAX_TOKENS - 1)
        one = replace(self.workload, sequences=1)
        here, longer = (self._bytes(replace(one, context_tokens=tokens)) for tokens in (at, at + 1))
        growth = longer - here
        return max(0, at + (room - here) // growth) if growth else None

    def budget(self, available_bytes: int) -> int:
        """Return the budget: nothing else sets it."""
        return available_bytes

    def allocated_bytes(self, available_bytes: int) -> tuple[int, ...]:
        """Return the budget for every stage."""
        return (available_bytes,) * self.parallelism.pipeline

    def admission(self, available_bytes: int) -> tuple[Note, ...]:
        """Return nothing: a rule starts nothing."""
        del available_bytes
        return ()

    def launch_command(self, model: str, available_bytes: int) -> str:
        """Return nothing: a rule starts nothing."""
        del model, available_bytes
        return ""


__all__ = ["OVERHEAD_SHARE", "TheoryCapacity"]
