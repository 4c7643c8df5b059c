"""Keys, values and queries to quantise.

Keys of real models have a few channels that are large for every token; values do not (arXiv 2402.02750,
2401.18079). ``outliers`` makes such channels, so that formats meet what they meet in practice; with none,
all channels are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sample:
    """Queries (queries, query heads, width), keys and values (tokens, KV heads, width)."""

    queries: Floats
    keys: Floats
    values: Floats

    @property
    def num_tokens(self) -> int:
        """Tokens of the cache."""
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class SampleShape:
    """How large a sample is, and how uneven its keys.

    Args:
        num_outliers: channels of every head that are ``outlier_factor`` times as large.
    """

    num_tokens: int = 256
    num_heads: int = 8
    num_kv_heads: int = 2
    head_dim: int = 64
    num_outliers: int = 2
    outlier_factor: float = 10.0
    num_queries: int = 16


def make_sample(shape: SampleShape, seed: int = 0) -> Sample:
    """Return normally distributed arrays, the keys with large channels; queries are scaled against them.

    A model that has such keys has queries to match, else one channel would decide every score.
    """
    rng = np.random.default_rng(seed)
    keys = rng.standard_normal((shape.num_tokens, shape.num_kv_heads, shape.head_dim))
    values = rng.standard_normal(keys.shape)
    queries = rng.standard_normal((shape.num_queries, shape.num_heads, shape.head_dim))
    group = shape.num_heads // shape.num_kv_heads
    for head in range(shape.num_kv_heads):
        channels = rng.choice(shape.head_dim, shape.num_outliers, replace=False)
        keys[:, head, channels] *= shape.outlier_factor
        queries[:, head * group : (head + 1) * group, channels] /= shape.outlier_factor
    return Sample(*(array.astype(np.float32) for array in (queries, keys, values)))


def attend(sample: Sample, keys: Floats, values: Floats) -> Floats:
    """Return the attention outputs (queries, query heads, width) over these keys and values."""
    queries, heads, width = sample.queries.shape
    groups = keys.shape[1]
    grouped = sample.queries.reshape(queries, groups, -1, width).transpose(1, 2, 0, 3)
    rows = grouped.reshape(groups, -1, width)  # all queries of all heads that share a KV head
    scores = rows @ np.ascontiguousarray(keys.transpose(1, 2, 0)) / np.float32(np.sqrt(width))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed: Floats = weights @ np.ascontiguousarray(values.swapaxes(0, 1))
    return mixed.reshape(groups, -1, queries, width).transpose(2, 0, 1, 3).reshape(queries, heads, width)
