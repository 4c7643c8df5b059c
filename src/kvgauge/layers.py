"""The words that describe what a layer keeps: streams of rows, counted exactly in tokens.

Shapes and facts of the config only; nothing here knows an engine or a byte.
"""

from __future__ import annotations

from enum import StrEnum

from kvgauge.values import dataclass


class Role(StrEnum):
    """What the rows of a stream are."""

    KEY = "key"
    VALUE = "value"
    LATENT = "latent"
    RECORD = "record"  # DeepSeek-V4: one vector that serves as key and value, without its rope part
    ROPE = "rope"
    INDEX = "index"
    COMPRESSOR = "compressor"
    RECURRENT = "recurrent"
    CONV = "conv"
    PADDING = "padding"  # bytes that an engine sets aside and nothing is written to


class Axis(StrEnum):
    """What makes a stream grow."""

    DECODER = "decoder"
    ENCODER = "encoder"
    IMAGE = "image"
    SEQUENCE = "sequence"  # one set of rows a sequence, whatever its length


class Rounding(StrEnum):
    """How a partly filled step counts."""

    FLOOR = "floor"
    CEIL = "ceil"


class Shard(StrEnum):
    """How tensor parallelism cuts the vectors of a stream.

    HEADS: divided; replicated once ranks exceed heads; one number must divide the other.
    GROUPS: like HEADS, but missing groups are padded up instead of refused (Mamba-2 B and C).
    SPLIT: must divide (state heads, channels). REPLICATED: every rank holds all.
    """

    HEADS = "heads"
    GROUPS = "groups"
    SPLIT = "split"
    REPLICATED = "replicated"


class LayerKind(StrEnum):
    """The ``layers[].kind`` words of the JSON contract."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    LATENT = "latent"
    INDEX = "index"
    COMPRESSED = "compressed"
    BLOCK_INDEX = "block_index"
    CROSS = "cross"
    RECURRENT = "recurrent"
    CONVOLUTION = "convolution"
    SHARED = "shared"
    NONE = "none"


#: Layers that keep a state of one size, whatever the context.
STATE_KINDS = frozenset({LayerKind.RECURRENT, LayerKind.CONVOLUTION})


class Mechanism(StrEnum):
    """The design behind a layer cache; names its formula in explanations."""

    ATTENTION = "attention"
    LATENT_ATTENTION = "latent_attention"
    SPARSE_INDEX = "sparse_index"
    COMPRESSED_ATTENTION = "compressed_attention"
    BLOCK_INDEX = "block_index"
    CROSS_ATTENTION = "cross_attention"
    GATED_DELTA_NET = "gated_delta_net"
    KIMI_DELTA = "kimi_delta_attention"
    LIGHTNING = "lightning_attention"
    MAMBA1 = "mamba1"
    MAMBA2 = "mamba2"
    SHORT_CONVOLUTION = "short_convolution"
    INKLING_CONVOLUTIONS = "inkling_convolutions"
    RG_LRU = "rg_lru"
    RWKV = "rwkv"
    GATED_LINEAR = "gated_linear_attention"
    SHARED = "shared"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Counted:
    """How many rows T tokens keep: ``round((min(T, to) - from)+ / step)``.

    On the sequence axis the count is one, whatever T.
    """

    axis: Axis = Axis.DECODER
    from_tokens: int = 0
    to_tokens: int | None = None
    step_tokens: int = 1
    rounding: Rounding = Rounding.FLOOR

    def rows(self, tokens: int) -> int:
        """Return the rows kept for ``tokens`` tokens of this stream's axis."""
        if self.axis is Axis.SEQUENCE:
            return 1
        end = tokens if self.to_tokens is None else min(tokens, self.to_tokens)
        span = max(0, end - self.from_tokens)
        return -(-span // self.step_tokens) if self.rounding is Rounding.CEIL else span // self.step_tokens

    def shared_rows(self, tokens: int, prefix_tokens: int) -> int:
        """Return how many of those rows belong to a prefix that sequences have in common.

        A window that has moved on no longer holds all of the prefix; a state is never shared, nor is a step
        that the prefix fills in part.
        """
        if self.axis is not Axis.DECODER:
            return 0
        if self.to_tokens is None:
            return self._whole_steps(min(prefix_tokens, tokens))
        kept = min(tokens, self.to_tokens)
        return self._whole_steps(max(0, min(prefix_tokens, tokens) - (tokens - kept)))

    def _whole_steps(self, tokens: int) -> int:
        end = tokens if self.to_tokens is None else min(tokens, self.to_tokens)
        return max(0, end - self.from_tokens) // self.step_tokens


ONE_PER_SEQUENCE = Counted(Axis.SEQUENCE)


@dataclass(frozen=True, slots=True)
class Stream:
    """One kind of row: ``vectors`` vectors of ``width`` elements, ``columns`` times.

    Args:
        columns: past columns that a convolution keeps (kernel - 1); 1 for anything else.
        declared_dtype: the dtype that the config or the design fixes, or None.
    """

    role: Role
    vectors: int
    width: int
    counted: Counted = Counted()
    shard: Shard = Shard.HEADS
    declared_dtype: str | None = None
    columns: int = 1

    @property
    def elements(self) -> int:
        """Elements of one row on the whole model."""
        return self.vectors * self.width * self.columns


@dataclass(frozen=True, slots=True)
class LayerCache:
    """One cache of one layer. A layer with two caches has two of these with one index.

    Args:
        window_tokens: the window or chunk, None where there is none.
        shares_cache_of: index of the layer whose cache is read instead of an own one.
        sources: config fields behind the shape, as dotted paths.
        head_widths: K and V width of one head of an expanded latent, for engines that keep those; None where
            the config does not state them.
    """

    index: int
    kind: LayerKind
    mechanism: Mechanism
    streams: tuple[Stream, ...] = ()
    window_tokens: int | None = None
    shares_cache_of: int | None = None
    sources: tuple[str, ...] = ()
    head_widths: tuple[int, int] | None = None

    @property
    def shape(self) -> tuple[object, ...]:
        """What layers of one group have in common."""
        return (self.kind, self.mechanism, self.streams, self.window_tokens)
