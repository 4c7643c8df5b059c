"""What PyTorch's caching allocator counts as allocated for a row of tensors that stay.

A request is rounded to 512 bytes and served from a segment; what is left of the segment is split off, or
counted with the tensor where it is too small (c10/cuda/CUDACachingAllocator.cpp: ``round_size``,
``get_allocation_size``, ``should_split``; the same for HIP). Start-up logs of engines print this count.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

_MIB = 1 << 20
#: Requests are multiples of it (kMinBlockSize).
_BLOCK_BYTES = 512
#: Up to here a request is a small one (kSmallSize), and of a large segment more than that is split off.
_SMALL_BYTES = _MIB
_SMALL_SEGMENT_BYTES = 2 * _MIB
#: Requests below this size share segments (kMinLargeAlloc), of kLargeBuffer; others get one of their own.
_OWN_SEGMENT_BYTES = 10 * _MIB
_SHARED_SEGMENT_BYTES = 20 * _MIB
_OWN_SEGMENT_STEP_BYTES = 2 * _MIB


def allocated_bytes(sizes: Iterable[int]) -> int:
    """Return the bytes that tensors of these sizes count, allocated in this order and kept.

    >>> mib = 1 << 20
    >>> allocated_bytes([int(37.5 * mib)]) / mib  # half a MiB of its segment of 38 is too little to split off
    38.0
    >>> allocated_bytes([int(12.5 * mib)]) / mib  # of 14, one and a half are
    12.5
    """
    free: dict[bool, list[int]] = {True: [], False: []}
    total = 0
    for size in sizes:
        request = -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
        if not request:
            continue
        is_small = request <= _SMALL_BYTES
        pool = free[is_small]
        place = bisect_left(pool, request)
        block = pool.pop(place) if place < len(pool) else _segment_bytes(request)
        left = block - request
        if left >= _BLOCK_BYTES if is_small else left > _SMALL_BYTES:
            insort(pool, left)
            block = request
        total += block
    return total


def _segment_bytes(request: int) -> int:
    if request <= _SMALL_BYTES:
        return _SMALL_SEGMENT_BYTES
    if request < _OWN_SEGMENT_BYTES:
        return _SHARED_SEGMENT_BYTES
    return -(-request // _OWN_SEGMENT_STEP_BYTES) * _OWN_SEGMENT_STEP_BYTES
