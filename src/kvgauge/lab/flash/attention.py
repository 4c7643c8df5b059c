"""One head of attention, twice: with its score matrix in memory, and in tiles without; both count traffic.

The queries are the last of the tokens, so that one function is prefill (as many queries as keys) and
decode (one query).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.lab.flash.memory import Floats, Memory, Traffic
from kvgauge.lab.flash.online import OnlineSoftmax


@dataclass(frozen=True, slots=True)
class Tile:
    """How many queries and how many keys are held at once."""

    query_rows: int
    key_rows: int


@dataclass(frozen=True, slots=True)
class HeadShape:
    """One head: queries, keys that they attend to, width of a vector, whether the future is hidden."""

    num_queries: int
    num_keys: int
    head_dim: int
    causal: bool = False


def plain_attention(q: Floats, k: Floats, v: Floats, *, causal: bool = False) -> tuple[Floats, Traffic]:
    """Return softmax(q k^T / sqrt(d)) v and what it moved: scores and weights go to HBM and come back.

    Each of the three steps is a kernel of its own, as without fusion: q k^T, softmax, times v. A mask hides
    keys, it does not save traffic. The peak is not counted (0): such kernels tile as they like.
    """
    memory = Memory()
    shape = HeadShape(len(q), len(k), q.shape[1], causal)
    scores, weights = np.zeros((len(q), len(k))), np.zeros((len(q), len(k)))
    product = memory.read("q", q) @ memory.read("k", k).T / np.sqrt(q.shape[1])
    memory.write(scores, np.where(_seen(shape, slice(0, len(q)), slice(0, len(k))), product, -np.inf))
    held = memory.read("scores", scores)
    grown = np.exp(held - held.max(axis=1, keepdims=True))
    memory.write(weights, grown / grown.sum(axis=1, keepdims=True))
    out = np.zeros((len(q), v.shape[1]))
    memory.write(out, memory.read("weights", weights) @ memory.read("v", v))
    return out, Traffic(memory.read_elements, memory.written_elements, 0)


def tiled_attention(
    q: Floats, k: Floats, v: Floats, tile: Tile, *, causal: bool = False
) -> tuple[Floats, Traffic]:
    """Return what ``plain_attention`` returns, a tile of scores at a time, and what it moved.

    A block of queries stays while the keys and values pass by (FlashAttention-2's order), so an output is
    written once. Tiles that a causal mask hides whole are not read.
    """
    memory = Memory()
    shape = HeadShape(len(q), len(k), q.shape[1], causal)
    out = np.zeros((len(q), v.shape[1]))
    for rows in _blocks(len(q), tile.query_rows):
        queries = memory.read("q", q, rows)
        online = OnlineSoftmax(len(queries), v.shape[1])
        for columns in _blocks(last_key(shape, rows.stop), tile.key_rows, len(k)):
            keys, values = memory.read("k", k, columns), memory.read("v", v, columns)
            scores = memory.hold("scores", queries @ keys.T / np.sqrt(q.shape[1]))
            online.add(np.where(_seen(shape, rows, columns), scores, -np.inf), values)
            memory.hold("online", np.empty(online.num_elements))
        memory.write(out, online.result, rows)
        memory.drop("q", "k", "v", "scores", "online")
    return out, memory.traffic


def last_key(shape: HeadShape, stop_query: int) -> int:
    """Return how many keys the queries before ``stop_query`` may see."""
    return shape.num_keys - shape.num_queries + stop_query if shape.causal else shape.num_keys


def _blocks(length: int, step: int, limit: int | None = None) -> list[slice]:
    """Whole blocks that cover ``length`` rows of ``limit``; the last of the limit may be short."""
    limit = length if limit is None else limit
    return [slice(start, min(start + step, limit)) for start in range(0, length, step)]


def _seen(shape: HeadShape, rows: slice, columns: slice) -> np.ndarray:
    if not shape.causal:
        return np.ones((rows.stop - rows.start, columns.stop - columns.start), bool)
    positions = shape.num_keys - shape.num_queries + np.arange(rows.start, rows.stop)
    return positions[:, None] >= np.arange(columns.start, columns.stop)
