"""State of recurrent blocks and columns of convolutions from GGUF keys.

A gated delta net in GGUF: inner_size = value heads x value width, time_step_rank = value heads, group_count =
key heads, state_size = key width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kvgauge.layers import LayerCache, LayerKind, Mechanism, Shard, Stream
from kvgauge.readers.gguf.metadata import Metadata
from kvgauge.readers.streams import conv_stream, shifted_tokens_stream, state_stream
from kvgauge.readers.values import MAX_HEADS, MAX_KERNEL

Built = tuple[tuple[Stream, ...], tuple[str, ...]]


def state_cache(meta: Metadata, mechanism: Mechanism, index: int) -> LayerCache:
    """Return what one recurrent block keeps."""
    streams, names = _BUILDERS[mechanism](meta)
    short = mechanism is Mechanism.SHORT_CONVOLUTION
    kind = LayerKind.CONVOLUTION if short else LayerKind.RECURRENT
    return LayerCache(index, kind, mechanism, streams, sources=meta.sources(*names))


def history_cache(meta: Metadata, index: int) -> LayerCache:
    """Return the columns of an n-gram embedding: (kernel - 1) x n-gram size of every hyper-connection."""
    kernel = meta.count("ple.conv_kernel", high=MAX_KERNEL, because="is the width of its convolution")
    size = meta.count("ple.ngram_size", high=MAX_KERNEL, because="is the dilation of its convolution")
    streams = meta.count("hyper_connection.count", high=MAX_HEADS)
    stream = conv_stream(streams, meta.count("embedding_length"), (kernel - 1) * size + 1, Shard.REPLICATED)
    names = ("ple.conv_kernel", "ple.ngram_size", "hyper_connection.count", "embedding_length")
    sources = meta.sources(*names)
    return LayerCache(index, LayerKind.CONVOLUTION, Mechanism.SHORT_CONVOLUTION, (stream,), sources=sources)


def _kernel(meta: Metadata) -> int:
    return meta.count("ssm.conv_kernel", high=MAX_KERNEL, because="is the convolution's width")


def _inner_heads(meta: Metadata) -> tuple[int, int]:
    """Return (heads, width of a head) of the inner channels."""
    inner = meta.count("ssm.inner_size", because="gives the channels of the state")
    heads = meta.count("ssm.time_step_rank", high=MAX_HEADS, because="gives the heads of the state")
    if inner % heads:
        raise meta.invalid("ssm.inner_size", f"is {inner}, which does not divide into {heads} heads")
    return heads, inner // heads


def _state_size(meta: Metadata) -> int:
    return meta.count("ssm.state_size", because="is the size of the state")


_SSM = ("ssm.inner_size", "ssm.state_size", "ssm.time_step_rank", "ssm.group_count", "ssm.conv_kernel")


def _mamba1(meta: Metadata) -> Built:
    inner, kernel = meta.count("ssm.inner_size", because="gives the channels of the state"), _kernel(meta)
    streams = (conv_stream(inner, 1, kernel), state_stream(inner, _state_size(meta)))
    return streams, ("ssm.inner_size", "ssm.state_size", "ssm.conv_kernel")


def _mamba2(meta: Metadata) -> Built:
    (heads, width), kernel, size = _inner_heads(meta), _kernel(meta), _state_size(meta)
    groups = meta.count(
        "ssm.group_count", low=0, high=MAX_HEADS, because="gives the groups that share B and C"
    )
    channels = (conv_stream(heads, width, kernel),)
    shared = (conv_stream(groups, 2 * size, kernel, Shard.GROUPS),) if groups else ()
    return (*channels, *shared, state_stream(heads, width * size)), _SSM


def _gated_delta_net(meta: Metadata) -> Built:
    (heads, width), kernel, size = _inner_heads(meta), _kernel(meta), _state_size(meta)
    key_heads = meta.count("ssm.group_count", high=MAX_HEADS, because="gives the key heads")
    streams = (
        conv_stream(key_heads, 2 * size, kernel),
        conv_stream(heads, width, kernel),
        state_stream(heads, width * size),
    )
    return streams, _SSM


def _query_heads(meta: Metadata) -> int:
    """Return the query heads of the first block."""
    listed = meta.listed("attention.head_count")
    heads = meta.per_layer("attention.head_count", 1 if listed is None else len(listed), high=MAX_HEADS)
    if not heads or not heads[0]:
        raise meta.missing("attention.head_count", "gives the heads of the state")
    return heads[0]


def _kimi_delta(meta: Metadata) -> Built:
    heads, width, kernel = _query_heads(meta), meta.count("kda.head_dim"), _kernel(meta)
    streams = (conv_stream(heads, 3 * width, kernel), state_stream(heads, width * width))
    return streams, ("attention.head_count", "kda.head_dim", "ssm.conv_kernel")


def _lightning(meta: Metadata) -> Built:
    heads = _query_heads(meta)
    width = meta.count("attention.key_length", because="is the width of a state head")
    return (state_stream(heads, width * width),), ("attention.head_count", "attention.key_length")


def _rwkv(meta: Metadata) -> Built:
    hidden, width = meta.count("embedding_length"), meta.count("wkv.head_size")
    if hidden % width:
        raise meta.invalid("wkv.head_size", f"is {width}, which does not divide the {hidden} channels")
    shifted = meta.optional_count("token_shift_count", high=MAX_KERNEL) or meta.default(
        "token_shift_count", 2
    )
    streams = (shifted_tokens_stream(hidden, shifted), state_stream(hidden // width, width * width))
    return streams, ("embedding_length", "wkv.head_size", "token_shift_count")


def _short_convolution(meta: Metadata) -> Built:
    kernel = meta.count("shortconv.l_cache", high=MAX_KERNEL, because="is the convolution's width")
    names = ("shortconv.l_cache", "embedding_length")
    return (conv_stream(meta.count("embedding_length"), 1, kernel),), names


_BUILDERS: Mapping[Mechanism, Callable[[Metadata], Built]] = {
    Mechanism.MAMBA1: _mamba1,
    Mechanism.MAMBA2: _mamba2,
    Mechanism.GATED_DELTA_NET: _gated_delta_net,
    Mechanism.KIMI_DELTA: _kimi_delta,
    Mechanism.LIGHTNING: _lightning,
    Mechanism.RWKV: _rwkv,
    Mechanism.SHORT_CONVOLUTION: _short_convolution,
}
