"""A model's parameters as a few tensor families: names, shapes and counts, no bytes and no engine."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from math import prod
from typing import NamedTuple

from kvgauge.architecture import Note
from kvgauge.values import dataclass


class Part(StrEnum):
    """The ``weights.by_part[].part`` words of the JSON contract."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    LINEAR_ATTENTION = "linear_attention"
    MAMBA = "mamba"
    CONVOLUTION = "convolution"
    INDEXER = "indexer"
    MLP = "mlp"
    EXPERTS = "experts"
    SHARED_EXPERTS = "shared_experts"
    ROUTER = "router"
    NORM = "norm"
    MTP = "mtp"
    PER_LAYER_EMBEDDING = "per_layer_embedding"
    VISION = "vision"
    AUDIO = "audio"
    PROJECTOR = "projector"
    OTHER = "other"


class WeightShard(StrEnum):
    """How tensor parallelism cuts a tensor.

    COLUMN: its outputs, dimension 0. ROW: its inputs, dimension 1. VOCABULARY: dimension 0, padded up.
    KV_HEADS: dimension 0 by KV heads, replicated once ranks exceed heads. REPLICATED: every rank holds all.
    """

    COLUMN = "column"
    ROW = "row"
    VOCABULARY = "vocabulary"
    KV_HEADS = "kv_heads"
    REPLICATED = "replicated"


@dataclass(frozen=True, slots=True)
class TensorFamily:
    """Tensors of one name template and one shape.

    Args:
        name: checkpoint name with ``{layer}`` and ``{expert}`` where there are several.
        shape: of one tensor, as the checkpoint stores it.
        layers: indices that ``{layer}`` takes; empty where the name has none.
        num_experts: experts that have such a tensor, or a slice of it; 0 where it is not an expert's.
        num_active_experts: how many of them one token uses.
        stacked: the experts are slices of one tensor; ``shape`` is then that of a slice.
        shard_units: KV heads (or groups of a state) that a ``kv_heads`` cut keeps whole.
        unit_rows: outputs that these heads make up, where the tensor holds other outputs too, which are cut
            evenly; 0 where it holds none.
        tied_to: name of the tensor that this one shares its memory with; it then counts nothing.
    """

    name: str
    shape: tuple[int, ...]
    part: Part
    shard: WeightShard = WeightShard.REPLICATED
    layers: tuple[int, ...] = ()
    num_experts: int = 0
    num_active_experts: int = 0
    stacked: bool = False
    shard_units: int = 0
    tied_to: str = ""
    unit_rows: int = 0

    @property
    def num_elements(self) -> int:
        """Elements of one tensor, or of one slice where stacked."""
        return prod(self.shape)

    @property
    def num_tensors(self) -> int:
        """Number of tensors in the family."""
        return max(1, len(self.layers)) * (1 if self.stacked else max(1, self.num_experts))

    @property
    def num_parameters(self) -> int:
        """Parameters of all tensors; none of its own where tied."""
        copies = max(1, len(self.layers)) * max(1, self.num_experts)
        return 0 if self.tied_to else copies * self.num_elements

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token passes through, every routed expert but the chosen ones left out."""
        if not self.num_experts:
            return self.num_parameters
        return self.num_parameters // self.num_experts * self.num_active_experts


class Rotary(NamedTuple):
    """One rotary embedding of a model; layers that agree in all of it share one.

    Args:
        width: values of a head that are rotated.
        positions: that it is made for, extension included.
        kind: ``default``, ``yarn``, ``longrope`` ... as the config calls it.
        short_positions: before extension, where a second set of factors is kept for them (longrope).
        sections: positions have several axes (time, height, width).
        latent: of latent attention.
        base: frequency that it starts from; 0 where the config leaves it to the class.
        indexer: of an indexer, which pairs the values of a head in another way.
    """

    width: int
    positions: int
    kind: str = "default"
    short_positions: int = 0
    sections: bool = False
    latent: bool = False
    base: float = 0.0
    indexer: bool = False


@dataclass(frozen=True)
class ModelWeights:
    """All tensor families of a model.

    Args:
        families: without multi-token prediction.
        mtp_families: the multi-token-prediction module, where the checkpoint has one and its shape is known.
    """

    families: tuple[TensorFamily, ...]
    mtp_families: tuple[TensorFamily, ...] = ()
    notes: tuple[Note, ...] = ()

    @cached_property
    def num_parameters(self) -> int:
        """Parameters without multi-token prediction, tied tensors once."""
        return sum(family.num_parameters for family in self.families)

    @cached_property
    def num_active_parameters(self) -> int:
        """Parameters that one token passes through."""
        return sum(family.num_active_parameters for family in self.families)

    @cached_property
    def num_mtp_parameters(self) -> int:
        """Parameters of the multi-token-prediction module."""
        return sum(family.num_parameters for family in self.mtp_families)

    @cached_property
    def by_part(self) -> dict[Part, int]:
        """Parameters by part, parts in the order of ``Part``; multi-token prediction last where listed."""
        return _by_part((*self.families, *self.mtp_families))


def _by_part(families: Iterable[TensorFamily]) -> dict[Part, int]:
    sums: dict[Part, int] = {}
    for family in families:
        sums[family.part] = sums.get(family.part, 0) + family.num_parameters
    return {part: sums[part] for part in Part if sums.get(part)}
