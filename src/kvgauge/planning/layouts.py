"""The ways to spread a model over so many GPUs: the space that is searched, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from kvgauge.layers import Shard
from kvgauge.planning.rules import EngineRules, plan_rules
from kvgauge.values import dataclass
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from kvgauge.architecture import ModelArchitecture

#: Most ranks of a kind.
MAX_RANKS = 4096


@dataclass(frozen=True)
class Space:
    """What bounds the ways to spread one model.

    Args:
        heads: query heads, which tensor parallelism must divide; None where that is not known.
        kv_heads: the fewest KV heads of a layer; 0 where none are divided over ranks.
        replicated: some of the cache lies whole on every tensor rank: latents, indexes, records.
        has_experts: tokens are routed to experts, which expert parallelism spreads.
        sequences: held at once; no more replicas than that are of use.
        pinned: ranks that the request gives: tp, pp, dp, ep, dcp.
    """

    rules: EngineRules
    heads: int | None
    kv_heads: int
    replicated: bool
    has_experts: bool
    sequences: int
    pinned: Mapping[str, int] = field(default_factory=dict)

    def layouts(self, count: int) -> Iterator[tuple[Parallelism, ...]]:
        """Yield the layouts over ``count`` GPUs, by their number of pipeline stages: fewest first."""
        for stages in self._values("pp", range(1, self.rules.max_pipeline + 1)):
            if count % stages == 0:
                yield tuple(self._of_stage(count // stages, stages))

    def _of_stage(self, count: int, stages: int) -> Iterator[Parallelism]:
        for tensor in self._values("tp", range(1, plan_rules().max_tensor + 1)):
            replicas, rest = divmod(count, tensor)
            if rest or (self.heads and self.heads % tensor and "tp" not in self.pinned):
                continue
            if replicas * tensor > MAX_RANKS or replicas not in self._values(
                "dp", range(1, max(1, self.sequences) + 1)
            ):
                continue
            is_grouped = self.has_experts and tensor == 1
            if replicas > 1 and self.rules.replicas == "attention" and not is_grouped:
                continue
            for expert in self._experts(tensor, replicas):
                for context in self._values("dcp", self._contexts(tensor)):
                    if tensor % context == 0:
                        yield Parallelism(tensor, stages, replicas, expert, context)

    def _values(self, axis: str, free: range | tuple[int, ...]) -> range | tuple[int, ...]:
        if axis in self.pinned:
            return (self.pinned[axis],)
        return free if axis in self.rules.axes else (1,)

    def _experts(self, tensor: int, replicas: int) -> tuple[int, ...]:
        """Replicas of a model with experts share these: attention is replicated, experts are spread."""
        ranks = tensor * replicas
        if "ep" in self.pinned:
            return (self.pinned["ep"],)
        if not self.has_experts or ranks == 1 or "ep" not in self.rules.axes:
            return (1,)
        return (1, ranks) if replicas == 1 else (ranks,)

    def _contexts(self, tensor: int) -> tuple[int, ...]:
        """Return the ranks of context parallelism that save something: those that would hold copies."""
        copies = tensor if self.replicated else tensor // self.kv_heads if self.kv_heads else 1
        return (1, copies) if copies > 1 else (1,)


def space_of(
    architecture: ModelArchitecture,
    rules: EngineRules,
    *,
    has_experts: bool,
    sequences: int,
    pinned: Mapping[str, int],
) -> Space:
    """Return the space of a model under an engine."""
    streams = [stream for group in architecture.groups for stream in group.streams]
    divided = [stream.vectors for stream in streams if stream.shard is Shard.HEADS]
    replicated = any(s.shard is Shard.REPLICATED and s.counted.axis.value != "sequence" for s in streams)
    return Space(
        rules,
        architecture.num_attention_heads,
        min(divided, default=0),
        replicated,
        has_experts,
        sequences,
        pinned,
    )


__all__ = ["Space", "space_of"]
