"""What a layer holds between tokens: arrays that count their own bytes.

The words are those of ``kvgauge.layers``: a stream has a role, vectors and a width. Here a stream is an
array in the dtype it is stored in, and its bytes are the array's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvgauge.lab.codes import Floats, from_bf16, to_bf16
from kvgauge.layers import Role

Stored = NDArray[Any]


class Storage(NamedTuple):
    """How float32 values lie in memory."""

    dtype: np.dtype[Any]
    encode: Callable[[Floats], Stored]
    decode: Callable[[Stored], Floats]


STORAGES: Mapping[str, Storage] = {
    "f32": Storage(np.dtype(np.float32), lambda v: v.astype(np.float32), lambda s: s.astype(np.float32)),
    "f16": Storage(np.dtype(np.float16), lambda v: v.astype(np.float16), lambda s: s.astype(np.float32)),
    "bf16": Storage(np.dtype(np.uint16), to_bf16, from_bf16),
}


def as_stored(values: Floats, dtype: str) -> Floats:
    """Return values as they come back from memory in ``dtype``."""
    storage = STORAGES[dtype]
    return storage.decode(storage.encode(values))


@dataclass
class Rows:
    """Rows that grow by one a token, each ``vectors`` x ``width`` elements; a window keeps the last ones.

    Args:
        max_rows: the window; None keeps all.
    """

    role: Role
    vectors: int
    width: int
    dtype: str
    max_rows: int | None = None
    stored: Stored = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.stored = np.zeros((0, self.vectors, self.width), STORAGES[self.dtype].dtype)

    def append(self, rows: Floats) -> Floats:
        """Store ``rows`` (tokens, vectors, width) and return all that these tokens may see, as stored.

        What a window no longer covers is dropped after that, as the first of many new tokens still sees it.
        """
        storage = STORAGES[self.dtype]
        both = np.concatenate([self.stored, storage.encode(rows)])
        first = 0 if self.max_rows is None else max(0, len(both) - self.max_rows)
        self.stored = both[first:].copy()
        return storage.decode(both)

    @property
    def num_elements(self) -> int:
        """Elements of one row."""
        return self.vectors * self.width

    @property
    def num_bytes(self) -> int:
        """Bytes held now."""
        return self.stored.nbytes


@dataclass
class Fixed:
    """An array of one shape whatever the number of tokens: a state, or the columns of a convolution."""

    role: Role
    shape: tuple[int, ...]
    dtype: str
    stored: Stored = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.stored = np.zeros(self.shape, STORAGES[self.dtype].dtype)

    @property
    def values(self) -> Floats:
        """What is held, as float32; a copy."""
        return STORAGES[self.dtype].decode(self.stored)

    def replace(self, values: Floats) -> None:
        """Hold other values of the same shape."""
        assert values.shape == self.shape  # noqa: S101 - a layer's own mistake, never an input's
        self.stored = STORAGES[self.dtype].encode(values)

    @property
    def num_elements(self) -> int:
        """Elements of the array."""
        return self.stored.size

    @property
    def num_bytes(self) -> int:
        """Bytes held, from the first token on."""
        return self.stored.nbytes


@dataclass
class HeldCache:
    """All that one layer holds of one sequence."""

    streams: tuple[Rows | Fixed, ...] = ()
    num_tokens: int = 0

    def append(self, *rows: Floats) -> tuple[Floats, ...]:
        """Store the rows of new tokens, one array a stream that grows; return what they may see of each."""
        growing = (stream for stream in self.streams if isinstance(stream, Rows))
        seen = tuple(stream.append(new) for stream, new in zip(growing, rows, strict=True))
        self.num_tokens += len(rows[0])
        return seen

    @property
    def fixed(self) -> tuple[Fixed, ...]:
        """The streams that do not grow."""
        return tuple(stream for stream in self.streams if isinstance(stream, Fixed))

    @property
    def num_bytes(self) -> int:
        """Bytes held now."""
        return sum(stream.num_bytes for stream in self.streams)

    def bytes_by_role(self) -> dict[Role, int]:
        """Bytes held now, by what they are."""
        found: dict[Role, int] = {}
        for stream in self.streams:
            found[stream.role] = found.get(stream.role, 0) + stream.num_bytes
        return found


def held_bytes(caches: Iterable[HeldCache]) -> int:
    """Bytes that layers hold together."""
    return sum(cache.num_bytes for cache in caches)
