"""What a design saves: its cache against plain multi-head attention, axis by axis.

One sequence's growing cache G is, exactly,

    G = plain × entry × layers × held × engine

- plain: bytes if every one of the N layers that the config counts were plain multi-head attention with the
  model's own query heads and head widths, every token kept. Layers that keep no rows are given the shape of
  the first layer that does (a full one where there is one).
- entry (axis 1, inside a layer): bytes that a caching layer writes for one entry, over what a plain layer
  would; both are means. One entry is the model's widest row of each role in the layer: K and V, or latent and
  rope, or record and index key.
- layers (axis 2, across layers): layers that own a growing cache, over N.
- held (axis 3, along the sequence): rows held over tokens, weighted by row bytes: windows and compression.
  Above 1 only while a short context has both windowed and compressed rows.
- engine: what the engine sets aside over what must be kept; 1 for theory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cached_property

from kvgauge.cache import CacheAnswer
from kvgauge.dtypes import row_bytes
from kvgauge.engines.base import GroupDemand
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import Axis, LayerCache, LayerKind, Role
from kvgauge.values import dataclass

STATE_ROLES = frozenset({Role.RECURRENT, Role.CONV, Role.COMPRESSOR})


@dataclass(frozen=True, slots=True)
class SequenceParts:
    """One sequence's bytes by what makes them: rows of tokens, state, and rows of an encoder or image."""

    growing_bytes: int
    state_bytes: int
    cross_bytes: int


def sequence_parts(cache: CacheAnswer) -> SequenceParts:
    """Split one sequence's bytes: recurrent state, convolution and compressor rings are state."""
    growing = state = cross = 0
    for demand in cache.demand.groups:
        for stream in demand.streams:
            rows = stream.counted.rows(cache.workload.tokens_on(stream.counted.axis))
            size = demand.group.num_layers * stream.row_bytes * rows
            if stream.role in STATE_ROLES:
                state += size
            elif demand.group.kind is LayerKind.CROSS:
                cross += size
            else:
                growing += size
    return SequenceParts(growing, state, cross)


@dataclass(frozen=True, slots=True)
class Axes:
    """The factors of one sequence's growing cache; see the module's text."""

    plain: Fraction
    entry: Fraction
    layers: Fraction
    held: Fraction
    engine: Fraction

    @property
    def product(self) -> Fraction:
        """Plain × entry × layers × held × engine: the growing bytes again."""
        return self.plain * self.entry * self.layers * self.held * self.engine

    def over(self, other: Axes) -> Axes:
        """Return each factor over the other model's; the product is the ratio of the growing caches."""
        return Axes(*(getattr(self, f.name) / getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class HeadShape:
    """One layer as plain heads: width of K, width of V, KV heads that it has (None: it has latents)."""

    key_width: int
    value_width: int
    kv_heads: int | None


@dataclass(frozen=True)
class Design:
    """A cache answer seen as a design.

    Args:
        theory: what must be kept; axes are about the design, so they start from it.
        actual: what the engine keeps.
    """

    theory: CacheAnswer
    actual: CacheAnswer

    @property
    def query_heads(self) -> int | None:
        """Query heads of the model, None where it has no attention."""
        return self.theory.architecture.num_attention_heads

    @cached_property
    def num_layers(self) -> int:
        """Layers that the config counts, and those of multi-token prediction where they are sized."""
        extra = {layer.index for layer in self._mtp_layers}
        return self.theory.architecture.num_layers + len(
            extra - set(range(self.theory.architecture.num_layers))
        )

    @property
    def _mtp_layers(self) -> tuple[LayerCache, ...]:
        return self.theory.architecture.mtp_layers if self.theory.workload.mtp else ()

    @cached_property
    def num_mixing_layers(self) -> int:
        """Layers that mix tokens in any way: all but those without any cache."""
        idle = {layer.index for layer in self.theory.architecture.layers if layer.kind is LayerKind.NONE}
        return self.num_layers - len(idle)

    @cached_property
    def entry_bytes(self) -> Mapping[int, int]:
        """For each layer with a growing cache, the bytes it writes for one entry."""
        rows: dict[int, dict[Role, int]] = {}
        for demand in self.theory.demand.groups:
            for stream in demand.streams:
                if stream.counted.axis is not Axis.DECODER:
                    continue
                for index in demand.group.indices:
                    layer = rows.setdefault(index, {})
                    layer[stream.role] = max(layer.get(stream.role, 0), stream.row_bytes)
        return {index: sum(by_role.values()) for index, by_role in rows.items()}

    @cached_property
    def head_shapes(self) -> Mapping[int, HeadShape]:
        """For each layer with a growing cache, its widths as plain heads, where the config states them."""
        latent = {
            layer.index: layer.head_widths
            for layer in (*self.theory.architecture.layers, *self._mtp_layers)
            if layer.head_widths is not None
        }
        shapes: dict[int, HeadShape] = {}
        for demand in self.theory.demand.groups:
            for index in demand.group.indices:
                shape = _head_shape(demand, latent.get(index))
                if shape is not None:
                    shapes.setdefault(index, shape)
        return shapes

    @cached_property
    def reference_shape(self) -> HeadShape | None:
        """The shape that stands in for layers without rows: the first full layer's, else the first one's."""
        full = [g.group.indices for g in self.theory.demand.groups if g.group.kind is LayerKind.FULL]
        for index in (*(i for indices in full for i in indices), *sorted(self.head_shapes)):
            if index in self.head_shapes:
                return self.head_shapes[index]
        return None

    def shapes_of(self, num_layers: int) -> Counter[HeadShape]:
        """Return the shapes of plain layers: the caching ones' own, the reference for the rest."""
        shapes = Counter(self.head_shapes[index] for index in self.entry_bytes if index in self.head_shapes)
        missing = num_layers - sum(shapes.values())
        if self.reference_shape is not None and missing > 0:
            shapes[self.reference_shape] += missing
        return shapes

    def plain_row_bytes(self, num_layers: int, kv_heads: int) -> int | None:
        """Return the bytes a token of ``num_layers`` layers with ``kv_heads`` KV heads each, or None.

        In the KV dtypes of the request, or the model dtype where those hold no plain heads.
        """
        shapes = self.shapes_of(num_layers)
        if not shapes:
            return None
        asked = self.theory.demand.dtypes
        plain = self.theory.architecture.model_dtype
        try:
            return _rows(shapes, kv_heads, asked.k or plain, asked.v or plain)
        except FeatureUnsupportedError:
            return _rows(shapes, kv_heads, plain, plain)

    @cached_property
    def axes(self) -> Axes | None:
        """The factors, or None where there is nothing to compare: no growing cache, no heads, no tokens."""
        tokens = self.theory.workload.context_tokens
        row = self.plain_row_bytes(self.num_layers, self.query_heads) if self.query_heads else None
        kept = sequence_parts(self.theory).growing_bytes
        set_aside = sequence_parts(self.actual).growing_bytes
        if row is None or not tokens or not kept or not set_aside:
            return None
        entries = sum(self.entry_bytes.values())
        caching = len(self.entry_bytes)
        return Axes(
            plain=Fraction(row * tokens),
            entry=Fraction(entries, caching) / Fraction(row, self.num_layers),
            layers=Fraction(caching, self.num_layers),
            held=Fraction(kept, entries * tokens),
            engine=Fraction(set_aside, kept),
        )


def _head_shape(demand: GroupDemand, latent: tuple[int, int] | None) -> HeadShape | None:
    streams = {s.role: s for s in demand.streams if s.counted.axis is Axis.DECODER}
    if Role.KEY in streams and Role.VALUE in streams:
        key, value = streams[Role.KEY], streams[Role.VALUE]
        return HeadShape(key.width, value.width, key.vectors)
    if Role.LATENT in streams:
        return None if latent is None else HeadShape(*latent, None)
    if Role.RECORD in streams:
        width = streams[Role.RECORD].width + (streams[Role.ROPE].width if Role.ROPE in streams else 0)
        return HeadShape(width, width, None)
    return None


def _rows(shapes: Counter[HeadShape], heads: int, k_dtype: str, v_dtype: str) -> int:
    return sum(
        count
        * (
            row_bytes(k_dtype, Role.KEY, heads, s.key_width)
            + row_bytes(v_dtype, Role.VALUE, heads, s.value_width)
        )
        for s, count in shapes.items()
    )
