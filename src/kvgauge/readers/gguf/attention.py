"""K and V rows, latent rows and index keys from GGUF keys."""

from __future__ import annotations

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import Axis, Counted, LayerCache, LayerKind, Mechanism
from kvgauge.readers.gguf.metadata import Metadata
from kvgauge.readers.gguf.rows import ArchitectureRow
from kvgauge.readers.streams import (
    BLOCK_INDEX_DTYPE,
    DSA_INDEX_DTYPE,
    index_stream,
    key_value_streams,
    latent_streams,
)
from kvgauge.readers.values import MAX_HEADS
from kvgauge.values import dataclass

_HEAD_KEYS = ("attention.head_count_kv", "attention.head_count")
_WIDTH_KEYS = ("attention.key_length", "attention.value_length")
_WINDOW_KEYS = ("attention.sliding_window", "attention.sliding_window_pattern")


@dataclass(frozen=True)
class Heads:
    """Query and KV heads of every block."""

    query: tuple[int, ...]
    key_value: tuple[int, ...]


def read_heads(meta: Metadata, row: ArchitectureRow, blocks: int) -> Heads:
    """Return the heads of every block; none where the model has no attention.

    Raises:
        MissingFieldError: KV heads are not stated, and converters of this architecture always state them.
    """
    query = meta.per_layer("attention.head_count", blocks, high=MAX_HEADS) or (0,) * blocks
    key_value = meta.per_layer("attention.head_count_kv", blocks, high=MAX_HEADS)
    if key_value is None:
        if row.state_layers == "all":
            return Heads((0,) * blocks, (0,) * blocks)
        if any(query) and not row.multi_head and not meta.has("attention.kv_lora_rank"):
            raise meta.missing("attention.head_count_kv", "gives the heads of K and V")
        key_value = query
    return Heads(query, key_value)


def head_widths(meta: Metadata, row: ArchitectureRow, heads: Heads, *, slides: bool) -> tuple[int, int]:
    """Return K and V width of a head: stated, or embedding_length over the heads of the first block.

    Raises:
        MissingFieldError: not stated where it is not embedding / heads.
    """
    key, value = (_stated_width(meta, name, slides=slides) for name in _WIDTH_KEYS)
    if key is None or value is None:
        if row.width_stated or (key is not None and not row.known):
            raise meta.missing(_WIDTH_KEYS[0 if key is None else 1], "is the width of a head")
        return _with_derived(meta, row, heads, key, value)
    return key, value


def _with_derived(
    meta: Metadata, row: ArchitectureRow, heads: Heads, key: int | None, value: int | None
) -> tuple[int, int]:
    """Fill in embedding / heads, unless what the file does state says that this is not the width.

    Latent attention that is kept expanded (MiniCPM3) has K and V of two widths; elsewhere they are one.
    """
    width, rotated = _derived_width(meta, heads), meta.optional_count("rope.dimension_count", low=0)
    stated = key or value
    if stated is not None and stated != width and not meta.has("attention.kv_lora_rank"):
        raise meta.missing(
            _WIDTH_KEYS[0 if key is None else 1], f"is {stated} or {width}; the file says too little"
        )
    if key is None and rotated and (rotated > width or (row.rotates_whole_head and rotated != width)):
        raise meta.missing(
            _WIDTH_KEYS[0], f"is not embedding_length / head_count: {rotated} of it are rotated"
        )
    return key or width, value or width


def _stated_width(meta: Metadata, name: str, *, slides: bool) -> int | None:
    own = meta.optional_count(name + "_swa") if slides else None
    return own or meta.optional_count(name)


def _derived_width(meta: Metadata, heads: Heads) -> int:
    embedding = meta.count("embedding_length", because="gives the width of a head")
    count = next((n for n in heads.query if n), 0)
    if not count:
        raise meta.missing("attention.head_count", "gives the width of a head")
    if embedding % count:
        raise meta.missing(
            "attention.key_length", f"is not embedding_length / head_count ({embedding} / {count})"
        )
    return embedding // count


def attention_cache(
    meta: Metadata, row: ArchitectureRow, heads: Heads, index: int, window: int | None
) -> LayerCache:
    """Return K and V of one block."""
    count = heads.key_value[index]
    if not count:
        return LayerCache(index, LayerKind.NONE, Mechanism.NONE)
    if not heads.query[index]:
        raise meta.missing("attention.head_count", "gives the query heads")
    if heads.query[index] % count:
        raise meta.invalid(
            "attention.head_count_kv",
            f"is {count}, which does not divide the {heads.query[index]} query heads",
        )
    slides = window is not None
    key_width, value_width = head_widths(meta, row, heads, slides=slides)
    meta.check_width(f"blk.{index}.attn_k.weight", count * key_width, "attention.head_count_kv")
    chunked = slides and row.windows is not None and row.windows.chunked
    return LayerCache(
        index,
        LayerKind.CHUNKED if chunked else LayerKind.SLIDING if slides else LayerKind.FULL,
        Mechanism.ATTENTION,
        key_value_streams(count, key_width, value_width, Counted(to_tokens=window)),
        window_tokens=window,
        sources=_attention_sources(meta, slides=slides),
    )


def _attention_sources(meta: Metadata, *, slides: bool) -> tuple[str, ...]:
    narrow = tuple(name + "_swa" for name in _WIDTH_KEYS) if slides else ()
    stated = narrow if narrow and meta.has(narrow[0]) else _WIDTH_KEYS
    derived = () if meta.has(stated[0]) and meta.has(stated[1]) else ("embedding_length",)
    return meta.sources(*_HEAD_KEYS, *stated, *derived, *(_WINDOW_KEYS if slides else ()))


def cross_cache(own: LayerCache) -> LayerCache:
    """Return what a decoder layer keeps of the encoder beside its own rows."""
    width = own.streams[0].width, own.streams[1].width
    streams = key_value_streams(own.streams[0].vectors, *width, Counted(Axis.ENCODER))
    return LayerCache(own.index, LayerKind.CROSS, Mechanism.CROSS_ATTENTION, streams, sources=own.sources)


def latent_cache(meta: Metadata, heads: Heads, index: int, window: int | None) -> LayerCache:
    """Return the latent rows of one block: key_length is latent and rope together.

    Raises:
        InvalidFieldError: the keys do not describe one latent a token.
    """
    tail = "_swa" if window is not None and meta.has("attention.kv_lora_rank_swa") else ""
    rank = meta.count("attention.kv_lora_rank" + tail, because="is the width of a latent")
    row_width = meta.count(
        "attention.key_length" + tail, because="is the width of a latent with its rope part"
    )
    if row_width < rank:
        raise meta.invalid("attention.key_length" + tail, f"is {row_width}, less than the latent's {rank}")
    if meta.has("attention.head_count_kv") and heads.key_value[index] != 1:
        raise meta.invalid(
            "attention.head_count_kv",
            f"is {heads.key_value[index]}; a latent is one vector, whatever the heads",
        )
    meta.check_width(f"blk.{index}.attn_kv_a_mqa.weight", row_width, "attention.key_length" + tail)
    key = meta.optional_count("attention.key_length_mla" + tail)
    value = meta.optional_count("attention.value_length_mla" + tail)
    meta.optional_count("rope.dimension_count" + tail, low=0)  # for explanations: key_length holds it too
    names = ("attention.kv_lora_rank" + tail, "attention.key_length" + tail)
    return LayerCache(
        index,
        LayerKind.LATENT if window is None else LayerKind.SLIDING,
        Mechanism.LATENT_ATTENTION,
        latent_streams(rank, row_width - rank, Counted(to_tokens=window)),
        window_tokens=window,
        sources=meta.sources(
            *names, "rope.dimension_count" + tail, *(_WINDOW_KEYS if window is not None else ())
        ),
        head_widths=None if key is None or value is None else (key, value),
    )


def index_cache(meta: Metadata, row: ArchitectureRow, index: int) -> LayerCache:
    """Return the index keys of one block that owns an indexer."""
    assert row.indexer is not None  # noqa: S101 - the caller asks for rows with an indexer only
    width = meta.count("attention.indexer.key_length", because="is the width of an index key")
    names = ["attention.indexer.key_length", "attention.indexer.types", "attention.compress_ratios"]
    if row.indexer.layers == "after_dense":
        streams = (index_stream(width, BLOCK_INDEX_DTYPE),)
        kind, mechanism = LayerKind.BLOCK_INDEX, Mechanism.BLOCK_INDEX
        names = ["attention.indexer.key_length", "leading_dense_block_count"]
    elif row.indexer.pooled:
        counted = Counted(step_tokens=_pooled_tokens(meta, index))
        streams = (index_stream(width, BLOCK_INDEX_DTYPE, counted),)
        kind, mechanism = LayerKind.INDEX, Mechanism.SPARSE_INDEX
    else:
        streams = (index_stream(width, DSA_INDEX_DTYPE),)
        kind, mechanism = LayerKind.INDEX, Mechanism.SPARSE_INDEX
    return LayerCache(index, kind, mechanism, streams, sources=meta.sources(*names))


def _pooled_tokens(meta: Metadata, index: int) -> int:
    ratios = meta.per_layer("attention.compress_ratios", index + 1, high=1 << 20)
    if ratios is None:
        raise meta.missing("attention.compress_ratios", "says how many tokens one index key stands for")
    if not ratios[index]:
        raise InvalidFieldError(
            f"{meta.key('attention.compress_ratios')}[{index}] is 0 on an attention layer",
            field=meta.key("attention.compress_ratios"),
        )
    return ratios[index]
