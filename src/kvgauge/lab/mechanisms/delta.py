"""The gated delta rule (arXiv 2412.06464), token by token and chunk by chunk, and the layer around it.

The state S (key width x value width, one a head) is decayed, corrected by what it would have answered to
the new key, and read by the query::

    S <- a S;  S <- S + k (b (v - S^T k))^T;  o = S^T q

Within a chunk that is a linear system. With g_t the product of the decays up to t and u_t the corrections,

    (I + A) U = b (V - g K S_0),  A_ts = b_t (g_t / g_s) k_t . k_s  for s < t
    O = g Q S_0 + (Q K^T * D) U,  D_ts = g_t / g_s  for s <= t

so a chunk is a few matrix products, and only chunks follow one another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.convolution import convolution_columns, convolve
from kvgauge.lab.mechanisms.held import Fixed, HeldCache
from kvgauge.lab.mechanisms.pieces import projection, rms_norm, sigmoid, silu, softplus, unit
from kvgauge.lab.mechanisms.scan import by_chunks, by_steps
from kvgauge.layers import Role

CHUNK_TOKENS = 32


class DeltaInputs(NamedTuple):
    """What the rule reads.

    Args:
        q, k: (tokens, heads, key width).
        v: (tokens, heads, value width).
        log_decay: (tokens, heads), at most 0.
        strength: of the correction, (tokens, heads), 0 to 1.
    """

    q: Floats
    k: Floats
    v: Floats
    log_decay: Floats
    strength: Floats


def delta_by_steps(inputs: DeltaInputs, state: Floats) -> tuple[Floats, Floats]:
    """Return the outputs (tokens, heads, value width) and the state (heads, key, value width) after them."""
    return by_steps(_step, inputs, state, inputs.v)


def delta_by_chunks(
    inputs: DeltaInputs, state: Floats, chunk_tokens: int = CHUNK_TOKENS
) -> tuple[Floats, Floats]:
    """Return what ``delta_by_steps`` returns, a chunk at a time."""
    return by_chunks(_chunk, inputs, state, inputs.v, chunk_tokens)


def _step(
    q: Floats, k: Floats, v: Floats, log_decay: Floats, strength: Floats, state: Floats
) -> tuple[Floats, Floats]:
    state = state * np.exp(log_decay)[:, None, None]
    answered = np.einsum("hkv,hk->hv", state, k)
    state = state + np.einsum("hk,hv->hkv", k, strength[:, None] * (v - answered))
    return np.einsum("hkv,hk->hv", state, q), state


def _chunk(
    q: Floats, k: Floats, v: Floats, log_decay: Floats, strength: Floats, state: Floats
) -> tuple[Floats, Floats]:
    q, k, v = (array.swapaxes(0, 1) for array in (q, k, v))  # heads first
    strength = strength.T[..., None]
    log_decay = np.cumsum(log_decay, axis=0).T[..., None]  # g, as logarithms
    decay = np.tril(np.exp(np.minimum(log_decay - log_decay.swapaxes(1, 2), 0)))  # D
    within = strength * np.tril(decay * (k @ k.swapaxes(1, 2)), -1)  # A
    asked = strength * (v - np.exp(log_decay) * (k @ state))
    corrections = np.linalg.solve(np.eye(q.shape[1], dtype=np.float32) + within, asked)
    outputs = np.exp(log_decay) * (q @ state) + (decay * (q @ k.swapaxes(1, 2))) @ corrections
    left = np.exp(log_decay[:, -1:] - log_decay)  # what remains of each correction at the end of the chunk
    state = np.exp(log_decay[:, -1:]) * state + (left * k).swapaxes(1, 2) @ corrections
    return outputs.swapaxes(0, 1), state.astype(np.float32)


@dataclass(frozen=True, slots=True)
class DeltaShape:
    """The shape of one gated delta net; ``num_key_heads`` divides ``num_value_heads``."""

    hidden_size: int
    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    kernel: int

    @property
    def conv_channels(self) -> int:
        """Channels of the convolution over q, k and v."""
        return 2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim

    @property
    def num_weights(self) -> int:
        """Numbers in its matrices; the state too, which is as large in some shapes."""
        inner = self.num_value_heads * self.value_dim
        matrices = self.hidden_size * (self.conv_channels + 2 * self.num_value_heads + 2 * inner)
        return matrices + self.kernel * self.conv_channels + inner * self.key_dim

    @property
    def is_sound(self) -> bool:
        """Whether value heads share key heads evenly."""
        return self.num_value_heads % self.num_key_heads == 0


class GatedDeltaNet:
    """A layer with random weights: convolution over q, k and v, the rule, a gated norm."""

    word = "gated_delta_net"

    def __init__(self, shape: DeltaShape, rng: np.random.Generator) -> None:
        self.shape = shape
        heads, inner = shape.num_value_heads, shape.num_value_heads * shape.value_dim
        self.w_qkv = projection(rng, shape.hidden_size, shape.conv_channels)
        self.conv_weight = projection(rng, shape.kernel, shape.conv_channels)
        self.w_gates = projection(rng, shape.hidden_size, 2 * heads)  # decay and strength
        self.decay_rate = rng.uniform(0.01, 1.0, heads).astype(np.float32)
        self.w_z = projection(rng, shape.hidden_size, inner)
        self.w_o = projection(rng, inner, shape.hidden_size)

    def new_cache(self, dtype: str, state_dtype: str = "f32") -> HeldCache:
        """Return the state and the columns of one sequence."""
        shape = self.shape
        state = Fixed(Role.RECURRENT, (shape.num_value_heads, shape.key_dim, shape.value_dim), state_dtype)
        return HeldCache((convolution_columns(shape.conv_channels, shape.kernel, dtype), state))

    def forward(self, x: Floats, cache: HeldCache, *, chunk_tokens: int = CHUNK_TOKENS) -> Floats:
        """Return the outputs of the next tokens, x (tokens, hidden); ``chunk_tokens`` 0 goes step by step."""
        columns, state = cache.fixed
        inputs = self._inputs(x, columns)
        if chunk_tokens:
            outputs, after = delta_by_chunks(inputs, state.values, chunk_tokens)
        else:
            outputs, after = delta_by_steps(inputs, state.values)
        state.replace(after)
        cache.num_tokens += len(x)
        gated: Floats = rms_norm(outputs) * silu(x @ self.w_z).reshape(outputs.shape)
        return gated.reshape(len(x), -1) @ self.w_o

    def _inputs(self, x: Floats, columns: Fixed) -> DeltaInputs:
        shape, tokens = self.shape, len(x)
        mixed = silu(convolve(x @ self.w_qkv, columns, self.conv_weight))
        keys = shape.num_key_heads * shape.key_dim
        q, k = (
            unit(part.reshape(tokens, shape.num_key_heads, shape.key_dim))
            for part in (mixed[:, :keys], mixed[:, keys : 2 * keys])
        )
        repeat = shape.num_value_heads // shape.num_key_heads
        v = mixed[:, 2 * keys :].reshape(tokens, shape.num_value_heads, shape.value_dim)
        decay, strength = np.split(x @ self.w_gates, 2, axis=-1)
        return DeltaInputs(
            q.repeat(repeat, axis=1) / np.float32(np.sqrt(shape.key_dim)),
            k.repeat(repeat, axis=1),
            v,
            -self.decay_rate * softplus(decay),
            sigmoid(strength),
        )
