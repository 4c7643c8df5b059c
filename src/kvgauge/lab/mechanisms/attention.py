"""Attention whose query heads have own K and V (MHA), share them in groups (GQA) or all together (MQA).

A window makes the same layer a sliding one: it keeps the last W rows instead of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.held import HeldCache, Rows
from kvgauge.lab.mechanisms.pieces import projection, rotate, softmax, visible
from kvgauge.layers import Role


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The shape of one attention layer; ``num_kv_heads`` divides ``num_heads``, ``head_dim`` is even."""

    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    window_tokens: int | None = None

    @property
    def num_weights(self) -> int:
        """Numbers in its matrices."""
        return 2 * self.hidden_size * (self.num_heads + self.num_kv_heads) * self.head_dim

    @property
    def is_sound(self) -> bool:
        """Whether heads share evenly, and their vectors can be turned in pairs."""
        return self.num_heads % self.num_kv_heads == 0 and self.head_dim % 2 == 0

    @property
    def word(self) -> str:
        """mha, gqa, mqa, or sliding where there is a window."""
        if self.window_tokens is not None:
            return "sliding"
        if self.num_kv_heads == self.num_heads:
            return "mha"
        return "mqa" if self.num_kv_heads == 1 else "gqa"


class GroupedAttention:
    """A layer with random weights; its cache keeps K and V of every token, or of the window."""

    def __init__(self, shape: AttentionShape, rng: np.random.Generator) -> None:
        self.shape = shape
        hidden, width = shape.hidden_size, shape.head_dim
        self.w_q = projection(rng, hidden, shape.num_heads * width)
        self.w_k = projection(rng, hidden, shape.num_kv_heads * width)
        self.w_v = projection(rng, hidden, shape.num_kv_heads * width)
        self.w_o = projection(rng, shape.num_heads * width, hidden)

    @property
    def word(self) -> str:
        """The word of its shape."""
        return self.shape.word

    def new_cache(self, dtype: str) -> HeldCache:
        """Return an empty cache for one sequence."""
        shape = self.shape
        return HeldCache(
            tuple(
                Rows(role, shape.num_kv_heads, shape.head_dim, dtype, shape.window_tokens)
                for role in (Role.KEY, Role.VALUE)
            )
        )

    def forward(self, x: Floats, cache: HeldCache) -> Floats:
        """Return the outputs of the next tokens, x (tokens, hidden), and keep their K and V."""
        shape, tokens = self.shape, len(x)
        q = rotate((x @ self.w_q).reshape(tokens, -1, shape.head_dim), cache.num_tokens)
        k = rotate((x @ self.w_k).reshape(tokens, -1, shape.head_dim), cache.num_tokens)
        v = (x @ self.w_v).reshape(tokens, -1, shape.head_dim)
        keys, values = cache.append(k, v)
        seen = visible(tokens, len(keys), shape.window_tokens)
        return self._attend(q, keys, values, seen) @ self.w_o

    def _attend(self, q: Floats, keys: Floats, values: Floats, seen: NDArray[np.bool_]) -> Floats:
        """Each group of query heads attends to the one K and V that it shares."""
        tokens, groups, width = len(q), self.shape.num_kv_heads, self.shape.head_dim
        grouped = q.reshape(tokens, groups, -1, width).transpose(1, 2, 0, 3)  # group, query head, token
        scores = grouped.reshape(groups, -1, width) @ keys.transpose(1, 2, 0) / np.float32(np.sqrt(width))
        weights = softmax(scores.reshape(groups, -1, tokens, len(keys)), seen)
        mixed: Floats = weights.reshape(groups, -1, len(keys)) @ values.swapaxes(0, 1)
        return mixed.reshape(groups, -1, tokens, width).transpose(2, 0, 1, 3).reshape(tokens, -1)
