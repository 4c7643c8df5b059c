"""Mamba-2 (arXiv 2405.21060): a state-space recurrence, token by token and chunk by chunk, and its layer.

The state h (state size x head width, one a head) decays and takes in B x, and C reads it::

    h <- exp(d A) h + B (d x)^T;  y = h^T C + D x

A chunk is the same sum written as matrix products: with g_t the product of the decays up to t,
Y = g C h_0 + (C B^T * D)(d X), D_ts = g_t / g_s for s <= t. B and C are shared by the heads of a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.convolution import convolution_columns, convolve
from kvgauge.lab.mechanisms.held import Fixed, HeldCache
from kvgauge.lab.mechanisms.pieces import projection, rms_norm, silu, softplus
from kvgauge.lab.mechanisms.scan import by_chunks, by_steps
from kvgauge.layers import Role

CHUNK_TOKENS = 32


class SsmInputs(NamedTuple):
    """What the recurrence reads.

    Args:
        x: already times its step, (tokens, heads, head width).
        b, c: (tokens, heads, state size).
        log_decay: (tokens, heads), at most 0.
    """

    x: Floats
    b: Floats
    c: Floats
    log_decay: Floats


def ssm_by_steps(inputs: SsmInputs, state: Floats) -> tuple[Floats, Floats]:
    """Return the outputs (tokens, heads, head width) and the state (heads, state size, head width)."""
    return by_steps(_step, inputs, state, inputs.x)


def ssm_by_chunks(
    inputs: SsmInputs, state: Floats, chunk_tokens: int = CHUNK_TOKENS
) -> tuple[Floats, Floats]:
    """Return what ``ssm_by_steps`` returns, a chunk at a time."""
    return by_chunks(_chunk, inputs, state, inputs.x, chunk_tokens)


def _step(x: Floats, b: Floats, c: Floats, log_decay: Floats, state: Floats) -> tuple[Floats, Floats]:
    state = state * np.exp(log_decay)[:, None, None] + np.einsum("hn,hp->hnp", b, x)
    return np.einsum("hnp,hn->hp", state, c), state


def _chunk(x: Floats, b: Floats, c: Floats, log_decay: Floats, state: Floats) -> tuple[Floats, Floats]:
    x, b, c = (array.swapaxes(0, 1) for array in (x, b, c))  # heads first
    log_decay = np.cumsum(log_decay, axis=0).T[..., None]  # g, as logarithms
    decay = np.tril(np.exp(np.minimum(log_decay - log_decay.swapaxes(1, 2), 0)))  # D
    outputs = np.exp(log_decay) * (c @ state) + (decay * (c @ b.swapaxes(1, 2))) @ x
    left = np.exp(log_decay[:, -1:] - log_decay)  # what remains of each input at the end of the chunk
    state = np.exp(log_decay[:, -1:]) * state + (left * b).swapaxes(1, 2) @ x
    return outputs.swapaxes(0, 1), state.astype(np.float32)


@dataclass(frozen=True, slots=True)
class SsmShape:
    """The shape of one Mamba-2 layer; ``num_groups`` divides ``num_heads``."""

    hidden_size: int
    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int
    kernel: int

    @property
    def inner_size(self) -> int:
        """Width of x over all heads."""
        return self.num_heads * self.head_dim

    @property
    def conv_channels(self) -> int:
        """Channels of the convolution over x, B and C."""
        return self.inner_size + 2 * self.num_groups * self.state_size

    @property
    def num_weights(self) -> int:
        """Numbers in its matrices; the state too, which is as large in some shapes."""
        matrices = self.hidden_size * (self.conv_channels + self.num_heads + 2 * self.inner_size)
        return matrices + self.kernel * self.conv_channels + self.inner_size * self.state_size

    @property
    def is_sound(self) -> bool:
        """Whether heads share groups evenly."""
        return self.num_heads % self.num_groups == 0


class Mamba2:
    """A layer with random weights: convolution over x, B and C, the recurrence, a gated norm."""

    word = "mamba2"

    def __init__(self, shape: SsmShape, rng: np.random.Generator) -> None:
        self.shape = shape
        self.w_in = projection(rng, shape.hidden_size, shape.conv_channels)
        self.conv_weight = projection(rng, shape.kernel, shape.conv_channels)
        self.w_step = projection(rng, shape.hidden_size, shape.num_heads)
        self.decay_rate = rng.uniform(0.01, 1.0, shape.num_heads).astype(np.float32)
        self.skip = rng.standard_normal(shape.num_heads).astype(np.float32)
        self.w_z = projection(rng, shape.hidden_size, shape.inner_size)
        self.w_o = projection(rng, shape.inner_size, shape.hidden_size)

    def new_cache(self, dtype: str, state_dtype: str = "f32") -> HeldCache:
        """Return the state and the columns of one sequence."""
        shape = self.shape
        state = Fixed(Role.RECURRENT, (shape.num_heads, shape.state_size, shape.head_dim), state_dtype)
        return HeldCache((convolution_columns(shape.conv_channels, shape.kernel, dtype), state))

    def forward(self, x: Floats, cache: HeldCache, *, chunk_tokens: int = CHUNK_TOKENS) -> Floats:
        """Return the outputs of the next tokens, x (tokens, hidden); ``chunk_tokens`` 0 goes step by step."""
        columns, state = cache.fixed
        inner, b, c = self._mixed(x, columns)
        step = softplus(x @ self.w_step)
        inputs = SsmInputs(inner * step[..., None], b, c, -self.decay_rate * step)
        if chunk_tokens:
            outputs, after = ssm_by_chunks(inputs, state.values, chunk_tokens)
        else:
            outputs, after = ssm_by_steps(inputs, state.values)
        state.replace(after)
        cache.num_tokens += len(x)
        outputs = (outputs + self.skip[:, None] * inner).reshape(len(x), -1)
        return rms_norm(outputs * silu(x @ self.w_z)) @ self.w_o

    def _mixed(self, x: Floats, columns: Fixed) -> tuple[Floats, Floats, Floats]:
        """Return x (tokens, heads, head width), B and C (tokens, heads, state size)."""
        shape, tokens = self.shape, len(x)
        mixed = silu(convolve(x @ self.w_in, columns, self.conv_weight))
        inner = mixed[:, : shape.inner_size].reshape(tokens, shape.num_heads, shape.head_dim)
        shared = mixed[:, shape.inner_size :].reshape(tokens, 2, shape.num_groups, shape.state_size)
        both = shared.repeat(shape.num_heads // shape.num_groups, axis=2)
        scaled = both / np.float32(np.sqrt(shape.state_size))
        return inner, both[:, 0], scaled[:, 1]
