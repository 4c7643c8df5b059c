"""What the layers are made of: projections, norms, rotary positions, softmax over what may be seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kvgauge.lab.codes import Floats
from kvgauge.lab.rope import Rope, turn

_ROPE = Rope()
_TINY = np.float32(1e-6)


def projection(rng: np.random.Generator, inputs: int, outputs: int) -> Floats:
    """Return a random (inputs, outputs) matrix that keeps the size of what goes through it."""
    return np.float32(1 / np.sqrt(inputs)) * rng.standard_normal((inputs, outputs), np.float32)


def rms_norm(x: Floats) -> Floats:
    """Return vectors of mean square one along the last axis (arXiv 1910.07467), without a weight."""
    return np.asarray(x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + _TINY), np.float32)


def unit(x: Floats) -> Floats:
    """Return vectors of length one along the last axis."""
    return np.asarray(x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + _TINY), np.float32)


def sigmoid(x: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)), np.float32)


def silu(x: Floats) -> Floats:
    """Return x sigmoid(x)."""
    return x * sigmoid(x)


def softplus(x: Floats) -> Floats:
    """Return log(1 + exp(x)), without overflow."""
    return np.logaddexp(np.float32(0), x).astype(np.float32)


def rotate(x: Floats, first_position: int) -> Floats:
    """Turn pairs of (tokens, vectors, width) by their positions; width is even."""
    turned = turn(x.swapaxes(0, 1), _ROPE.turns(first_position, len(x), x.shape[-1])).swapaxes(0, 1)
    return np.asarray(turned, np.float32)


def visible(num_queries: int, num_keys: int, window_tokens: int | None = None) -> NDArray[np.bool_]:
    """Return (queries, keys): which of the last keys each of the last queries may see.

    The queries are the last ``num_queries`` positions; a window counts the query's own position.
    """
    ages = (num_keys - num_queries + np.arange(num_queries))[:, None] - np.arange(num_keys)
    seen = ages >= 0
    return seen if window_tokens is None else seen & (ages < window_tokens)


def softmax(scores: Floats, seen: NDArray[np.bool_]) -> Floats:
    """Return weights that sum to one along the last axis, zero where nothing may be seen."""
    masked = np.where(seen, scores, -np.inf)
    grown = np.exp(masked - masked.max(axis=-1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=-1, keepdims=True), np.float32)
