"""What an engine is told beside the load: ranks, card, and the reservation."""

from __future__ import annotations

from kvgauge.values import dataclass
from kvgauge.workload import Parallelism


@dataclass(frozen=True, slots=True)
class Card:
    """What engines ask of a GPU before they plan a cache.

    Args:
        capability: compute capability as (major, minor); None for other makers' cards.
        memory_bytes: what the driver reports.
    """

    name: str
    capability: tuple[int, int] | None
    memory_bytes: int


_ONE_RANK = Parallelism()


@dataclass(frozen=True, slots=True)
class Setup:
    """How an engine is started.

    Args:
        reserve_tokens: longest request that the engine is told of; 0: it finds the longest that fits; None:
            the context of the load.
        kv_word: the KV dtype as it was written, which may mean more to an engine than its canonical name.
        card: None where no card is named.
        kv_memory_bytes: the pool of each rank, where it is given.
        default_sequences: nobody says how many sequences there are.
        utilization: share of the card, as written.
        engine_version: as resolved, for the rules of how weights are held; None: the newest.
        host_matrix_bytes: the largest matrix of a block that lies on the host beside devices.
        host_output_bytes: the matrix of the logits, where it lies there.
    """

    parallelism: Parallelism = _ONE_RANK
    reserve_tokens: int | None = None
    kv_word: str | None = None
    card: Card | None = None
    kv_memory_bytes: int | None = None
    default_sequences: bool = False
    utilization: str | None = None
    engine_version: str | None = None
    host_matrix_bytes: int = 0
    host_output_bytes: int = 0


PLAIN_SETUP = Setup()
