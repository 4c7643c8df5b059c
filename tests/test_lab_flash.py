"""Tiled attention: equal to the plain one, its traffic equal to the closed form, at any tile."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

np = pytest.importorskip("numpy")

from kvgauge.lab.flash.attention import HeadShape, Tile, plain_attention, tiled_attention  # noqa: E402
from kvgauge.lab.flash.formula import (  # noqa: E402
    plain_traffic,
    score_elements,
    score_passes,
    seen_scores,
    tiled_traffic,
)
from kvgauge.lab.flash.online import OnlineSoftmax  # noqa: E402

tiles = st.builds(Tile, st.integers(1, 20), st.integers(1, 20))


@st.composite
def heads(draw):
    queries = draw(st.integers(1, 16))
    return HeadShape(
        queries, queries + draw(st.integers(0, 12)), draw(st.integers(1, 6)), draw(st.booleans())
    )


def inputs(shape: HeadShape, seed: int = 0, size: float = 1.0):
    rng = np.random.default_rng(seed)
    rows = (shape.num_queries, shape.num_keys, shape.num_keys)
    return [size * rng.standard_normal((n, shape.head_dim)) for n in rows]


@settings(deadline=None)
@given(heads(), tiles, st.sampled_from([1.0, 300.0]))
def test_outputs_and_traffic(shape, tile, size):
    """Large scores too: the running maximum keeps them from overflowing."""
    q, k, v = inputs(shape, size=size)
    plain, plain_moved = plain_attention(q, k, v, causal=shape.causal)
    tiled, tiled_moved = tiled_attention(q, k, v, tile, causal=shape.causal)
    assert np.allclose(plain, tiled, rtol=1e-9, atol=1e-9)
    assert plain_moved == plain_traffic(shape)
    assert tiled_moved == tiled_traffic(shape, tile)


def test_plain_attention_is_the_definition():
    q, k, v = inputs(HeadShape(3, 5, 2, causal=True))
    expected = np.zeros((3, 2))
    for row in range(3):
        seen = row + 3
        weights = np.exp(k[:seen] @ q[row] / np.sqrt(2))
        expected[row] = weights @ v[:seen] / weights.sum()
    assert np.allclose(plain_attention(q, k, v, causal=True)[0], expected)


@given(st.lists(st.lists(st.floats(-50, 50), min_size=1, max_size=5), min_size=1, max_size=6), st.randoms())
def test_online_softmax_does_not_care_about_order(pieces, random):
    rng = np.random.default_rng(0)
    tiles = [(np.array([piece]), rng.standard_normal((len(piece), 3))) for piece in pieces]
    results = []
    for _ in range(2):
        online = OnlineSoftmax(1, 3)
        for scores, values in tiles:
            online.add(scores, values)
        results.append(online.result)
        random.shuffle(tiles)
    assert np.allclose(*results)


def test_a_row_that_sees_nothing_is_not_a_number():
    online = OnlineSoftmax(1, 2)
    online.add(np.array([[-np.inf, -np.inf]]), np.ones((2, 2)))
    assert np.isnan(online.result).all()


def test_the_figures_of_the_article():
    """Qwen3-8B at 32K: 32 heads, bf16. 137.4 + 137.4 = 274.9 GB is one layer's passes over scores and weights."""
    head = HeadShape(32_768, 32_768, 128)
    assert 2 * score_elements(head) == 2 << 30  # "2 GB" a head is 2 GiB
    passes = 32 * score_passes(head) * 2
    assert passes == 256 << 30
    assert (round(passes / 2 / 1e9, 1), round(passes / 1e9, 1)) == (137.4, 274.9)
    causal = HeadShape(32_768, 32_768, 128, causal=True)
    assert 2 * seen_scores(causal) == score_elements(head) + 32_768
    decode = HeadShape(1, 32_768, 128)
    assert score_passes(head) == 32_768 * score_passes(decode)


def test_wider_query_tiles_read_less():
    head = HeadShape(4096, 4096, 64)
    moved = [tiled_traffic(head, Tile(rows, 64)).moved_elements for rows in (16, 64, 256, 4096)]
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] == 4 * 4096 * 64  # all queries held: everything passes once
