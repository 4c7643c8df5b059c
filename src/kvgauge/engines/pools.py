"""The pool of an engine: what a budget of bytes on each rank becomes, in every engine's words.

``Pool`` has a field for every figure of every engine; an engine leaves at None what it does not have.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Protocol

from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.architecture import Note
    from kvgauge.engines.base import RequestedDtypes


@dataclass(frozen=True, slots=True)
class PoolGroup:
    """Layers that share blocks.

    Args:
        page_bytes: a page of one layer, or of the whole group where its layers' pages differ.
        blocks_per_request: of the longest request.
    """

    kind: str
    num_layers: int
    block_size_tokens: int | None = None
    page_bytes: int | None = None
    blocks_per_request: int | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """The ``kv_pool`` object of the contract.

    Args:
        bytes: the budget of a rank.
        num_blocks: blocks that the engine allocates, of the stage that has fewest.
        bytes_per_block: of the whole model under pipeline parallelism, else of a rank.
        capacity_tokens, max_concurrency: as this version prints them in its own log.
    """

    bytes: int
    num_blocks: int | None = None
    block_size_tokens: int | None = None
    bytes_per_block: int | None = None
    blocks_per_request: int | None = None
    bytes_per_request: int | None = None
    capacity_tokens: int | None = None
    max_concurrency: float | None = None
    swa_tokens: int | None = None
    state_slots: int | None = None
    max_running_requests: int | None = None
    page_size_tokens: int | None = None
    mem_fraction_static: float | None = None
    groups: tuple[PoolGroup, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object of the contract."""
        return {**asdict(self), "groups": [asdict(group) for group in self.groups]}


class Capacity(Protocol):
    """What an engine makes of a pool under one load.

    The load is the workload that it was asked for: so many sequences of so many tokens. ``needed_bytes``
    never falls as either grows, so that the longest context and the most sequences can be searched for.
    """

    @property
    def needed_bytes(self) -> int:
        """The least pool of the fullest rank, reserved blocks included, that holds the load at once."""

    @property
    def dtypes(self) -> RequestedDtypes:
        """The formats of the cache, canonical."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to say about the engine's choices."""

    @property
    def details(self) -> dict[str, object]:
        """The engine's own figures."""

    @property
    def max_sequences(self) -> int | None:
        """Sequences that the engine's flags allow at once, where they say it."""

    @property
    def max_context_tokens(self) -> int | None:
        """The longest request that the engine's flags allow, where they say it."""

    def with_sequences(self, count: int) -> Capacity:
        """Return the same for another number of sequences."""

    def pool(self, available_bytes: int) -> Pool:
        """Return what a budget on every rank becomes."""

    def budget(self, available_bytes: int) -> int:
        """Return the bytes that the pool has: ``available_bytes``, unless a flag says otherwise."""

    def allocated_bytes(self, available_bytes: int) -> tuple[int, ...]:
        """Return what the engine allocates of the budget on a rank, by pipeline stage."""

    def admission(self, available_bytes: int) -> tuple[Note, ...]:
        """Return why the engine would not start with this budget, although the load may fit; else nothing."""

    def launch_command(self, model: str, available_bytes: int) -> str:
        """Return the command line that starts the engine for this load."""
