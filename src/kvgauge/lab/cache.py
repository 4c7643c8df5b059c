"""The KV cache: for each layer, the keys and values of every token so far, and nothing else."""

from __future__ import annotations

import numpy as np

from kvgauge.lab.arrays import Floats


class LayerStore:
    """One layer's keys and values.

    ``keys`` and ``values`` are [sequences, KV heads, tokens, width], or None before the first token.
    """

    def __init__(self) -> None:
        self.keys: Floats | None = None
        self.values: Floats | None = None
        self.rows_written = 0
        self.bytes_read = 0

    def append(self, keys: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Add the rows of new tokens; return all rows, which attention then reads."""
        self.rows_written += keys.shape[2]
        self.keys = keys if self.keys is None else np.concatenate([self.keys, keys], axis=2)
        self.values = values if self.values is None else np.concatenate([self.values, values], axis=2)
        self.bytes_read += self.num_bytes
        return self.keys, self.values

    @property
    def num_bytes(self) -> int:
        """Bytes of both arrays."""
        return sum(array.nbytes for array in (self.keys, self.values) if array is not None)


class Cache:
    """The stores of all layers."""

    def __init__(self, num_layers: int) -> None:
        self.layers = tuple(LayerStore() for _ in range(num_layers))

    @property
    def num_tokens(self) -> int:
        """Tokens that are held."""
        keys = self.layers[0].keys
        return 0 if keys is None else keys.shape[2]

    @property
    def num_bytes(self) -> int:
        """Bytes that are held."""
        return sum(layer.num_bytes for layer in self.layers)

    @property
    def bytes_read(self) -> int:
        """Bytes of keys and values that attention has read since the beginning, in all layers."""
        return sum(layer.bytes_read for layer in self.layers)

    @property
    def rows_written(self) -> int:
        """Tokens whose key and value were computed, in one layer, since the beginning."""
        return self.layers[0].rows_written
