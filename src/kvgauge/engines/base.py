"""What every engine answers: demand, as streams of rows with a format and a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from kvgauge.architecture import LayerGroup, ModelArchitecture, Note
from kvgauge.dtypes import row_bytes
from kvgauge.engines.setup import PLAIN_SETUP, Setup
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import STATE_KINDS, Counted, LayerKind, Role, Rounding, Shard, Stream
from kvgauge.values import dataclass
from kvgauge.workload import Parallelism, Workload

if TYPE_CHECKING:
    from kvgauge.engines.pools import Capacity
    from kvgauge.sharding import ShardPolicy


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

    @classmethod
    def padding(cls, rank_bytes: int, tensor_ranks: int, counted: Counted, factor: int = 1) -> StreamDemand:
        """Return bytes that each tensor-parallel rank sets aside for nothing."""
        shard = Shard.SPLIT if tensor_ranks > 1 else Shard.REPLICATED
        return cls(Role.PADDING, tensor_ranks, rank_bytes, 1, shard, "int8", counted, factor)

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
    fits = [n for n in (1, 2, 4, 8, 16, 32, 64) if vectors % n == 0]  # query heads need not divide by more
    raise FeatureUnsupportedError(
        f"{vectors} {what} can't be spread over {tensor_ranks} tensor-parallel ranks",
        hint=f"--tp {', '.join(map(str, fits))} can",
        field="tp",
    )


@dataclass(frozen=True)
class GroupDemand:
    """All layers of one group, as the engine stores them.

    Args:
        pooled: what all sequences of the load have together, where they share it; else nothing.
    """

    group: LayerGroup
    streams: tuple[StreamDemand, ...]
    pooled: tuple[StreamDemand, ...] = ()

    @property
    def is_engines_own(self) -> bool:
        """Whether no layer of the model is meant: bytes that lie between the layers' pages."""
        return bool(self.streams) and not self.group.streams

    @property
    def block_tokens(self) -> int | None:
        """Tokens of the blocks that rows lie in; None where rows are kept one by one."""
        steps = (s.counted.step_tokens for s in self.streams if s.counted.rounding is Rounding.CEIL)
        return next(steps, None)

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
        details: engine-specific figures for the ``details`` object.
        kept, used: the same groups with what must be kept in these formats, and with that and what is in use
            beyond it; what is then left of ``groups`` is padding. Empty where an engine sets no more aside.
        beside: what each rank sets aside once, whatever the load.
        equal_context_ranks: ranks of decode context parallelism set aside the same, not what they hold.
        stages: layers of each pipeline stage, where the engine deals them out in its own way.
        placed: its allocations by the engine's own names and places; empty where they follow from the groups.
        in_cells: rows lie in cells that are allocated ahead of the tokens.
    """

    groups: tuple[GroupDemand, ...]
    dtypes: RequestedDtypes
    notes: tuple[Note, ...] = ()
    details: dict[str, object] = field(default_factory=dict)
    kept: tuple[GroupDemand, ...] = ()
    used: tuple[GroupDemand, ...] = ()
    beside: tuple[Beside, ...] = ()
    equal_context_ranks: bool = False
    stages: tuple[range, ...] = ()
    placed: tuple[Placed, ...] = ()
    in_cells: bool = False


@dataclass(frozen=True, slots=True)
class Beside:
    """An allocation that no sequence causes; ``stage_bytes``: of a rank, by pipeline stage."""

    name: str
    stage_bytes: tuple[int, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Placed:
    """An allocation under the engine's own name; ``low_bytes`` to ``high_bytes`` is its range."""

    name: str
    kind: str
    rank: int
    place: str
    bytes: int
    low_bytes: int
    high_bytes: int
    grade: str
    because: str


@dataclass(frozen=True, slots=True)
class Offload:
    """Layers on devices: the last ``layers`` of the blocks and the output (None: all), in these shares.

    Args:
        host_expert_blocks: of so many first blocks the routed experts stay on the host.
        overrides: (pattern, device or None for the host) of tensors that lie elsewhere, before all else.
    """

    layers: int | None = None
    shares: tuple[float, ...] = (1.0,)
    host_expert_blocks: int = 0
    overrides: tuple[tuple[str, int | None], ...] = ()


class Engine(Protocol):
    """One engine."""

    name: str
    reads_gguf: bool

    def resolve_version(self, version: str | None) -> tuple[str | None, tuple[Note, ...]]:
        """Return the version whose rules apply, and what to say about it."""

    def told(self, args: str) -> Mapping[str, object]:
        """Return what the engine's flags say of the options that both have, under the options' names."""

    def told_beside(
        self, args: str, version: str | None, sequences: int | None, limit_tokens: int | None
    ) -> Mapping[str, object]:
        """Return the same where it depends on the version, an option's sequences, or the model's limit."""

    def ranks(self, spread: Parallelism) -> Parallelism:
        """Return the ranks that the engine makes of those asked for.

        Raises:
            FeatureUnsupportedError: it has no such parallelism.
        """

    def demand(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None,
        args: str,
        setup: Setup = PLAIN_SETUP,
    ) -> Demand:
        """Return what the engine keeps for this load."""

    def capacity(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None,
        args: str,
        setup: Setup = PLAIN_SETUP,
    ) -> Capacity:
        """Return what the engine makes of a pool of bytes under this load.

        Raises:
            FeatureUnsupportedError: how this engine lays out a pool is not known here.
        """

    def shard_policy(
        self, architecture: ModelArchitecture, setup: Setup, experts: Experts
    ) -> ShardPolicy | None:
        """Return how the engine cuts weights; None: evenly, nothing padded."""

    def offload(self, args: str, version: str | None, setup: Setup) -> Offload | None:
        """Return where it puts weights block by block; None: on its ranks."""

    def host_weight_bytes(self, args: str) -> int:
        """Return how many bytes of each rank's weights flags keep in the host's memory."""


@dataclass(frozen=True, slots=True)
class Experts:
    """Facts of a model's experts that their kernels depend on."""

    count: int = 0
    activation: str = "silu"


class PlainEngine:
    """What an engine answers where it has nothing of its own to say.

    Attributes:
        reads_gguf: it knows a model by the metadata of its GGUF, a config by what a conversion would write.
    """

    name = ""
    reads_gguf = False

    def told(self, args: str) -> Mapping[str, object]:
        """Return nothing: no flag of this engine says what an option says."""
        del args
        return {}

    def told_beside(
        self, args: str, version: str | None, sequences: int | None, limit_tokens: int | None
    ) -> Mapping[str, object]:
        """Return what the flags say, whatever stands beside them."""
        del version, sequences, limit_tokens
        return self.told(args)

    def ranks(self, spread: Parallelism) -> Parallelism:
        """Return the ranks as they were asked for."""
        return spread

    def capacity(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None,
        args: str,
        setup: Setup = PLAIN_SETUP,
    ) -> Capacity:
        """Refuse: there is no pool.

        Raises:
            FeatureUnsupportedError: always.
        """
        del architecture, workload, dtypes, version, args, setup
        raise FeatureUnsupportedError(
            f"{self.name} has no pool of cache that a load could fit in",
            hint="--engine vllm has one; 'kvgauge engines' lists the engines",
            field="engine",
        )

    def shard_policy(
        self, architecture: ModelArchitecture, setup: Setup, experts: Experts
    ) -> ShardPolicy | None:
        """Return none: weights are cut evenly."""
        del architecture, setup, experts
        return None

    def offload(self, args: str, version: str | None, setup: Setup) -> Offload | None:
        """Return none: weights lie on the ranks."""
        del args, version, setup
        return None

    def host_weight_bytes(self, args: str) -> int:
        """Return none: no flag of this engine says so."""
        del args
        return 0


def allocation_kind(kind: LayerKind) -> str:
    """Return the ``allocations[].kind`` word for a layer kind."""
    return "state" if kind in STATE_KINDS else "cache"
