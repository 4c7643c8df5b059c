"""The dimensions of one decoder layer: what mixes its tokens, and the FFNs of each token for itself."""

from __future__ import annotations

from dataclasses import dataclass

from kvgauge.architecture import ModelArchitecture
from kvgauge.lab.mixers import Axes, Axis, CrossAttention, Mixer, read_cross, read_mixer
from kvgauge.layers import Mechanism
from kvgauge.weights import Part, TensorFamily

#: What the last matrix of an FFN is called, the surest name first.
_LAST = (
    "down_proj", "c_proj", "fc2", "wo", "dense_4h_to_h", "fc_out", "proj_2", "ff_out", "output_linear", "w2",
)  # fmt: skip
#: How norms behind an FFN begin.
_BEHIND_FFN = ("post_feedforward", "post_mlp")
_FFN_PARTS = frozenset({Part.MLP, Part.EXPERTS, Part.SHARED_EXPERTS})


@dataclass(frozen=True, slots=True)
class FeedForward:
    """One FFN of a layer: ``copies`` of it work on one token (experts chosen), each ``width`` wide."""

    width: int
    is_gated: bool
    copies: int = 1


@dataclass(frozen=True, slots=True)
class LayerShape:
    """What the activations of a layer are as wide as.

    Args:
        mixer: None in a layer of an FFN alone.
        ffn: empty in a layer of a mixer alone.
        cross: attention to an encoder's output, between the two.
        is_parallel: mixer and FFN read the layer's input both, and all three are added up at once.
        num_norms: before mixer and FFN: one for both, or one each.
        norms_elsewhere: it has other norms than that, or has them behind mixer and FFN.
    """

    hidden: int
    mixer: Mixer | None
    ffn: tuple[FeedForward, ...]
    cross: CrossAttention | None = None
    is_parallel: bool = False
    num_norms: int = 2
    norms_elsewhere: bool = False

    @property
    def window_tokens(self) -> int | None:
        """The most tokens that a query looks at, None for all."""
        return None if self.mixer is None else self.mixer.window_tokens

    def axes(self, *, decode: bool) -> Axes:
        """Return the axes of each activation by name, without those that this layer does not have."""
        hidden: tuple[Axis, ...] = ("queries", self.hidden)
        found: Axes = {"layer_input": hidden, "layer_output": hidden}
        if self.mixer is not None:
            found |= {"normed_input": hidden, **self.mixer.axes(decode=decode), "attention_output": hidden}
        if self.mixer is not None and self.ffn and not self.is_parallel:
            found["post_attention"] = hidden
        if self.cross is not None:
            found |= self.cross.axes(self.hidden, decode=decode)
        return found | self._feed_forward(hidden) if self.ffn else found

    @property
    def shares_norm(self) -> bool:
        """Whether the FFN reads what the mixer reads."""
        return self.is_parallel and self.num_norms == 1

    def _feed_forward(self, hidden: tuple[Axis, ...]) -> Axes:
        inner = sum(part.width * part.copies for part in self.ffn)
        gated = sum(part.width * part.copies for part in self.ffn if part.is_gated)
        outputs = sum(part.copies for part in self.ffn)
        found: Axes = {
            "up": ("queries", inner),
            "middle": ("queries", inner),
            "down": hidden if outputs == 1 else ("queries", outputs, self.hidden),
        }
        if gated:
            found["gate"] = ("queries", gated)
        return found if self.shares_norm else found | {"normed_post_attention": hidden}


def layer_shape(
    index: int,
    architecture: ModelArchitecture,
    families: tuple[TensorFamily, ...],
    hidden: int,
    *,
    is_told_parallel: bool = False,
) -> LayerShape | None:
    """Return the shape of a layer, or None where it is not described here.

    Args:
        is_told_parallel: the config says that mixer and FFN stand side by side.
    """
    caches = tuple(layer for layer in architecture.layers if layer.index == index)
    own = tuple(family for family in families if index in family.layers)
    if architecture.is_encoder_decoder:
        own = tuple(family for family in own if "decoder" in family.name.split("."))
    ffn = feed_forwards(own)
    if all(cache.mechanism is Mechanism.NONE for cache in caches):
        return LayerShape(hidden, None, ffn) if ffn else None
    cross = read_cross(caches, architecture)
    between = tuple(cache for cache in caches if cache.mechanism is not Mechanism.CROSS_ATTENTION)
    mixer = read_mixer(between, architecture, own, hidden) if between else None
    if mixer is None or not ffn:
        return None if mixer is None or cross is not None else LayerShape(hidden, mixer, ffn)
    if cross is not None:
        return LayerShape(hidden, mixer, ffn, cross)
    norms = _norms(own)
    is_parallel = is_told_parallel or _is_parallel(norms)
    elsewhere = len(norms) > 2 or any(name.startswith(_BEHIND_FFN) for name in norms)
    return LayerShape(hidden, mixer, ffn, None, is_parallel, 1 if len(norms) == 1 else 2, elsewhere)


def _norms(families: tuple[TensorFamily, ...]) -> set[str]:
    """Return the last names of the norms of a layer's width."""
    found = (one.name.removesuffix(".weight").rpartition(".")[2] for one in families if one.part is Part.NORM)
    return {name for name in found if name != "bias"}


def _is_parallel(norms: set[str]) -> bool:
    """Whether mixer and FFN stand side by side, as the norms show.

    One norm before both, or one for each under such names (Falcon). A layer with the norm behind the mixer
    alone (a drafter's first) is none.
    """
    (only, *others) = sorted(norms) or [""]
    if not others:
        return bool(only) and not only.startswith("post")
    return "ln_mlp" in norms


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
