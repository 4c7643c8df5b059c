"""The allocator of a graph: which bytes are free, and how far its buffer has to reach.

``src/ggml-alloc.c`` of v0.5.0 keeps a list of free stretches by address. A tensor goes into the smallest
stretch that holds it, the later one of two alike, and into the open end where none does; what is freed joins
its neighbours. The size of a buffer is how far a tensor ever reached, so it counts tensors that live together
and gaps between them that were too small for what came next.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Tensors start at multiples of this (``TENSOR_ALIGNMENT`` of the CPU's buffers; CUDA's is 128).
ALIGNMENT = 32
_OPEN_END = 1 << 62


@dataclass(slots=True)
class Arena:
    """A buffer that grows to what its tensors need.

    Args:
        free: stretches (offset, bytes) by address; the last is the open end.
        reach_bytes: how far a tensor ever reached.

    >>> arena = Arena()
    >>> mask, rows = arena.take(4096), arena.take(1024)
    >>> arena.give(mask, 4096)
    >>> arena.take(8192), arena.reach_bytes
    (5120, 13312)
    """

    free: list[tuple[int, int]] = field(default_factory=lambda: [(0, _OPEN_END)])
    reach_bytes: int = 0

    def take(self, size: int) -> int:
        """Return the offset of a new tensor of ``size`` bytes; one of none takes no room."""
        if not size:
            return 0
        best = len(self.free) - 1
        best_size = 0
        for index, (_, held) in enumerate(self.free[:-1]):
            if held >= size and (not best_size or held <= best_size):
                best, best_size = index, held
        offset, held = self.free[best]
        if held == size:
            del self.free[best]
        else:
            self.free[best] = (offset + size, held - size)
        self.reach_bytes = max(self.reach_bytes, offset + size)
        return offset

    def give(self, offset: int, size: int) -> None:
        """Free a tensor, or the end of one."""
        if not size:
            return
        free = self.free
        at = next((i for i, (start, _) in enumerate(free) if start > offset), len(free))
        if at and sum(free[at - 1]) == offset:
            at -= 1
            free[at] = (free[at][0], free[at][1] + size)
        else:
            free.insert(at, (offset, size))
        if at + 1 < len(free) and sum(free[at]) == free[at + 1][0]:
            free[at] = (free[at][0], free[at][1] + free[at + 1][1])
            del free[at + 1]


def padded(size: int) -> int:
    """Round a tensor's bytes up to the alignment.

    >>> padded(148)
    160
    """
    return -(-size // ALIGNMENT) * ALIGNMENT
