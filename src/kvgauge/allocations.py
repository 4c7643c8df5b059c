"""What each rank holds, allocation by allocation: the entries of ``engine.allocations``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from kvgauge.engines.base import allocation_kind
from kvgauge.layers import STATE_KINDS

if TYPE_CHECKING:
    from kvgauge.cache import CacheAnswer
    from kvgauge.engines.base import GroupDemand

Allocation = dict[str, object]

#: Name of what is in use beyond what must be kept -> what it is.
_BEYOND = {
    "beyond_window": ("cache", "tokens behind the window, which this engine keeps as well"),
    "in_flight": ("cache", "tokens beyond the window, whose blocks requests in flight may still read"),
    "state_copies": ("state", "states beyond one a sequence: for prefixes, checkpoints and drafted tokens"),
}
_PADDING = "blocks filled in part, pages padded to one size, layers that a group lacks"


def allocation(name: str, kind: str, rank: int, size_bytes: int, grade: str, because: str) -> Allocation:
    """Return one entry, exact."""
    return {
        "name": name,
        "kind": kind,
        "rank": rank,
        "place": f"gpu:{rank}",
        "bytes": size_bytes,
        "low_bytes": size_bytes,
        "high_bytes": size_bytes,
        "grade": grade,
        "because": because,
    }


def cache_allocations(cache: CacheAnswer, grade: str) -> Iterator[Allocation]:
    """Yield the cache of every rank.

    One entry a group of layers; where an engine sets aside more than must be kept, the group's entry is what
    must be kept, and the rest follows as entries of its own. Blocks that no sequence causes come last.
    """
    demand = cache.demand
    if demand.placed:
        for placed in demand.placed:
            entry = asdict(placed)
            yield entry | {"grade": grade} if placed.grade == "exact" else entry
        return
    taken = cache.rank_group_bytes
    kept = _of(cache, demand.kept) or taken
    used = _of(cache, demand.used) or taken
    for rank, sizes in enumerate(zip(taken, kept, used, strict=True)):
        beyond = dict.fromkeys(_BEYOND, 0)
        padding = 0
        in_use = demand.used or demand.groups
        for group, held, own, must, holds in zip(demand.groups, in_use, *sizes, strict=True):
            if must:
                kind = group.group.kind
                because = f"{group.group.num_layers} {kind.value} layers"
                yield allocation(group.group.name, allocation_kind(kind), rank, must, grade, because)
            beyond[_name_beyond(held)] += holds - must
            padding += own - holds
        for name, size in beyond.items():
            if size:
                yield allocation(name, _BEYOND[name][0], rank, size, grade, _BEYOND[name][1])
        if padding:
            yield allocation("padding", "cache", rank, padding, grade, _PADDING)
        for part in demand.beside:
            size = part.stage_bytes[rank // cache.parallelism.tensor]
            if size:
                yield allocation(part.name, "cache", rank, size, grade, part.because)


def _name_beyond(held: GroupDemand) -> str:
    """Return what a group holds beyond what must be kept."""
    if held.group.kind in STATE_KINDS:
        return "state_copies"
    endless = all(stream.counted.to_tokens is None for stream in held.streams)
    return "beyond_window" if endless else "in_flight"


def _of(cache: CacheAnswer, groups: tuple[GroupDemand, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the bytes of other demands for the same groups, by rank and group."""
    return replace(cache, demand=replace(cache.demand, groups=groups)).rank_group_bytes if groups else ()


def kept_bytes(cache: CacheAnswer) -> tuple[int, ...]:
    """Return what must be kept of each group, for all sequences, the whole model counted once."""
    return replace(cache, demand=replace(cache.demand, groups=cache.demand.kept)).group_bytes


def set_aside(cache: CacheAnswer) -> dict[str, int]:
    """Return what makes up an engine's bytes on all ranks: kept, in use beyond that, padding, reserved."""
    sums = dict.fromkeys(("kept", *_BEYOND, "padding", "reserved"), 0)
    for part in cache_allocations(cache, "exact"):
        name = str(part["name"])
        sums[name if name in sums else "kept"] += int(str(part["bytes"]))
    return sums


__all__ = ["Allocation", "allocation", "cache_allocations", "kept_bytes", "set_aside"]
