"""Causal convolutions along the tokens: what they keep is the last kernel - 1 inputs.

Alone they are a layer of LFM2 (short convolution); the gated delta net and Mamba-2 put one before their
recurrence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.held import Fixed, HeldCache, as_stored
from kvgauge.lab.mechanisms.pieces import projection
from kvgauge.layers import Role


def convolution_columns(channels: int, kernel: int, dtype: str) -> Fixed:
    """Return the columns that a convolution keeps: kernel - 1, of zeros at first."""
    return Fixed(Role.CONV, (kernel - 1, channels), dtype)


def convolve(x: Floats, columns: Fixed, weight: Floats) -> Floats:
    """Convolve x (tokens, channels) with a weight (kernel, channels) each, and keep the last columns.

    One token at a time or all at once: the outputs are the same.
    """
    kernel = len(weight)
    past = np.concatenate([columns.values, as_stored(x, columns.dtype)])
    columns.replace(past[len(past) - (kernel - 1) :])
    taps = [past[tap : tap + len(x)] * weight[tap] for tap in range(kernel)]
    return np.asarray(np.sum(taps, axis=0), np.float32)


@dataclass(frozen=True, slots=True)
class ConvolutionShape:
    """The shape of one short-convolution layer; ``kernel`` is ``conv_L_cache`` of its config."""

    hidden_size: int
    kernel: int

    @property
    def num_weights(self) -> int:
        """Numbers in its matrices."""
        return self.hidden_size * (4 * self.hidden_size + self.kernel)

    @property
    def is_sound(self) -> bool:
        """Any width runs."""
        return True


class ShortConvolution:
    """A gated convolution over the hidden channels (LFM2), with random weights."""

    word = "short_convolution"

    def __init__(self, shape: ConvolutionShape, rng: np.random.Generator) -> None:
        self.shape = shape
        self.w_in = projection(rng, shape.hidden_size, 3 * shape.hidden_size)
        self.weight = projection(rng, shape.kernel, shape.hidden_size)
        self.w_out = projection(rng, shape.hidden_size, shape.hidden_size)

    def new_cache(self, dtype: str) -> HeldCache:
        """Return the columns of one sequence."""
        return HeldCache((convolution_columns(self.shape.hidden_size, self.shape.kernel, dtype),))

    def forward(self, x: Floats, cache: HeldCache) -> Floats:
        """Return the outputs of the next tokens, x (tokens, hidden)."""
        before, after, inner = np.split(x @ self.w_in, 3, axis=-1)
        (columns,) = cache.fixed
        cache.num_tokens += len(x)
        mixed: Floats = after * convolve(before * inner, columns, self.weight)
        return mixed @ self.w_out
