"""How Transformers stores the streams of one layer group, cache object by cache object.

Rows that a mode or version holds differently become other counts, columns or factors of the same streams,
so the terms of an answer stay exact at every length. Source: ``cache_utils.py`` and the model code of
4.57.3 and 5.24.0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.engines.base import GroupDemand, RequestedDtypes, StreamDemand
from kvgauge.engines.transformers_args import CacheChoice
from kvgauge.engines.transformers_versions import VersionRules
from kvgauge.errors import MissingFieldError
from kvgauge.layers import (
    ONE_PER_SEQUENCE,
    STATE_KINDS,
    Axis,
    Counted,
    LayerKind,
    Mechanism,
    Role,
    Shard,
    Stream,
)
from kvgauge.workload import Workload

WINDOW_KINDS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})
_EMPTY_KINDS = frozenset({LayerKind.NONE, LayerKind.SHARED})

#: States that are memory, but not part of the cache's layers, and where they are instead.
OUTSIDE = {
    Mechanism.RG_LRU: "in the modules of the model",
    Mechanism.LIGHTNING: "in a list beside the layers of the cache",
}
#: The last column buffers hold kernel columns, one more than must be kept. These keep what the reader says.
_PLAIN_COLUMNS = frozenset({Mechanism.RWKV, Mechanism.RG_LRU})

#: Fields that count a window without the query; the class then makes its window one token longer.
_WINDOW_BESIDE_QUERY = {"mimo_v2_flash": "sliding_window_size"}

#: Windows that live in the attention mask alone: the class does not call them by the name that caches read.
_WINDOW_IN_MASK = frozenset({"gpt_neo"})

#: Tokens in 16 bits that a quantised cache gathers before it packs everything anew (residual_length).
RESIDUAL_TOKENS = 128


@dataclass(frozen=True)
class Storage:
    """Everything that decides how a stream is stored; ``dtypes.k`` and ``dtypes.v`` are filled in."""

    rules: VersionRules
    choice: CacheChoice
    architecture: ModelArchitecture
    workload: Workload
    dtypes: RequestedDtypes

    @property
    def static_tokens(self) -> int | None:
        """Rows that a static cache allocates, or None where the cache is not static."""
        if self.choice.cache != "static":
            return None
        return self.choice.max_cache_tokens or self.workload.context_tokens


def group_demands(group: LayerGroup, storage: Storage) -> tuple[GroupDemand, ...]:
    """Return how one group is stored, as two demands where its layers differ.

    Raises:
        MissingFieldError: K and V of every head are stored, and the config does not give their width.
    """
    if group.kind in _EMPTY_KINDS or group.mechanism in OUTSIDE:
        return (GroupDemand(group, ()),)
    if group.mechanism is Mechanism.COMPRESSED_ATTENTION:
        return _compressed(group, storage)
    if group.kind in STATE_KINDS:
        return (GroupDemand(group, state_streams(group, storage)),)
    streams = tuple(_held(stream, group, storage) for stream in _attention_rows(group, storage))
    if storage.choice.cache == "quantized":
        streams = tuple(part for stream in streams for part in _quantized(stream, storage))
    return (GroupDemand(group, (*streams, *_unused_columns(storage))),)


# -- attention ------------------------------------------------------------------------------------


def _attention_rows(group: LayerGroup, storage: Storage) -> tuple[Stream, ...]:
    """Return the streams that this version and model class store, in shapes of the config."""
    if group.mechanism is Mechanism.LATENT_ATTENTION and storage.rules.latents_expanded:
        return _expanded(group, storage.architecture)
    if group.kind is LayerKind.INDEX:
        # One key a token, whatever the model pools; what waits for its pool is part of the same rows.
        keys = (stream for stream in group.streams if stream.role is Role.INDEX)
        return tuple(replace(stream, counted=Counted()) for stream in keys)
    return group.streams


def _expanded(group: LayerGroup, architecture: ModelArchitecture) -> tuple[Stream, ...]:
    """Return K and V of every head, as stored before latents were."""
    widths = next((c.head_widths for c in architecture.layers if c.head_widths is not None), None)
    heads = architecture.num_attention_heads
    if widths is None or heads is None:
        raise MissingFieldError(
            "this version keeps K and V of every head: the config has no qk_nope_head_dim or v_head_dim",
            hint="add them, or ask for transformers 5.15 or later, which keeps latents",
            field="qk_nope_head_dim",
        )
    counted = group.streams[0].counted
    return (Stream(Role.KEY, heads, widths[0], counted), Stream(Role.VALUE, heads, widths[1], counted))


def _held(stream: Stream, group: LayerGroup, storage: Storage) -> StreamDemand:
    """Return a stream with the rows that the cache object holds."""
    demand = StreamDemand.of(stream, attention_dtype(stream, storage))
    length = storage.static_tokens
    if length is None or stream.counted.axis is Axis.ENCODER:
        return replace(demand, counted=_dynamic_rows(stream.counted, group, storage))
    window = _window(group.window_tokens, storage.architecture)
    rows = length if window is None else min(length, window)
    return replace(demand, counted=ONE_PER_SEQUENCE, factor=rows)


def _dynamic_rows(counted: Counted, group: LayerGroup, storage: Storage) -> Counted:
    if group.kind not in WINDOW_KINDS or counted.to_tokens is None:
        return counted
    # The newest token is added when it is used, so a window keeps one less; a window of one slices from
    # zero, which keeps everything. Without a config nothing slides.
    window = _window(counted.to_tokens, storage.architecture)
    if storage.choice.cache != "dynamic" or window is None or window == 1:
        return replace(counted, to_tokens=None)
    return replace(counted, to_tokens=window - 1)


def slides(group: LayerGroup, architecture: ModelArchitecture) -> bool:
    """Return whether the cache layers of a group are sliding ones, static or dynamic."""
    return group.kind in WINDOW_KINDS and _window(group.window_tokens, architecture) is not None


def _window(tokens: int | None, architecture: ModelArchitecture) -> int | None:
    """Return the window of the model class for a window of the config."""
    name = _WINDOW_BESIDE_QUERY.get(architecture.model_type)
    if architecture.model_type in _WINDOW_IN_MASK:
        return None
    stated = name is not None and any(path.rsplit(".", 1)[-1] == name for path, _ in architecture.fields)
    return tokens + 1 if stated and tokens is not None else tokens


def attention_dtype(stream: Stream, storage: Storage) -> str:
    """Return the canonical dtype of a row: activations are stored as they are."""
    dtypes, model_dtype = storage.dtypes, storage.architecture.model_dtype
    if stream.role is Role.INDEX:
        return dtypes.index or model_dtype
    return (dtypes.v if stream.role in (Role.VALUE, Role.ROPE) else dtypes.k) or model_dtype


def _unused_columns(storage: Storage) -> tuple[StreamDemand, ...]:
    """Return the column buffer that attention layers of convolution models hold for nothing."""
    if not storage.rules.convolution_everywhere:
        return ()
    groups = storage.architecture.groups
    conv = next((g for g in groups if g.mechanism is Mechanism.SHORT_CONVOLUTION), None)
    if conv is None:
        return ()
    stream = conv.streams[0]
    plain = StreamDemand.of(stream, storage.architecture.model_dtype, columns=1)
    return (replace(plain, factor=stream.columns + 1),)


# -- quantised ------------------------------------------------------------------------------------


def _quantized(stream: StreamDemand, storage: Storage) -> tuple[StreamDemand, ...]:
    """Return a stream as QuantizedCache holds it.

    fp8 packs every token. quanto and hqq pack the prompt; later tokens stay in 16 bits until there are
    ``RESIDUAL_TOKENS`` of them, then everything is packed anew: (T - prompt) mod 128 tokens are plain.
    """
    choice = storage.choice
    if choice.backend == "fp8":
        return (replace(stream, dtype="fp8_e4m3"),)
    packed = replace(stream, dtype=f"int{choice.bits}_group64")
    prompt = storage.workload.context_tokens if choice.prompt_tokens is None else choice.prompt_tokens
    later = Counted(from_tokens=prompt)
    full = Counted(from_tokens=prompt, step_tokens=RESIDUAL_TOKENS)
    return (
        packed,
        replace(stream, counted=later),
        replace(stream, counted=full, factor=-RESIDUAL_TOKENS),
        replace(packed, counted=later, factor=-1),
        replace(packed, counted=full, factor=RESIDUAL_TOKENS),
    )


# -- states ---------------------------------------------------------------------------------------


def state_streams(group: LayerGroup, storage: Storage) -> tuple[StreamDemand, ...]:
    """Return state and convolution columns of one recurrent layer, whatever object holds them."""
    model_dtype = storage.architecture.model_dtype
    follows = group.mechanism in storage.rules.state_in_model_dtype
    state_dtype = storage.dtypes.state or (model_dtype if follows else "f32")
    extra = 0 if group.mechanism in _PLAIN_COLUMNS else 1
    conv_dtype = "f32" if group.mechanism is Mechanism.INKLING_CONVOLUTIONS else model_dtype
    return tuple(
        StreamDemand.of(stream, state_dtype)
        if stream.role is Role.RECURRENT
        else StreamDemand.of(stream, conv_dtype, columns=stream.columns + extra)
        for stream in group.streams
    )


# -- DeepSeek-V4 ----------------------------------------------------------------------------------


def _compressed(group: LayerGroup, storage: Storage) -> tuple[GroupDemand, ...]:
    """Return one of the caches of a compressed layer (``modeling_deepseek_v4.py``).

    Plain sliding layers hold a window of K and one of V; compressed layers one tensor for both.
    """
    if group.kind is LayerKind.SLIDING:
        held = tuple(_held(stream, group, storage) for stream in group.streams)
        squeezed = {
            index
            for other in storage.architecture.groups
            if other.kind is LayerKind.COMPRESSED
            for index in other.indices
        }
        single, double = _split(group, squeezed)
        twice = tuple(replace(stream, factor=2) for stream in held)
        return tuple(GroupDemand(g, s) for g, s in ((single, held), (double, twice)) if g.indices)
    rows = [s for s in group.streams if s.role is not Role.COMPRESSOR]
    width = sum(stream.elements for stream in rows)
    ratio = rows[0].counted.step_tokens
    ring = next(s for s in group.streams if s.role is Role.COMPRESSOR)
    overlap = ring.vectors // ratio
    kept = [StreamDemand.of(stream, attention_dtype(stream, storage)) for stream in rows]
    return (GroupDemand(group, (*kept, *_waiting(width, ratio, overlap, storage))),)


def _waiting(width: int, ratio: int, overlap: int, storage: Storage) -> Iterable[StreamDemand]:
    """Yield the tokens that wait for a full step, and what overlapping steps carry over.

    T mod ratio tokens wait, each with key-value and gate of ``overlap x width``. From the first full
    step on, overlapping designs keep one step of key-value rows, and of gates in fp32.
    """
    dtype = storage.dtypes.k or storage.architecture.model_dtype
    row = StreamDemand(Role.COMPRESSOR, 1, 2 * overlap * width, 1, Shard.REPLICATED, dtype, Counted())
    yield row
    yield replace(row, counted=Counted(step_tokens=ratio), factor=-ratio)
    if overlap > 1:
        once = Counted(from_tokens=ratio - 1, to_tokens=ratio)
        carried = replace(row, vectors=ratio, width=width, counted=once)
        yield carried
        yield replace(carried, dtype="f32")


def _split(group: LayerGroup, indices: set[int]) -> tuple[LayerGroup, LayerGroup]:
    """Return the layers of a group inside and outside ``indices``; the second gets a name of its own."""
    inside = tuple(i for i in group.indices if i in indices)
    outside = tuple(i for i in group.indices if i not in indices)
    name = f"{group.name}_only" if inside else group.name
    return replace(group, indices=inside), replace(group, name=name, indices=outside)
