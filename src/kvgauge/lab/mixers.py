"""What mixes tokens in a layer: attention, attention through a latent, or a recurrence with a fixed state.

Each says how wide its activations are. An axis is a number of elements, ``queries`` (tokens of the pass) or
``keys`` (tokens they look at), or ``encoder`` (positions of the encoder's output).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from kvgauge.architecture import ModelArchitecture
from kvgauge.layers import Axis as StreamAxis
from kvgauge.layers import LayerCache, Mechanism, Role, Stream
from kvgauge.weights import Part, TensorFamily

Axis = int | Literal["queries", "keys", "encoder"]
Axes = dict[str, tuple[Axis, ...]]


class Mixer(Protocol):
    """What every one of them says."""

    @property
    def window_tokens(self) -> int | None:
        """The most tokens that a query looks at, None for all."""

    def axes(self, *, decode: bool) -> Axes:
        """Return the axes of each activation by name."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Keys and values by heads.

    Args:
        key_width, value_width: elements of one head.
        is_gated: the outputs of the heads are multiplied by a gate that comes with the query.
        is_borrowed: keys and values are another layer's.
    """

    query_heads: int
    kv_heads: int
    key_width: int
    value_width: int
    window_tokens: int | None = None
    is_gated: bool = False
    is_borrowed: bool = False

    def axes(self, *, decode: bool) -> Axes:
        """Return the axes of each activation by name.

        Scores are counted as a plain attention makes them: of all keys, those that the causal mask or a
        window leaves out too.
        """
        heads = self.query_heads
        found: Axes = {
            "query": (heads, "queries", self.key_width),
            **({"query_gate": (heads, "queries", self.value_width)} if self.is_gated else {}),
            "key": (self.kv_heads, "queries", self.key_width),
            "value": (self.kv_heads, "queries", self.value_width),
            "scores": (heads, "queries", "keys"),
            "weights": (heads, "queries", "keys"),
            "head_outputs": (heads, "queries", self.value_width),
            "concatenated": ("queries", heads * self.value_width),
        }
        if self.is_borrowed:
            del found["key"], found["value"]
        return found


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """Attention to an encoder's output, behind the one between tokens: its keys and values are made once."""

    query_heads: int
    kv_heads: int
    key_width: int
    value_width: int

    def axes(self, hidden: int, *, decode: bool) -> Axes:
        """Return the axes of each activation by name."""
        heads = self.query_heads
        width: tuple[Axis, ...] = ("queries", hidden)
        found: Axes = {
            "cross_normed": width,
            "cross_query": (heads, "queries", self.key_width),
            "cross_scores": (heads, "queries", "encoder"),
            "cross_weights": (heads, "queries", "encoder"),
            "cross_outputs": (heads, "queries", self.value_width),
            "cross_concatenated": ("queries", heads * self.value_width),
            "cross_output": width,
            "post_cross": width,
        }
        if not decode:
            found["cross_key"] = (self.kv_heads, "encoder", self.key_width)
            found["cross_value"] = (self.kv_heads, "encoder", self.value_width)
        return found


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """One latent a token, which keys and values of all heads are made of (MLA).

    Args:
        query_latent: elements of the query before its heads, 0 where it has none.
        latent, rope: elements that a token keeps.
        key_width, value_width: of one head, made of the latent.
    """

    query_heads: int
    query_latent: int
    latent: int
    rope: int
    key_width: int
    value_width: int
    window_tokens: int | None = None

    def axes(self, *, decode: bool) -> Axes:
        """Return the axes of each activation by name.

        A prefill makes keys and values of every head; a decode step works on the latents themselves, the
        matrices that would have made them multiplied into query and output (absorbed).
        """
        heads = self.query_heads
        found: Axes = {
            **({"query_latent": ("queries", self.query_latent)} if self.query_latent else {}),
            "query": (heads, "queries", self.key_width),
            "latent": ("queries", self.latent),
            **({"rope_key": ("queries", self.rope)} if self.rope else {}),
        }
        if decode:
            found["absorbed_query"] = (heads, "queries", self.latent + self.rope)
        else:
            found |= {
                "made_key": (heads, "queries", self.key_width),
                "made_value": (heads, "queries", self.value_width),
            }
        found |= {"scores": (heads, "queries", "keys"), "weights": (heads, "queries", "keys")}
        if decode:
            found["latent_outputs"] = (heads, "queries", self.latent)
        return found | {
            "head_outputs": (heads, "queries", self.value_width),
            "concatenated": ("queries", heads * self.value_width),
        }


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A state of fixed size, overwritten at every token; nothing grows.

    Args:
        projected: elements that a token enters with.
        mixed: elements that come out before the output projection.
        state, convolution: elements that a sequence keeps.
        state_dtype: of the state, where the config or the design fixes it.
    """

    projected: int
    mixed: int
    state: int
    convolution: int
    state_dtype: str = "fp32"
    window_tokens: int | None = None

    def axes(self, *, decode: bool) -> Axes:
        """Return the axes of each activation by name; states do not depend on tokens."""
        return {
            "projected": ("queries", self.projected),
            **({"convolution_state": (self.convolution,)} if self.convolution else {}),
            **({"state": (self.state,)} if self.state else {}),
            "mixed": ("queries", self.mixed),
        }


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two mixers that read one input; their outputs are added up."""

    attention: Attention
    recurrence: Recurrence

    @property
    def window_tokens(self) -> int | None:
        """The most tokens that a query looks at, None for all."""
        return self.attention.window_tokens

    def axes(self, *, decode: bool) -> Axes:
        """Return the axes of each activation by name."""
        return self.attention.axes(decode=decode) | self.recurrence.axes(decode=decode)


_STATE_PARTS = frozenset({Part.LINEAR_ATTENTION, Part.MAMBA, Part.CONVOLUTION})


def read_mixer(
    caches: tuple[LayerCache, ...],
    architecture: ModelArchitecture,
    families: tuple[TensorFamily, ...],
    hidden: int,
) -> Mixer | None:
    """Return what mixes tokens in a layer, or None where that is not described here.

    Args:
        caches: of the layer.
        families: the weights of the layer.
    """
    own = [cache for cache in caches if cache.mechanism is not Mechanism.SPARSE_INDEX]
    if len(own) == 1:
        return _alone(own[0], architecture, families, hidden)
    found = [_alone(cache, architecture, families, hidden) for cache in own]
    attention = [one for one in found if isinstance(one, Attention)]
    recurrence = [one for one in found if isinstance(one, Recurrence)]
    if len(found) == 2 and attention and recurrence:
        return SideBySide(attention[0], recurrence[0])
    return None


def read_cross(caches: tuple[LayerCache, ...], architecture: ModelArchitecture) -> CrossAttention | None:
    """Return the attention of a layer to the encoder's output, or None where it has none."""
    cache = next((one for one in caches if one.mechanism is Mechanism.CROSS_ATTENTION), None)
    heads = architecture.num_attention_heads
    if cache is None or not heads:
        return None
    by_role = {stream.role: stream for stream in cache.streams}
    key, value = by_role[Role.KEY], by_role[Role.VALUE]
    return CrossAttention(heads, key.vectors, key.width, value.width)


def _alone(
    cache: LayerCache, architecture: ModelArchitecture, families: tuple[TensorFamily, ...], hidden: int
) -> Mixer | None:
    if cache.mechanism is Mechanism.ATTENTION:
        return _attention(cache, architecture, families, hidden)
    if cache.mechanism is Mechanism.SHARED:
        return _borrowed(cache, architecture, families, hidden)
    if cache.mechanism is Mechanism.LATENT_ATTENTION:
        return _latent(cache, architecture, families)
    return _recurrence(cache, families, hidden)


def _attention(
    cache: LayerCache, architecture: ModelArchitecture, families: tuple[TensorFamily, ...], hidden: int
) -> Attention | None:
    by_role = {stream.role: stream for stream in cache.streams}
    heads = architecture.num_attention_heads
    if set(by_role) != {Role.KEY, Role.VALUE} or not heads:
        return None
    key, value = by_role[Role.KEY], by_role[Role.VALUE]
    if key.counted.axis is not StreamAxis.DECODER:
        return None
    query = next((one for one in families if one.name.endswith(".q_proj.weight")), None)
    if query is not None and query.shape[1] == hidden and query.shape[0] != 2 * heads * key.width:
        heads = query.shape[0] // key.width  # of a model whose layers differ in heads
    is_gated = query is not None and query.shape[0] == 2 * heads * key.width
    if heads % key.vectors:
        return None
    return Attention(heads, key.vectors, key.width, value.width, cache.window_tokens, is_gated)


def _borrowed(
    cache: LayerCache, architecture: ModelArchitecture, families: tuple[TensorFamily, ...], hidden: int
) -> Attention | None:
    lender = [one for one in architecture.layers if one.index == cache.shares_cache_of]
    if len(lender) != 1 or lender[0].mechanism is not Mechanism.ATTENTION:
        return None
    found = _attention(lender[0], architecture, families, hidden)
    if found is None:
        return None
    return Attention(
        found.query_heads, found.kv_heads, found.key_width, found.value_width, found.window_tokens,
        found.is_gated, is_borrowed=True,
    )  # fmt: skip


def _latent(
    cache: LayerCache, architecture: ModelArchitecture, families: tuple[TensorFamily, ...]
) -> LatentAttention | None:
    by_role = {stream.role: stream for stream in cache.streams}
    heads = architecture.num_attention_heads
    widths = cache.head_widths or _head_widths(families, heads, by_role.get(Role.ROPE))
    if not set(by_role) <= {Role.LATENT, Role.ROPE} or Role.LATENT not in by_role or not heads or not widths:
        return None
    query = next((one for one in families if one.name.endswith(".q_a_proj.weight")), None)
    rope = by_role.get(Role.ROPE)
    return LatentAttention(
        heads,
        query.shape[0] if query is not None else 0,
        by_role[Role.LATENT].width,
        rope.width if rope is not None else 0,
        *widths,
        cache.window_tokens,
    )


def _head_widths(
    families: tuple[TensorFamily, ...], heads: int | None, rope: Stream | None
) -> tuple[int, int] | None:
    """Return the widths of a head's key and value from the matrices that make them, of latent attention."""
    shapes = {family.name.rpartition(".self_attn.")[2]: family.shape for family in families}
    query = shapes.get("q_b_proj.weight") or shapes.get("q_proj.weight")
    made = shapes.get("kv_b_proj.weight")
    if query is None or made is None or not heads:
        return None
    key = query[0] // heads
    value = made[0] // heads - (key - (rope.width if rope is not None else 0))
    return (key, value) if value > 0 else None


def _recurrence(cache: LayerCache, families: tuple[TensorFamily, ...], hidden: int) -> Recurrence | None:
    """Widths by shapes alone: matrices that read the layer's width, and the one that gives it back."""
    if not cache.streams or any(one.counted.axis is not StreamAxis.SEQUENCE for one in cache.streams):
        return None
    matrices = [one for one in families if one.part in _STATE_PARTS and len(one.shape) == 2]
    words = ("out_proj.weight", "o_proj.weight", "output.weight")
    last = next((one for word in words for one in matrices if one.name.endswith(word)), None)
    if last is None or last.shape[0] != hidden:
        return None
    entering = sum(one.shape[0] for one in matrices if one is not last and one.shape[1] == hidden)
    states = [one for one in cache.streams if one.role is Role.RECURRENT]
    convolutions = [one for one in cache.streams if one.role is Role.CONV]
    if not entering or len(states) + len(convolutions) != len(cache.streams):
        return None
    dtypes = {one.declared_dtype or "fp32" for one in states} or {"fp32"}
    if len(dtypes) != 1:
        return None
    return Recurrence(
        entering,
        last.shape[1],
        sum(one.elements for one in states),
        sum(one.elements for one in convolutions),
        dtypes.pop(),
    )
