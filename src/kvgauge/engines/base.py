"""What every engine answers: demand, as streams of rows with a format and a count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from kvgauge.architecture import LayerGroup, ModelArchitecture, Note
from kvgauge.dtypes import row_bytes
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import Counted, LayerKind, Role, Shard, Stream
from kvgauge.workload import Workload


@dataclass(frozen=True, slots=True)
class RequestedDtypes:
    """Dtypes as asked for, canonical; None means auto."""

    k: str | None = None
    v: str | None = None
    state: str | None = None
    index: str | None = None


@dataclass(frozen=True, slots=True)
class StreamDemand:
    """A stream as an engine stores it.

    Args:
        counted: rows kept, which may differ from what must be kept.
        factor: times this row is held; negative in closed forms that subtract.
    """

    role: Role
    vectors: int
    width: int
    columns: int
    shard: Shard
    dtype: str
    counted: Counted
    factor: int = 1

    @classmethod
    def of(
        cls, stream: Stream, dtype: str, *, counted: Counted | None = None, columns: int | None = None
    ) -> StreamDemand:
        """Store ``stream`` in ``dtype``, with other rows or columns where the engine differs."""
        return cls(
            stream.role,
            stream.vectors,
            stream.width,
            stream.columns if columns is None else columns,
            stream.shard,
            dtype,
            stream.counted if counted is None else counted,
        )

    @property
    def row_bytes(self) -> int:
        """Bytes of one row on the whole model."""
        return self.factor * row_bytes(self.dtype, self.role, self.vectors, self.width, self.columns)

    def rank_row_bytes(self, tensor_ranks: int) -> int:
        """Bytes of one row on one tensor-parallel rank.

        Raises:
            FeatureUnsupportedError: the vectors can't be divided over the ranks.
        """
        vectors = rank_vectors(self.vectors, self.shard, tensor_ranks, self.role)
        return self.factor * row_bytes(self.dtype, self.role, vectors, self.width, self.columns)


def rank_vectors(vectors: int, shard: Shard, tensor_ranks: int, role: Role) -> int:
    """Return how many vectors of a stream one tensor-parallel rank holds.

    KV heads are divided, and replicated once ranks exceed heads (vLLM
    ``model_executor/models/llama.py``); latents, records and indexes are replicated; state heads
    must divide; Mamba-2 groups are padded up to the ranks.

    Raises:
        FeatureUnsupportedError: neither number divides the other.
    """
    if shard is Shard.REPLICATED or tensor_ranks == 1:
        return vectors
    if vectors % tensor_ranks == 0:
        return vectors // tensor_ranks
    if shard is Shard.GROUPS and vectors < tensor_ranks:
        return 1
    if shard is Shard.HEADS and tensor_ranks % vectors == 0:
        return 1
    what = "KV heads" if shard is Shard.HEADS else f"{role.value} heads"
    fits = [
        n for n in (1, 2, 4, 8, 16, 32, 64) if vectors % n == 0 or (shard is Shard.HEADS and n % vectors == 0)
    ]
    raise FeatureUnsupportedError(
        f"{vectors} {what} can't be spread over {tensor_ranks} tensor-parallel ranks",
        hint=f"--tp {', '.join(map(str, fits))} can",
        field="tp",
    )


@dataclass(frozen=True)
class GroupDemand:
    """All layers of one group, as the engine stores them."""

    group: LayerGroup
    streams: tuple[StreamDemand, ...]

    def sequence_bytes(self, workload: Workload) -> int:
        """Bytes of one layer for one sequence."""
        return sum(s.row_bytes * s.counted.rows(workload.tokens_on(s.counted.axis)) for s in self.streams)

    def shared_bytes(self, workload: Workload) -> int:
        """Bytes of one layer that further sequences do not need again."""
        prefix = workload.shared_prefix_tokens
        if not prefix:
            return 0
        return sum(s.row_bytes * s.counted.shared_rows(workload.context_tokens, prefix) for s in self.streams)


@dataclass(frozen=True)
class Demand:
    """What an engine keeps for a load.

    Args:
        allocates_ahead: the engine allocates for its own maximum, whatever the load.
        details: engine-specific figures for the ``details`` object.
    """

    groups: tuple[GroupDemand, ...]
    dtypes: RequestedDtypes
    notes: tuple[Note, ...] = ()
    details: dict[str, object] = field(default_factory=dict)


class Engine(Protocol):
    """One engine."""

    name: str

    def resolve_version(self, version: str | None) -> tuple[str | None, tuple[Note, ...]]:
        """Return the version whose rules apply, and what to say about it."""

    def demand(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None,
        args: str,
    ) -> Demand:
        """Return what the engine keeps for this load."""


def allocation_kind(kind: LayerKind) -> str:
    """Return the ``allocations[].kind`` word for a layer kind."""
    return "state" if kind in (LayerKind.RECURRENT, LayerKind.CONVOLUTION) else "cache"
