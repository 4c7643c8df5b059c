"""The six steps from a text to the next token, with the numbers of one forward pass."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from kvgauge.lab.arrays import Floats
from kvgauge.lab.decoder import Decoder, rms_norm, softmax
from kvgauge.lab.folder import Folder
from kvgauge.lab.peeks import Matrix, Vector, cosine, matrix, vector
from kvgauge.lab.trace import Trace

#: Tokens that may follow, shown.
NUM_TOP = 5
#: Tokens of a text whose shares are given for each token.
MAX_SQUARE = 16
#: What the last token goes through behind attention, in order.
DIGESTING = (
    "concatenated", "attention_output", "post_attention", "normed_post_attention", "gate", "up", "middle",
    "down", "layer_output",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """Step 1: a piece of the text and its number in the vocabulary; step 2: the row of that number."""

    position: int
    id: int
    text: str
    row: Vector

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {"position": self.position, "id": self.id, "text": self.text, "row": self.row.to_dict()}


@dataclass(frozen=True, slots=True)
class Projections:
    """Step 3: three matrices, and what they make of the last token in the first layer.

    Args:
        first_seen, again: positions of one token that stands twice in the text, None where none does.
        key_change, value_change: the largest difference between the keys and the values of the two: values do
            not know where a token stands, keys do.
    """

    matrices: tuple[Matrix, ...]
    query: Vector
    key: Vector
    value: Vector
    first_seen: int | None
    again: int | None
    key_change: float | None
    value_change: float | None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "matrices": [one.to_dict() for one in self.matrices],
            "query": self.query.to_dict(),
            "key": self.key.to_dict(),
            "value": self.value.to_dict(),
            "same_token": {
                "positions": None if self.again is None else [self.first_seen, self.again],
                "key_change": self.key_change,
                "value_change": self.value_change,
            },
        }


@dataclass(frozen=True, slots=True)
class Look:
    """What the last token's query makes of one token's key and value."""

    position: int
    product: float
    score: float
    share: float
    value: Vector

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "position": self.position,
            "product": self.product,
            "score": self.score,
            "share": self.share,
            "value": self.value.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Attention:
    """Step 4, in the first layer: one head of the last token in full, the shares of all heads, of all tokens.

    Args:
        divisor: the root of the head's width, which products are divided by.
        by_head: [head][token], of the last token.
        by_token: [token][token], of the head: the causal mask leaves zeros above the diagonal. Empty where
            the text is long.
    """

    head: int
    divisor: float
    looks: tuple[Look, ...]
    taken: Vector
    by_head: tuple[tuple[float, ...], ...]
    by_token: tuple[tuple[float, ...], ...]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "head": self.head,
            "divisor": self.divisor,
            "looks": [look.to_dict() for look in self.looks],
            "taken": self.taken.to_dict(),
            "shares_by_head": [list(row) for row in self.by_head],
            "shares_by_token": [list(row) for row in self.by_token],
        }


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that may follow."""

    id: int
    text: str
    logit: float
    share: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {"id": self.id, "text": self.text, "logit": self.logit, "share": self.share}


@dataclass(frozen=True, slots=True)
class Depth:
    """The last token at one layer.

    Args:
        key: its key in one head, which the cache keeps for this layer alone.
        output: the layer's output, which the next layer alone reads.
        likeness: the cosine of the output and the token's own row of the embedding.
        guess: what would follow if the head came right behind this layer.
    """

    layer: int
    key: Vector
    output: Vector
    likeness: float
    guess: Candidate

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "layer": self.layer,
            "key": self.key.to_dict(),
            "output": self.output.to_dict(),
            "likeness": self.likeness,
            "guess": self.guess.to_dict(),
        }


def read_tokens(folder: Folder, ids: tuple[int, ...]) -> tuple[Token, ...]:
    """Return steps 1 and 2."""
    rows = folder.decoder.embedding
    return tuple(Token(n, one, folder.word(one), vector(rows[one])) for n, one in enumerate(ids))


def project(decoder: Decoder, ids: tuple[int, ...], trace: Trace) -> Projections:
    """Return step 3."""
    weights = decoder.layers[0]
    named = {"q": weights.query, "k": weights.key, "v": weights.value}
    keys, values = trace.of(0, "key"), trace.of(0, "value")
    again = next((n for n, one in enumerate(ids) if one in ids[:n]), None)
    first = None if again is None else ids.index(ids[again])
    return Projections(
        tuple(matrix(f"model.layers.0.self_attn.{n}_proj.weight", w.weight) for n, w in named.items()),
        vector(trace.of(0, "query")[0, -1]),
        vector(keys[0, -1]),
        vector(values[0, -1]),
        first,
        again,
        _largest_change(keys, first, again),
        _largest_change(values, first, again),
    )


def _largest_change(heads: Floats, first: int | None, again: int | None) -> float | None:
    if first is None or again is None:
        return None
    return float(np.abs(heads[:, first] - heads[:, again]).max())


def attend(decoder: Decoder, trace: Trace, head: int = 0) -> Attention:
    """Return step 4 of one head."""
    group = head // (decoder.config.query_heads // decoder.config.kv_heads)
    query, keys, values = (trace.of(0, name) for name in ("query", "key", "value"))
    scores, shares = trace.of(0, "scores"), trace.of(0, "weights")
    products = keys[group] @ query[head, -1]
    looks = tuple(
        Look(n, float(products[n]), float(scores[head, -1, n]), float(shares[head, -1, n]), vector(value))
        for n, value in enumerate(values[group])
    )
    return Attention(
        head,
        sqrt(decoder.config.head_width),
        looks,
        vector(trace.of(0, "head_outputs")[head, -1]),
        tuple(tuple(float(share) for share in row) for row in shares[:, -1]),
        tuple(tuple(float(share) for share in row) for row in shares[head])
        if len(looks) <= MAX_SQUARE
        else (),
    )


def digest(trace: Trace) -> tuple[tuple[str, Vector], ...]:
    """Return step 5: what the last token goes through behind attention, in the first layer."""
    return tuple((name, vector(trace.of(0, name)[-1])) for name in DIGESTING)


def candidates(folder: Folder, logits: Floats, count: int = NUM_TOP) -> tuple[Candidate, ...]:
    """Return step 6: the likeliest tokens of logits [vocabulary], likeliest first."""
    shares = softmax(logits)
    best = np.argsort(-logits, kind="stable")[:count]
    return tuple(Candidate(int(n), folder.word(int(n)), float(logits[n]), float(shares[n])) for n in best)


def depths(folder: Folder, trace: Trace) -> tuple[Depth, ...]:
    """Return the last token at each layer that was watched."""
    decoder = folder.decoder
    start = trace.of(0, "layer_input")[-1]
    return tuple(_depth(folder, decoder, trace, layer, start) for layer in sorted(trace.layers))


def _depth(folder: Folder, decoder: Decoder, trace: Trace, layer: int, start: Floats) -> Depth:
    output = trace.of(layer, "layer_output")[-1]
    logits = decoder.head @ rms_norm(output, decoder.norm, decoder.config.norm_epsilon)
    (guess,) = candidates(folder, logits, 1)
    return Depth(layer, vector(trace.of(layer, "key")[0, -1]), vector(output), cosine(start, output), guess)
