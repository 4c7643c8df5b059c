"""The traffic of attention in closed form: what ``attention`` counts, for lengths that nobody would run.

With N queries, M keys, width d, tiles of r queries and c keys:

- plain: reads (N + 2M) d + 2NM, writes N d + 2NM: the scores pass four times (written, read, as weights
  written, read);
- tiled: reads N d + ceil(N/r) 2M d, writes N d. With a causal mask a block of queries reads the keys up to
  its last one, in whole tiles;
- fast memory: r d (queries) + 2 c d (keys, values) + r c (scores) + r d + 2 r (outputs, maximum, sum).
"""

from __future__ import annotations

from kvgauge.lab.flash.attention import HeadShape, Tile, last_key
from kvgauge.lab.flash.memory import Traffic


def plain_traffic(shape: HeadShape) -> Traffic:
    """Return the traffic of one head whose scores and weights go through memory.

    >>> plain_traffic(HeadShape(4, 4, 2)).moved_elements
    96
    """
    queries, keys, width = shape.num_queries, shape.num_keys, shape.head_dim
    matrix = queries * keys
    return Traffic((queries + 2 * keys) * width + 2 * matrix, queries * width + 2 * matrix, 0)


def tiled_traffic(shape: HeadShape, tile: Tile) -> Traffic:
    """Return the traffic and the fast memory of one head in tiles."""
    queries, width = shape.num_queries, shape.head_dim
    passed = _passed_keys(shape, tile)
    return Traffic(queries * width + 2 * passed * width, queries * width, _peak_elements(shape, tile))


def score_elements(shape: HeadShape) -> int:
    """Elements of one score matrix."""
    return shape.num_queries * shape.num_keys


def score_passes(shape: HeadShape) -> int:
    """Elements that scores and weights move in plain attention: each written once and read once."""
    return 4 * score_elements(shape)


def seen_scores(shape: HeadShape) -> int:
    """Scores that a causal mask leaves; all of them without a mask.

    >>> seen_scores(HeadShape(4, 4, 1, causal=True))
    10
    """
    if not shape.causal:
        return score_elements(shape)
    hidden = shape.num_queries * (shape.num_queries - 1) // 2
    return score_elements(shape) - hidden


def _passed_keys(shape: HeadShape, tile: Tile) -> int:
    """Keys that pass by all blocks of queries together."""
    blocks = -(-shape.num_queries // tile.query_rows)
    if not shape.causal:
        return blocks * shape.num_keys
    stops = (min((block + 1) * tile.query_rows, shape.num_queries) for block in range(blocks))
    seen = (last_key(shape, stop) for stop in stops)
    return sum(min(-(-keys // tile.key_rows) * tile.key_rows, shape.num_keys) for keys in seen)


def _peak_elements(shape: HeadShape, tile: Tile) -> int:
    rows, columns = min(tile.query_rows, shape.num_queries), min(tile.key_rows, shape.num_keys)
    width = shape.head_dim
    return 2 * rows * width + 2 * columns * width + rows * columns + 2 * rows
