"""What each block is: which slide, which are recurrent, which share, which own an indexer."""

from __future__ import annotations

from kvgauge.errors import UnknownArchitectureError
from kvgauge.layers import Mechanism
from kvgauge.readers.gguf.attention import Heads
from kvgauge.readers.gguf.metadata import Metadata
from kvgauge.readers.gguf.rows import ArchitectureRow, Indexer
from kvgauge.readers.values import MAX_LAYERS, MAX_WINDOW

_PATTERN = "attention.sliding_window_pattern"

Flags = tuple[bool, ...]


def window_tokens(meta: Metadata, row: ArchitectureRow, count: int) -> int | None:
    """Return the window in force, or None where every layer is full."""
    windows = row.windows
    if windows is None or (windows.num_layers is not None and windows.num_layers != count):
        return None
    stated = meta.optional_count("attention.sliding_window", low=0, high=MAX_WINDOW)
    if stated == 0 or (stated is None and windows.optional):
        return None
    if windows.fixed is not None:
        return windows.fixed
    if stated is None and windows.default is not None:
        return meta.default("attention.sliding_window", windows.default)
    if stated is None:
        raise meta.missing("attention.sliding_window", "sliding layers need")
    return stated


def sliding_blocks(meta: Metadata, row: ArchitectureRow, count: int, blocks: int) -> Flags:
    """Return which blocks slide, the model's first, then those of multi-token prediction.

    Raises:
        MissingFieldError: the file has to list them and does not.
    """
    listed = meta.flags(_PATTERN, count)
    if listed is not None:
        entries = meta.listed(_PATTERN) or ()
        whole = meta.flags(_PATTERN, min(len(entries), blocks)) or ()
        return (*whole, *(False,) * (blocks - len(whole)))
    assert row.windows is not None  # noqa: S101 - asked where a window is in force
    period = (
        meta.optional_count(_PATTERN, low=0, high=MAX_LAYERS) if meta.has(_PATTERN) else row.windows.period
    )
    if period is None:
        raise meta.missing(_PATTERN, "says which layers slide")
    full = 0 if row.windows.full_first else period - 1
    return (*(period == 0 or i % period != full for i in range(count)), *(False,) * (blocks - count))


def state_design(meta: Metadata, row: ArchitectureRow, heads: Heads) -> tuple[Mechanism, str] | None:
    """Return (recurrence, which blocks have it), or None where no block is recurrent.

    Raises:
        UnknownArchitectureError: an unknown architecture has state keys that allow for more than one reading.
    """
    if row.state is not None and row.state_layers is not None:
        return Mechanism(row.state), row.state_layers
    if row.known:
        return None
    mechanism = _mechanism_of_keys(meta)
    if mechanism is None:
        return None
    if meta.has("attention.recurrent_layers") or meta.has("full_attention_interval"):
        return mechanism, "interval"
    if not any(heads.key_value):
        return mechanism, "all"
    if 0 in heads.key_value:
        sizes = meta.listed("feed_forward_length")
        return mechanism, "no_kv_heads_or_ffn" if sizes is not None and 0 in sizes else "no_kv_heads"
    raise UnknownArchitectureError(
        f"{meta.architecture} is not known, and its keys do not say which blocks are recurrent",
        hint=f"pass --override {meta.key('attention.recurrent_layers')}=[...] with 1 for a recurrent block",
        field=meta.key("attention.recurrent_layers"),
    )


def _mechanism_of_keys(meta: Metadata) -> Mechanism | None:
    signatures = (
        ("wkv.head_size", Mechanism.RWKV),
        ("kda.head_dim", Mechanism.KIMI_DELTA),
        ("shortconv.l_cache", Mechanism.SHORT_CONVOLUTION),
        ("ssm.group_count", Mechanism.MAMBA2),  # a gated delta net of these keys keeps as many bytes
        ("ssm.inner_size", Mechanism.MAMBA1),
    )
    return next((mechanism for name, mechanism in signatures if meta.has(name)), None)


def recurrent_blocks(meta: Metadata, row: ArchitectureRow, layers: str, heads: Heads, count: int) -> Flags:
    """Return which blocks of the model keep a state."""
    blocks = len(heads.key_value)
    tail = (False,) * (blocks - count)
    if layers in ("all", "beside"):
        return (*(True,) * count, *tail)
    if layers == "interval":
        return (*_by_interval(meta, row, count), *tail)
    without_heads = tuple(n == 0 for n in heads.key_value[:count])
    if layers == "no_kv_heads_or_ffn":
        sizes = feed_forward(meta, blocks)
        return (*(bare and size == 0 for bare, size in zip(without_heads, sizes, strict=False)), *tail)
    return (*without_heads, *tail)


def _by_interval(meta: Metadata, row: ArchitectureRow, count: int) -> Flags:
    listed = meta.flags("attention.recurrent_layers", count)
    if listed is not None:
        return listed
    every = meta.optional_count("full_attention_interval", high=MAX_LAYERS)
    if every is None:
        if row.interval is None:
            raise meta.missing("full_attention_interval", "says which blocks are recurrent")
        every = meta.default("full_attention_interval", row.interval)
    return tuple((i + 1) % every != 0 for i in range(count))


def feed_forward(meta: Metadata, blocks: int) -> tuple[int, ...]:
    """Return the feed-forward width of every block, which tells Nemotron-H's kinds of blocks apart."""
    sizes = meta.per_layer("feed_forward_length", blocks)
    if sizes is None:
        raise meta.missing("feed_forward_length", "tells its kinds of blocks apart")
    return sizes


def shared_owners(meta: Metadata, row: ArchitectureRow, slides: Flags, count: int) -> list[int | None]:
    """Return, for each layer, the layer whose cache it reads, or None where it keeps its own."""
    shared = meta.optional_count("attention.shared_kv_layers", low=0, high=MAX_LAYERS)
    own = count - shared if shared is not None else min(row.own_layers or count, count)
    if own < 1:
        raise meta.invalid(
            "attention.shared_kv_layers", f"is {shared} of {count}: none is left to own a cache"
        )
    owners: list[int | None] = [None] * count
    last = {slides[i]: i for i in range(own)}
    for index in range(own, count):
        owner = last.get(slides[index])
        if owner is None:
            raise meta.invalid(
                "attention.shared_kv_layers", f"lets layer {index} share, but no own layer is of its kind"
            )
        owners[index] = owner
    return owners


def indexed_blocks(meta: Metadata, row: ArchitectureRow, recurrent: Flags, count: int) -> Flags:
    """Return which blocks of the model keep index keys."""
    indexer = row.indexer
    none = (False,) * count
    if indexer is None:
        return none
    if indexer.optional and not meta.optional_count("attention.indexer.top_k", low=0):
        if meta.has("attention.indexer.key_length") and not meta.has("attention.indexer.top_k"):
            raise meta.missing("attention.indexer.top_k", "goes with attention.indexer.key_length")
        return none
    match indexer.layers:
        case "after_dense":
            name = "leading_dense_block_count"
            dense = meta.count(name, low=0, high=MAX_LAYERS, because="says where index keys begin")
            return tuple(i >= dense for i in range(count))
        case "attention":
            return tuple(not recurrent[i] for i in range(count))
        case "types":
            return _by_types(meta, indexer, count)
    return (True,) * count


def _by_types(meta: Metadata, indexer: Indexer, count: int) -> Flags:
    listed = meta.flags("attention.indexer.types", count)
    if listed is not None:
        return listed
    limit = meta.optional_count("context_length", high=MAX_WINDOW)
    if indexer.period is None or limit is None:
        raise meta.missing("attention.indexer.types", "says which layers own an indexer")
    if limit < indexer.listed_from_context:
        return (True,) * count
    return tuple(i < 2 or (i - 2) % indexer.period == 0 for i in range(count))
