"""The life of one layer's activations: what they measure, how long they are held, what becomes of them.

A step is one operation of a decoder layer. An activation is born in the step that makes it and held until the
last step that reads it; the peak of a layer is the most that is held in any of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import NamedTuple

from kvgauge.lab.layer_shape import LayerShape
from kvgauge.lab.mixers import Axis


class Fate(StrEnum):
    """What becomes of an activation."""

    CACHED = "cached"  # kept for all tokens to come
    STATE = "state"  # kept for the next token, which overwrites it
    PASSED_ON = "passed_on"  # read by the next layer and freed there
    RESIDUAL = "residual"  # held until the next addition, then freed
    DISCARDED = "discarded"  # read in this step and freed


class Optimiser(StrEnum):
    """Who takes care of an activation's memory."""

    FLASH = "flash_attention"  # never in device memory as a whole
    PAGED = "paged_attention"  # where it lies, not how much it is


class Life(NamedTuple):
    """One row of the table of lives.

    Args:
        name: the decoder's own name for it; rows stand in order of birth.
        number: its place among the fifteen of a plain layer; 0 for what such lists leave out.
        read_by: what is made from it, of which a layer has some; where it has none, the layer's output.
        flash_read_by: the same where scores and weights are never held.
    """

    name: str
    number: int
    fate: Fate
    read_by: tuple[str, ...] = ()
    optimiser: Optimiser | None = None
    flash_read_by: tuple[str, ...] = ()


_HEADS = ("latent_outputs", "head_outputs")
LIVES = (
    Life("layer_input", 1, Fate.RESIDUAL, ("post_attention",)),
    Life("normed_input", 0, Fate.DISCARDED, ("query", "value", "latent", "rope_key", "projected")),
    Life("query_latent", 0, Fate.DISCARDED, ("query",)),
    Life("query", 2, Fate.DISCARDED, ("absorbed_query", "scores"), flash_read_by=("absorbed_query", *_HEADS)),
    Life("query_gate", 0, Fate.DISCARDED, ("concatenated",)),
    Life("key", 3, Fate.CACHED, (), Optimiser.PAGED),
    Life("value", 4, Fate.CACHED, (), Optimiser.PAGED),
    Life("latent", 0, Fate.CACHED, (), Optimiser.PAGED),
    Life("rope_key", 0, Fate.CACHED, (), Optimiser.PAGED),
    Life("absorbed_query", 0, Fate.DISCARDED, ("scores",), flash_read_by=_HEADS),
    Life("made_key", 0, Fate.DISCARDED, ("scores",), flash_read_by=_HEADS),
    Life("made_value", 0, Fate.DISCARDED, ("head_outputs",)),
    Life("scores", 5, Fate.DISCARDED, ("weights",), Optimiser.FLASH),
    Life("weights", 6, Fate.DISCARDED, _HEADS, Optimiser.FLASH),
    Life("latent_outputs", 0, Fate.DISCARDED, ("head_outputs",), Optimiser.FLASH),
    Life("head_outputs", 7, Fate.DISCARDED, ("concatenated",), Optimiser.FLASH),
    Life("concatenated", 8, Fate.DISCARDED, ("attention_output",)),
    Life("projected", 0, Fate.DISCARDED, ("mixed",)),
    Life("convolution_state", 0, Fate.STATE),
    Life("state", 0, Fate.STATE),
    Life("mixed", 0, Fate.DISCARDED, ("attention_output",)),
    Life("attention_output", 9, Fate.DISCARDED, ("post_attention",)),
    Life("post_attention", 10, Fate.RESIDUAL, ("layer_output",)),
    Life("cross_normed", 0, Fate.DISCARDED, ("cross_query",)),
    Life("cross_query", 0, Fate.DISCARDED, ("cross_scores",), flash_read_by=("cross_outputs",)),
    Life("cross_key", 0, Fate.CACHED, (), Optimiser.PAGED),
    Life("cross_value", 0, Fate.CACHED, (), Optimiser.PAGED),
    Life("cross_scores", 0, Fate.DISCARDED, ("cross_weights",), Optimiser.FLASH),
    Life("cross_weights", 0, Fate.DISCARDED, ("cross_outputs",), Optimiser.FLASH),
    Life("cross_outputs", 0, Fate.DISCARDED, ("cross_concatenated",), Optimiser.FLASH),
    Life("cross_concatenated", 0, Fate.DISCARDED, ("cross_output",)),
    Life("cross_output", 0, Fate.DISCARDED, ("post_cross",)),
    Life("post_cross", 0, Fate.RESIDUAL, ("layer_output",)),
    Life("normed_post_attention", 0, Fate.DISCARDED, ("up",)),
    Life("gate", 11, Fate.DISCARDED, ("middle",)),
    Life("up", 12, Fate.DISCARDED, ("middle",)),
    Life("middle", 13, Fate.DISCARDED, ("down",)),
    Life("down", 14, Fate.DISCARDED, ("layer_output",)),
    Life("layer_output", 15, Fate.PASSED_ON),
)
#: What stays between steps, and is no part of a peak.
KEPT = frozenset({Fate.CACHED, Fate.STATE})
#: What FlashAttention never holds as a whole; the outputs of heads it adds up tile by tile, and writes.
NEVER_WHOLE = frozenset({"scores", "weights", "cross_scores", "cross_weights"})


@dataclass(frozen=True, slots=True)
class Activation:
    """One activation of one layer in one forward pass of one sequence.

    Args:
        axes: what runs along each axis.
        dimensions: elements along each.
        element_bytes: bytes of one element.
    """

    life: Life
    axes: tuple[Axis, ...]
    dimensions: tuple[int, ...]
    element_bytes: int

    @property
    def size_bytes(self) -> int:
        """Its bytes."""
        return prod(self.dimensions) * self.element_bytes

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        life = self.life
        return {
            "name": life.name,
            "number": life.number or None,
            "axes": list(self.axes),
            "dimensions": list(self.dimensions),
            "bytes": self.size_bytes,
            "fate": life.fate.value,
            "optimiser": life.optimiser.value if life.optimiser else None,
            "use": "horizontal" if life.fate in KEPT else "vertical",
        }


@dataclass(frozen=True, slots=True)
class Peak:
    """The most that is held at once, cache and states left out, and what is made at that moment."""

    size_bytes: int
    name: str

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {"bytes": self.size_bytes, "at": self.name}


def activations(
    shape: LayerShape,
    queries: int,
    keys: int,
    element_bytes: int,
    *,
    decode: bool,
    encoder: int = 0,
    state_bytes: int = 4,
) -> tuple[Activation, ...]:
    """Return the activations of one layer in order of birth, without those that this layer does not have.

    Args:
        queries: tokens of this forward pass: the prompt in prefill, one in decode.
        keys: tokens that they look at, their own among them.
        encoder: positions of the encoder's output.
        state_bytes: bytes of one element of a recurrent state.
    """
    axes, tokens = shape.axes(decode=decode), {"queries": queries, "keys": keys, "encoder": encoder}
    return tuple(
        Activation(
            life,
            axes[life.name],
            tuple(tokens[axis] if isinstance(axis, str) else axis for axis in axes[life.name]),
            state_bytes if life.name == "state" else element_bytes,
        )
        for life in _lives(shape)
        if life.name in axes
    )


def _lives(shape: LayerShape) -> tuple[Life, ...]:
    """Return the table for a layer: some of it is read by others than in a plain one."""
    readers: dict[str, tuple[str, ...]] = {}
    if shape.shares_norm:
        readers["normed_input"] = ("query", "value", "latent", "rope_key", "projected", "up")
    if shape.cross is not None:
        readers["post_attention"] = ("post_cross",)
    return tuple(life._replace(read_by=readers.get(life.name, life.read_by)) for life in LIVES)


def held_at(made: tuple[Activation, ...], *, flash: bool) -> dict[str, int]:
    """Return the bytes held when each activation is made, itself and what it is made from among them.

    Args:
        flash: scores and weights are never held; what they are made from is, until the outputs stand.
    """
    born = {one.life.name: place for place, one in enumerate(made)}
    held = [
        one for one in made
        if one.life.fate not in KEPT and not (flash and one.life.name in NEVER_WHOLE)
    ]  # fmt: skip
    return {
        one.life.name: sum(
            other.size_bytes
            for other in held
            if born[other.life.name] <= born[one.life.name] <= _last_step(other.life, born, flash=flash)
        )
        for one in made
        if not (flash and one.life.name in NEVER_WHOLE)
    }


def peak(made: tuple[Activation, ...], *, flash: bool) -> Peak:
    """Return the most that a layer holds at once beside what it keeps."""
    sums = held_at(made, flash=flash)
    name = max(sums, key=lambda each: sums[each])
    return Peak(sums[name], name)


def _last_step(life: Life, born: dict[str, int], *, flash: bool) -> int:
    readers = (flash and life.flash_read_by) or life.read_by
    return max((born[reader] for reader in readers if reader in born), default=len(born))
