"""A decoder of the Llama and Qwen3 kind in plain NumPy: one forward pass, from ids to logits.

Arrays are fp32. B sequences of T new tokens look at S tokens, the new ones among them. H query heads share K
KV heads of width D. Each activation is shown to ``watch`` when it is made, and let go (``del``)
where nothing reads it any more, as an engine would free it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from kvgauge.errors import DamagedFileError
from kvgauge.lab.arrays import Floats, Ids
from kvgauge.lab.cache import Cache, LayerStore
from kvgauge.lab.decoder_config import DecoderConfig
from kvgauge.lab.rope import turn

#: Takes the number of a layer, the name of an activation, and the activation.
Watch = Callable[[int, str, "Floats"], None]
#: The same within one layer; returns what it is shown.
See = Callable[[str, "Floats"], "Floats"]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A matrix [outputs, inputs] and what it adds."""

    weight: Floats
    bias: Floats | None = None

    def __call__(self, vectors: Floats) -> Floats:
        """Return [..., outputs] of vectors [..., inputs]."""
        result: Floats = vectors @ self.weight.T
        return result if self.bias is None else result + self.bias


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """The weights of one layer; norms of queries and keys where the model has them (Qwen3)."""

    input_norm: Floats
    query: Linear
    key: Linear
    value: Linear
    output: Linear
    post_attention_norm: Floats
    gate: Linear
    up: Linear
    down: Linear
    query_norm: Floats | None = None
    key_norm: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Decoder:
    """A model: its shape, and its weights.

    Args:
        embedding: [vocabulary, hidden].
        head: the same array where the two are tied.
    """

    config: DecoderConfig
    embedding: Floats
    layers: tuple[LayerWeights, ...]
    norm: Floats
    head: Floats

    def new_cache(self) -> Cache:
        """Return an empty cache."""
        return Cache(len(self.layers))

    def forward(
        self, ids: Ids, cache: Cache | None = None, *, watch: Watch | None = None, last_only: bool = False
    ) -> Floats:
        """Return the logits [B, T, vocabulary] that follow each of the ids [B, T].

        Args:
            cache: what came before; the keys and values of these tokens are added to it. None: nothing came
                before, and nothing is kept.
            last_only: the logits after the last token alone, T = 1.

        Raises:
            DamagedFileError: what comes out is no number: the weights are not, or too large to compute with.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at here
            logits = self._logits(ids, cache, watch, last_only=last_only)
        if not np.isfinite(logits).all():
            raise DamagedFileError(
                "the weights make no finite numbers", hint="fetch the folder again", field="model"
            )
        return logits

    def _logits(self, ids: Ids, cache: Cache | None, watch: Watch | None, *, last_only: bool) -> Floats:
        store = self.new_cache() if cache is None else cache
        turns = self.config.rope.turns(store.num_tokens, ids.shape[1], self.config.head_width)
        vectors = self.embedding[ids]
        for number, (weights, kept) in enumerate(zip(self.layers, store.layers, strict=True)):
            see = _ignore if watch is None else _Seen(watch, number)
            see("layer_input", vectors)
            taken = self._attention(vectors, weights, kept, turns, see)
            added = see("post_attention", vectors + taken)
            del vectors, taken
            digested = self._feed_forward(added, weights, see)
            vectors = see("layer_output", added + digested)
            del added, digested
        if last_only:
            vectors = vectors[:, -1:]
        logits: Floats = rms_norm(vectors, self.norm, self.config.norm_epsilon) @ self.head.T
        return logits

    def _attention(
        self, vectors: Floats, weights: LayerWeights, kept: LayerStore, turns: tuple[Floats, Floats], see: See
    ) -> Floats:
        """What each token takes from those before it."""
        normed = see("normed_input", rms_norm(vectors, weights.input_norm, self.config.norm_epsilon))
        query = see("query", self._heads(weights.query(normed), weights.query_norm, turns))
        key = see("key", self._heads(weights.key(normed), weights.key_norm, turns))
        value = see("value", split_heads(weights.value(normed), self.config.head_width))
        del normed
        keys, values = kept.append(key, value)
        del key, value
        scores = see("scores", attention_scores(query, keys))
        del query
        shares = see("weights", softmax(scores))
        del scores
        heads = see("head_outputs", weighted_values(shares, values))
        del shares
        concatenated = see("concatenated", join_heads(heads))
        del heads
        return see("attention_output", weights.output(concatenated))

    def _feed_forward(self, vectors: Floats, weights: LayerWeights, see: See) -> Floats:
        """What each token makes of it for itself."""
        epsilon = self.config.norm_epsilon
        normed = see("normed_post_attention", rms_norm(vectors, weights.post_attention_norm, epsilon))
        gate = see("gate", weights.gate(normed))
        up = see("up", weights.up(normed))
        del normed
        middle = see("middle", silu(gate) * up)
        del gate, up
        return see("down", weights.down(middle))

    def _heads(self, vectors: Floats, norm: Floats | None, turns: tuple[Floats, Floats]) -> Floats:
        """Return queries or keys [B, heads, T, D], normed where the model does, turned by their positions."""
        split = split_heads(vectors, self.config.head_width)
        return turn(split if norm is None else rms_norm(split, norm, self.config.norm_epsilon), turns)


class _Seen:
    """Shows the activations of one layer."""

    def __init__(self, watch: Watch, layer: int) -> None:
        self._watch, self._layer = watch, layer

    def __call__(self, name: str, array: Floats) -> Floats:
        self._watch(self._layer, name, array)
        return array


def _ignore(name: str, array: Floats) -> Floats:
    return array


def rms_norm(vectors: Floats, weight: Floats, epsilon: float) -> Floats:
    """Return vectors scaled to a root mean square of one, then by a weight for each value."""
    mean_square = np.mean(np.square(vectors), axis=-1, keepdims=True)
    normed: Floats = vectors / np.sqrt(mean_square + np.float32(epsilon)) * weight
    return normed


def split_heads(vectors: Floats, width: int) -> Floats:
    """Return [B, heads, T, D] of [B, T, heads x D]."""
    sequences, tokens, _ = vectors.shape
    return vectors.reshape(sequences, tokens, -1, width).swapaxes(1, 2)


def join_heads(heads: Floats) -> Floats:
    """Return [B, T, heads x D] of [B, heads, T, D]."""
    sequences, _, tokens, _ = heads.shape
    return heads.swapaxes(1, 2).reshape(sequences, tokens, -1)


def attention_scores(query: Floats, keys: Floats) -> Floats:
    """Return the scores [B, H, T, S] of queries [B, H, T, D] for keys [B, K, S, D].

    Each of the K heads of keys serves H / K heads of queries. What lies after a token is masked: minus
    infinity.
    """
    sequences, heads, tokens, width = query.shape
    groups = query.reshape(sequences, keys.shape[1], -1, width)
    products = groups @ (keys.swapaxes(2, 3) / np.float32(sqrt(width)))
    scores: Floats = products.reshape(sequences, heads, tokens, -1)
    seen = scores.shape[-1]
    if tokens > 1:
        later = np.triu(np.ones((tokens, seen), dtype=bool), k=1 + seen - tokens)
        scores[..., later] = -np.inf
    return scores


def softmax(scores: Floats) -> Floats:
    """Return shares that add up to one along the last axis."""
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return shares


def weighted_values(shares: Floats, values: Floats) -> Floats:
    """Return what query heads take [B, H, T, D] of values [B, K, S, D] by their shares [B, H, T, S]."""
    sequences, heads, tokens, seen = shares.shape
    taken: Floats = shares.reshape(sequences, values.shape[1], -1, seen) @ values
    return taken.reshape(sequences, heads, tokens, -1)


def silu(vectors: Floats) -> Floats:
    """Return x / (1 + e^-x): near zero for negative numbers, near x for positive ones."""
    bounded = np.clip(vectors, -80, None)  # e^80 is within fp32, e^89 is not
    result: Floats = vectors / (1 + np.exp(-bounded))
    return result
