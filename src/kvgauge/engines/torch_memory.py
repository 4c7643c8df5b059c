"""What PyTorch's caching allocator counts as allocated for a row of tensors that stay.

A request is rounded to 512 bytes and served from a segment; what is left of the segment is split off, or
counted with the tensor where it is too small (c10/cuda/CUDACachingAllocator.cpp: ``round_size``,
``get_allocation_size``, ``should_split``; the same for HIP). Start-up logs of engines print this count, or,
where they ask the device what is free, whole segments.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator

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
    return sum(block for block, _ in _placed(sizes))


def reserved_bytes(sizes: Iterable[int]) -> int:
    """Return the bytes of the segments that such tensors take from the device, whole ones.

    >>> mib = 1 << 20
    >>> reserved_bytes([int(12.5 * mib)]) / mib, reserved_bytes([mib // 2] * 3) / mib
    (14.0, 2.0)
    """
    return sum(segment for _, segment in _placed(sizes))


def _placed(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (bytes counted, bytes of a new segment or 0) of each tensor."""
    free: dict[bool, list[int]] = {True: [], False: []}
    for size in sizes:
        request = -(-size // _BLOCK_BYTES) * _BLOCK_BYTES
        if not request:
            continue
        is_small = request <= _SMALL_BYTES
        pool = free[is_small]
        place = bisect_left(pool, request)
        segment = 0 if place < len(pool) else _segment_bytes(request)
        block = segment or pool.pop(place)
        left = block - request
        if left >= _BLOCK_BYTES if is_small else left > _SMALL_BYTES:
            insort(pool, left)
            block = request
        yield block, segment


def _segment_bytes(request: int) -> int:
    if request <= _SMALL_BYTES:
        return _SMALL_SEGMENT_BYTES
    if request < _OWN_SEGMENT_BYTES:
        return _SHARED_SEGMENT_BYTES
    return -(-request // _OWN_SEGMENT_STEP_BYTES) * _OWN_SEGMENT_STEP_BYTES
