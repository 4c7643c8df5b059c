"""Keys, values and queries to quantise.

Keys of real models have a few channels that are large for every token; values do not (arXiv 2402.02750,
2401.18079). ``outliers`` makes such channels, so that formats meet what they meet in practice; with none,
all channels are alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.lab.arrays import Floats as AnyFloats
from kvgauge.lab.codes import Floats
from kvgauge.lab.generate import Sampling
from kvgauge.lab.mechanisms.pieces import softmax, visible
from kvgauge.lab.shipped import shipped_folder


@dataclass(frozen=True, slots=True)
class Sample:
    """Queries (queries, query heads, width) of the last tokens, keys and values (tokens, KV heads, width).

    Args:
        num_layers: whose heads stand side by side.
    """

    queries: Floats
    keys: Floats
    values: Floats
    num_layers: int = 1

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
    num_queries = min(shape.num_queries, shape.num_tokens)
    queries = rng.standard_normal((num_queries, shape.num_heads, shape.head_dim))
    group = shape.num_heads // shape.num_kv_heads
    for head in range(shape.num_kv_heads):
        channels = rng.choice(shape.head_dim, shape.num_outliers, replace=False)
        keys[:, head, channels] *= shape.outlier_factor
        queries[:, head * group : (head + 1) * group, channels] /= shape.outlier_factor
    return Sample(queries.astype(np.float32), keys.astype(np.float32), values.astype(np.float32))


def attend(sample: Sample, keys: Floats, values: Floats) -> Floats:
    """Return the outputs (queries, query heads, width) over these keys and values, later ones hidden."""
    queries, heads, width = sample.queries.shape
    groups = keys.shape[1]
    grouped = sample.queries.reshape(queries, groups, -1, width).transpose(1, 2, 0, 3)
    rows = grouped.reshape(groups, -1, width)  # all queries of all heads that share a KV head
    scores = rows @ np.ascontiguousarray(keys.transpose(1, 2, 0)) / np.float32(np.sqrt(width))
    weights = softmax(scores.reshape(groups, -1, queries, len(keys)), visible(queries, len(keys)))
    mixed: Floats = weights.reshape(groups, -1, len(keys)) @ np.ascontiguousarray(values.swapaxes(0, 1))
    return mixed.reshape(groups, -1, queries, width).transpose(2, 0, 1, 3).reshape(queries, heads, width)


def model_sample(num_tokens: int, seed: int = 0, num_queries: int = 16) -> Sample:
    """Return what the shipped model computes on a text of its own, all layers' heads side by side.

    The text is drawn from the model, token by token; a text that ends is followed by another.
    """
    decoder = shipped_folder().decoder
    choose = Sampling(1.0, seed).chooser()
    queries: list[list[Floats]] = [[] for _ in decoder.layers]

    def watch(layer: int, name: str, array: AnyFloats) -> None:
        if name == "query":  # (sequence, heads, tokens, width)
            queries[layer].append(np.asarray(array[0, :, -1], np.float32))

    cache, token = decoder.new_cache(), decoder.config.end_ids[0]
    for _ in range(num_tokens):
        token = choose(decoder.forward(np.array([[token]]), cache, watch=watch)[0, -1])
    last = np.concatenate([np.stack(rows[-num_queries:]) for rows in queries], axis=1)
    keys = [layer.keys[0] for layer in cache.layers if layer.keys is not None]
    values = [layer.values[0] for layer in cache.layers if layer.values is not None]
    return Sample(last, _side_by_side(keys), _side_by_side(values), len(keys))


def _side_by_side(layers: list[AnyFloats]) -> Floats:
    """(KV heads, tokens, width) of each layer as (tokens, all KV heads, width)."""
    return np.ascontiguousarray(np.concatenate(layers).swapaxes(0, 1), np.float32)
