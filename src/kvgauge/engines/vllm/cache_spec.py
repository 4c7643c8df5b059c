"""The words for what vLLM gives one cache of one layer on one rank: a kind, a block, a page."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum

from kvgauge.layers import LayerCache
from kvgauge.values import dataclass


class SpecKind(StrEnum):
    """What a layer needs of its blocks over the life of a request."""

    FULL = "full"
    LATENT = "latent"
    INDEX = "index"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    RECURRENT = "recurrent"
    CROSS = "cross"


#: Kinds whose requests need the same blocks, so that they can lie in one group.
WHOLE_CONTEXT = frozenset({SpecKind.FULL, SpecKind.LATENT, SpecKind.INDEX})


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """One cache of one layer on one rank.

    Args:
        index: the layer; a cache of a draft lies behind the model's own.
        block_tokens: tokens of a block; of a state, the tokens after which another one is kept.
        page_bytes: bytes of a block of this layer, padding included.
        token_bytes: bytes of one token; 0 where a page does not grow with its block.
        window_tokens: window or chunk, 0 where there is none.
        shape: what tells layers of one kind apart (heads, widths, dtype; shapes of a state).
        layer: the model's cache that it holds a part of.
    """

    index: int
    kind: SpecKind
    block_tokens: int
    page_bytes: int
    token_bytes: int
    window_tokens: int = 0
    shape: tuple[object, ...] = ()
    layer: LayerCache | None = field(default=None, compare=False, repr=False)

    @property
    def family(self) -> tuple[object, ...]:
        """What layers of one uniform group have in common beside their block."""
        if self.kind in WHOLE_CONTEXT:
            return ("whole",)
        if self.kind is SpecKind.RECURRENT:
            return (self.kind, self.page_bytes)
        return (self.kind, self.window_tokens)

    @property
    def bucket(self) -> tuple[object, ...]:
        """What equal layers have in common: those of one bucket can stand for one another."""
        return (self.kind, self.shape, self.block_tokens, self.page_bytes, self.window_tokens)

    @property
    def can_rescale(self) -> bool:
        """Whether a larger block makes a larger page."""
        return self.token_bytes > 0

    def with_block(self, block_tokens: int) -> CacheSpec:
        """Return the spec with another block, its page in proportion."""
        if not self.can_rescale:
            return replace(self, block_tokens=block_tokens)
        return replace(self, block_tokens=block_tokens, page_bytes=block_tokens * self.token_bytes)

    def with_page(self, page_bytes: int) -> CacheSpec:
        """Return the spec with its page padded."""
        return replace(self, page_bytes=page_bytes)

    def with_rows_of(self, multiple_bytes: int) -> CacheSpec:
        """Return the spec with its tokens rounded up to a multiple of bytes."""
        token = -(-self.token_bytes // multiple_bytes) * multiple_bytes
        return replace(self, token_bytes=token, page_bytes=token * self.block_tokens)

    def as_full(self, block_tokens: int) -> CacheSpec:
        """Return the spec of a window that is kept as full attention."""
        return replace(self.with_block(block_tokens), kind=SpecKind.FULL, window_tokens=0)
