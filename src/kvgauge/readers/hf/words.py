"""The words of layer patterns, and how lists of them are cut and repeated."""

from __future__ import annotations

from collections.abc import Sequence

from kvgauge.errors import InvalidFieldError, UnknownArchitectureError
from kvgauge.readers.values import short
from kvgauge.values import dataclass

#: Words of configs -> what the layer keeps. "state" is any recurrence; which one, the geometry fields say.
WORDS = {
    "full_attention": "full", "attention": "full", "attn": "full", "full": "full", "global": "full",
    "global_attention": "full", "softmax": "full", "self_attention": "full", "g": "full", "*": "full",
    "sliding_attention": "sliding", "window_attention": "sliding", "local_attention": "sliding",
    "sliding": "sliding", "local": "sliding", "swa": "sliding", "l": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "state", "linear": "state", "mamba": "state", "mamba2": "state", "recurrent": "state",
    "jet": "state", "gdn": "state", "kda": "state", "lightning": "state", "m": "state", "ssm": "state",
    "rwkv": "state", "gated_delta_net": "state",
    "conv": "conv", "short_conv": "conv",
    "mlp": "none", "moe": "none", "-": "none", "e": "none", "no_op": "none", "identity": "none",
    "hybrid": "full+state", "hybrid_sliding": "sliding+state",
    "indexed_attention": "full", "deepseek_sparse_attention": "full", "minimax_m3_sparse": "full",
    "compressed_sparse_attention": "csa", "heavily_compressed_attention": "hca",
    "cross_attention": "cross",
}  # fmt: skip

KINDS = frozenset(WORDS.values())


@dataclass(frozen=True, slots=True)
class LayerPattern:
    """One word a layer, the words of the multi-token-prediction tail, and the field that said so."""

    words: tuple[str, ...]
    tail: tuple[str, ...] = ()
    source: str = ""


def word_of(value: object, where: str) -> str:
    """Return the kind that a config word stands for.

    Raises:
        UnknownArchitectureError: the word is not known.
    """
    word = WORDS.get(value.lower()) if isinstance(value, str) else None
    if word is None:
        raise UnknownArchitectureError(
            f"{where} names a layer type that is not known: {short(value)}",
            hint="known words: " + ", ".join(sorted(w for w in WORDS if len(w) > 1)),
            field=where,
        )
    return word


def cut(words: Sequence[str], count: int | None, source: str) -> LayerPattern:
    """Cut a list at the layer count; what is left belongs to multi-token prediction."""
    if count is None:
        return LayerPattern(tuple(words), (), source)
    if len(words) < count:
        raise InvalidFieldError(
            f"{source} describes {len(words)} layers, num_hidden_layers says {count}",
            hint="make the list as long as the layer count",
            field=source,
        )
    return LayerPattern(tuple(words[:count]), tuple(words[count:]), source)


def periodic(count: int, period: int, chosen: Sequence[int], hit: str, miss: str) -> tuple[str, ...]:
    """Return ``hit`` on the layers whose place in their period is chosen, ``miss`` on the others."""
    return tuple(hit if i % period in chosen else miss for i in range(count))
