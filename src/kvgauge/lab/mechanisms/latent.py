"""Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434), in both of its forms.

The cache keeps one latent and one rotated key part a token, for all heads together. K and V of every head
can be rebuilt from it ("decompressed"), or the matrices that rebuild them can be moved over to the queries
and the outputs ("absorbed"), so that attention runs on the latents themselves. The outputs are equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.held import HeldCache, Rows
from kvgauge.lab.mechanisms.pieces import projection, rms_norm, rotate, softmax, visible
from kvgauge.layers import Role


@dataclass(frozen=True, slots=True)
class LatentShape:
    """The shape of one layer, in the words of its config; ``rope_dim`` is even."""

    hidden_size: int
    num_heads: int
    kv_lora_rank: int
    rope_dim: int
    nope_dim: int
    v_head_dim: int

    @property
    def num_weights(self) -> int:
        """Numbers in its matrices."""
        queries = self.num_heads * (self.nope_dim + self.rope_dim)
        outputs = self.num_heads * self.v_head_dim
        rebuilt = self.kv_lora_rank * self.num_heads * (self.nope_dim + self.v_head_dim)
        return self.hidden_size * (queries + self.kv_lora_rank + self.rope_dim + outputs) + rebuilt

    @property
    def is_sound(self) -> bool:
        """Whether its rotated part can be turned in pairs."""
        return self.rope_dim % 2 == 0


class LatentAttention:
    """A layer with random weights."""

    word = "mla"

    def __init__(self, shape: LatentShape, rng: np.random.Generator) -> None:
        self.shape = shape
        heads, rank = shape.num_heads, shape.kv_lora_rank
        self.w_q = projection(rng, shape.hidden_size, heads * (shape.nope_dim + shape.rope_dim))
        self.w_latent = projection(rng, shape.hidden_size, rank)
        self.w_rope = projection(rng, shape.hidden_size, shape.rope_dim)
        self.w_up_k = _by_heads(projection(rng, rank, heads * shape.nope_dim), heads)
        self.w_up_v = _by_heads(projection(rng, rank, heads * shape.v_head_dim), heads)
        self.w_o = projection(rng, heads * shape.v_head_dim, shape.hidden_size)

    def new_cache(self, dtype: str) -> HeldCache:
        """Return an empty cache for one sequence: latents and rotated parts, no V."""
        shape = self.shape
        latent = Rows(Role.LATENT, 1, shape.kv_lora_rank, dtype)
        return HeldCache((latent, Rows(Role.ROPE, 1, shape.rope_dim, dtype)))

    def forward(self, x: Floats, cache: HeldCache, *, absorbed: bool = True) -> Floats:
        """Return the outputs of the next tokens, x (tokens, hidden), and keep their latents."""
        shape, tokens = self.shape, len(x)
        q = (x @ self.w_q).reshape(tokens, shape.num_heads, shape.nope_dim + shape.rope_dim)
        q_nope, q_rope = q[..., : shape.nope_dim], rotate(q[..., shape.nope_dim :], cache.num_tokens)
        new_latents = rms_norm(x @ self.w_latent)[:, None, :]
        new_ropes = rotate((x @ self.w_rope)[:, None, :], cache.num_tokens)
        latents, ropes = (rows[:, 0] for rows in cache.append(new_latents, new_ropes))
        heads_first = q_nope.swapaxes(0, 1)
        scores = self._scores(heads_first, latents, absorbed=absorbed) + q_rope.swapaxes(0, 1) @ ropes.T
        scores /= np.float32(np.sqrt(shape.nope_dim + shape.rope_dim))
        weights = softmax(scores, visible(tokens, len(latents)))
        mixed = self._mix(weights, latents, absorbed=absorbed)
        return mixed.swapaxes(0, 1).reshape(tokens, -1) @ self.w_o

    def _scores(self, q_nope: Floats, latents: Floats, *, absorbed: bool) -> Floats:
        """Return (heads, queries, kept tokens) without the rotated part."""
        if absorbed:  # (q W_up^T) latent: the queries come down to the latents
            lowered: Floats = q_nope @ self.w_up_k.swapaxes(1, 2)
            return lowered @ latents.T
        keys: Floats = latents @ self.w_up_k
        return q_nope @ keys.swapaxes(1, 2)

    def _mix(self, weights: Floats, latents: Floats, *, absorbed: bool) -> Floats:
        """Return (heads, queries, value width)."""
        if absorbed:  # mix the latents, then bring the mixture up once a query
            mixed: Floats = weights @ latents
            return mixed @ self.w_up_v
        values: Floats = latents @ self.w_up_v
        return weights @ values


def _by_heads(matrix: Floats, heads: int) -> Floats:
    """(rank, heads x width) as (heads, rank, width)."""
    return np.ascontiguousarray(matrix.reshape(len(matrix), heads, -1).swapaxes(0, 1))
