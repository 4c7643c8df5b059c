"""The streams of each design, in one shape for every dialect: a config and a GGUF of one model agree."""

from __future__ import annotations

from kvgauge.layers import ONE_PER_SEQUENCE, Counted, Role, Shard, Stream

#: Format of DSA and DeepSeek-V4 index keys; block-sparse and pooled ones are bf16.
DSA_INDEX_DTYPE = "fp8_e4m3"
BLOCK_INDEX_DTYPE = "bf16"


def key_value_streams(heads: int, key_width: int, value_width: int, counted: Counted) -> tuple[Stream, ...]:
    """Return the K and the V stream of one layer."""
    return (
        Stream(Role.KEY, heads, key_width, counted),
        Stream(Role.VALUE, heads, value_width, counted),
    )


def latent_streams(rank: int, rope: int, counted: Counted) -> tuple[Stream, ...]:
    """Return the latent and, where there is one, the rope vector of multi-head latent attention."""
    latent = Stream(Role.LATENT, 1, rank, counted, Shard.REPLICATED)
    return (latent, Stream(Role.ROPE, 1, rope, counted, Shard.REPLICATED)) if rope else (latent,)


def index_stream(width: int, dtype: str, counted: Counted = Counted(), heads: int = 1) -> Stream:  # noqa: B008
    """Return the keys of a sparse-attention index."""
    return Stream(Role.INDEX, heads, width, counted, Shard.REPLICATED, declared_dtype=dtype)


def record_streams(head_dim: int, rope: int, counted: Counted) -> tuple[Stream, ...]:
    """Return a DeepSeek-V4 record, which serves as key and value, and its rope part."""
    record = Stream(Role.RECORD, 1, head_dim - rope, counted, Shard.REPLICATED)
    return (record, Stream(Role.ROPE, 1, rope, counted, Shard.REPLICATED)) if rope else (record,)


def compressor_ring(ratio: int, overlap: int, width: int) -> Stream:
    """Return DeepSeek-V4's ring: overlap x ratio rows of (key-value, score) x overlap x width, in fp32."""
    return Stream(
        Role.COMPRESSOR,
        overlap * ratio,
        2 * overlap * width,
        ONE_PER_SEQUENCE,
        Shard.REPLICATED,
        declared_dtype="f32",
    )


def state_stream(vectors: int, width: int, dtype: str | None = None) -> Stream:
    """Return a recurrent state; without a declared dtype it is kept in fp32."""
    return Stream(Role.RECURRENT, vectors, width, ONE_PER_SEQUENCE, Shard.SPLIT, declared_dtype=dtype)


def conv_stream(vectors: int, width: int, kernel: int, shard: Shard = Shard.SPLIT) -> Stream:
    """Return the kernel - 1 past columns of a convolution."""
    return Stream(Role.CONV, vectors, width, ONE_PER_SEQUENCE, shard, columns=kernel - 1)


def shifted_tokens_stream(hidden: int, count: int) -> Stream:
    """Return the tokens that RWKV looks back at, ``count`` hidden vectors."""
    return Stream(Role.CONV, hidden, count, ONE_PER_SEQUENCE, Shard.SPLIT)
