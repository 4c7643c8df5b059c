"""What the layers are made of: projections, norms, rotary positions, softmax over what may be seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kvgauge.lab.codes import Floats

_ROTARY_BASE = 10_000.0
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
    """Turn pairs of (tokens, vectors, width) by their position (RoPE, arXiv 2104.09864); width is even."""
    half = x.shape[-1] // 2
    speeds = _ROTARY_BASE ** -(np.arange(half) / half)
    angles = (first_position + np.arange(len(x)))[:, None, None] * speeds
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    first, second = x[..., :half], x[..., half:]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


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
