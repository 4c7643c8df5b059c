"""The dimensions of one decoder layer: heads from what it keeps, the FFN from the shapes of its weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvgauge.architecture import ModelArchitecture
from kvgauge.layers import Counted, LayerCache, Mechanism, Role
from kvgauge.weights import Part, TensorFamily

#: What the last matrix of an FFN is called, the surest name first.
_LAST = (
    "down_proj", "c_proj", "fc2", "wo", "dense_4h_to_h", "fc_out", "proj_2", "ff_out", "output_linear", "w2",
)  # fmt: skip
_FFN_PARTS = frozenset({Part.MLP, Part.EXPERTS, Part.SHARED_EXPERTS})


#: A cache that keeps every token.
EVERY_TOKEN = Counted()
#: One axis of an activation: a fixed number of elements, the tokens of the pass, or those they look at.
Axis = int | Literal["queries", "keys"]


@dataclass(frozen=True, slots=True)
class FeedForward:
    """One FFN of a layer: ``copies`` of it work on one token (experts chosen), each ``width`` wide."""

    width: int
    is_gated: bool
    copies: int = 1


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What the activations of a layer with attention are as wide as.

    Args:
        key_width, value_width: elements of one head.
        kept: how many tokens the cache keeps of a context.
        window_tokens: the most tokens a query looks at, None for all.
    """

    hidden: int
    query_heads: int
    kv_heads: int
    key_width: int
    value_width: int
    ffn: tuple[FeedForward, ...]
    kept: Counted = EVERY_TOKEN
    window_tokens: int | None = None

    def axes(self) -> dict[str, tuple[Axis, ...]]:
        """Return the axes of each activation by name; a layer without a gate has none.

        Scores are counted as a plain attention makes them: of all keys, those that the causal mask or a
        window leaves out too.
        """
        heads = self.query_heads
        hidden: tuple[Axis, ...] = ("queries", self.hidden)
        inner = sum(part.width * part.copies for part in self.ffn)
        gated = sum(part.width * part.copies for part in self.ffn if part.is_gated)
        outputs = sum(part.copies for part in self.ffn)
        names = (
            "layer_input", "normed_input", "attention_output", "post_attention", "normed_post_attention",
            "layer_output",
        )  # fmt: skip
        return {
            **dict.fromkeys(names, hidden),
            "query": (heads, "queries", self.key_width),
            "key": (self.kv_heads, "queries", self.key_width),
            "value": (self.kv_heads, "queries", self.value_width),
            "scores": (heads, "queries", "keys"),
            "weights": (heads, "queries", "keys"),
            "head_outputs": (heads, "queries", self.value_width),
            "concatenated": ("queries", heads * self.value_width),
            "gate": ("queries", gated) if gated else (),
            "up": ("queries", inner),
            "middle": ("queries", inner),
            "down": hidden if outputs == 1 else ("queries", outputs, self.hidden),
        }


def layer_shape(
    index: int, architecture: ModelArchitecture, families: tuple[TensorFamily, ...], hidden: int
) -> LayerShape | None:
    """Return the shape of a layer, or None where it is no plain attention with an FFN behind it."""
    caches = [layer for layer in architecture.layers if layer.index == index]
    if len(caches) != 1 or architecture.is_encoder_decoder or not architecture.num_attention_heads:
        return None
    streams = _keys_and_values(caches[0])
    ffn = feed_forwards(tuple(family for family in families if index in family.layers))
    if streams is None or not ffn:
        return None
    heads, key_width, value_width = streams
    queries, kept = architecture.num_attention_heads, caches[0].streams[0].counted
    return LayerShape(hidden, queries, heads, key_width, value_width, ffn, kept, caches[0].window_tokens)


def _keys_and_values(cache: LayerCache) -> tuple[int, int, int] | None:
    """Return KV heads and the widths of a key and a value."""
    by_role = {stream.role: stream for stream in cache.streams}
    if cache.mechanism is not Mechanism.ATTENTION or set(by_role) != {Role.KEY, Role.VALUE}:
        return None
    key, value = by_role[Role.KEY], by_role[Role.VALUE]
    return key.vectors, key.width, value.width


def feed_forwards(families: tuple[TensorFamily, ...]) -> tuple[FeedForward, ...]:
    """Return the FFNs that weights of one layer make up: matrices of one name but the last word."""
    units: dict[str, dict[str, TensorFamily]] = {}
    for family in families:
        if family.part in _FFN_PARTS and len(family.shape) == 2:
            prefix, _, word = family.name.removesuffix(".weight").rpartition(".")
            units.setdefault(prefix, {})[word] = family
    return tuple(found for unit in units.values() if (found := _feed_forward(unit)) is not None)


def _feed_forward(unit: dict[str, TensorFamily]) -> FeedForward | None:
    last = next((word for word in _LAST if word in unit), None)
    first = [family for word, family in unit.items() if word != last]
    if last is None or not first:
        return None
    width, rest = divmod(unit[last].num_elements, first[0].shape[1])
    entering = sum(family.num_elements for family in first)
    if rest or entering not in (unit[last].num_elements, 2 * unit[last].num_elements):
        return None
    copies = unit[last].num_active_experts if unit[last].num_experts else 1
    return FeedForward(width, entering != unit[last].num_elements, copies)
