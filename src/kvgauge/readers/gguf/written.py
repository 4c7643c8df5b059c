"""Layers written in GGUF's words, the other way round of reading them.

Keys are without their architecture prefix. A value that all layers share is one number, else a list of one
entry
a layer, as converters write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from kvgauge.layers import STATE_KINDS, LayerCache, LayerKind, Mechanism, Role, Stream
from kvgauge.readers.gguf.rows import ArchitectureRow
from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.values import MAX_HEADS, is_int

Layers = Sequence[tuple[LayerCache, ...]]
Metadata = dict[str, object]

_WINDOWS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})


def _first(
    layers: Layers, mechanism: Mechanism, kinds: frozenset[LayerKind] | None = None
) -> LayerCache | None:
    return next(
        (
            c
            for caches in layers
            for c in caches
            if c.mechanism is mechanism and (kinds is None or c.kind in kinds)
        ),
        None,
    )


def _one_or_list(values: list[int]) -> int | list[int]:
    return values[0] if len(set(values)) == 1 else values


def _stream(cache: LayerCache, role: Role) -> Stream | None:
    return next((s for s in cache.streams if s.role is role), None)


def heads(view: ConfigView, layers: Layers) -> Metadata:
    """Return query and KV heads; a latent is one head, a layer without attention has none."""
    counts = [_kv_heads(caches) for caches in layers]
    shared = next((n for n in counts if n), 0)
    # A layer that reads another's cache has heads like it, though it keeps nothing.
    filled = [
        shared if any(c.kind is LayerKind.SHARED for c in caches) else n
        for caches, n in zip(layers, counts, strict=True)
    ]
    keys: Metadata = {"attention.head_count": _query_heads(view, len(layers))}
    if any(filled):
        keys["attention.head_count_kv"] = _one_or_list(filled)
    return keys


def _query_heads(view: ConfigView, count: int) -> int | list[int]:
    """Return query heads, one a layer where the config lists them."""
    found = view.find("num_attention_heads")
    if found is not None and isinstance(found[1], list | tuple):
        listed = view.counts("num_attention_heads", high=MAX_HEADS) or ()
        return _one_or_list([*listed[:count], *listed[-1:] * (count - len(listed))]) if listed else 0
    return view.optional_count("num_attention_heads", low=0, high=MAX_HEADS) or 0


def _kv_heads(caches: tuple[LayerCache, ...]) -> int:
    for cache in caches:
        if cache.mechanism is Mechanism.ATTENTION:
            key = _stream(cache, Role.KEY)
            return key.vectors if key else 0
        if cache.mechanism in (Mechanism.LATENT_ATTENTION, Mechanism.COMPRESSED_ATTENTION):
            return 1
    return 0


def widths(layers: Layers) -> Metadata:
    """Return K and V width of a head, with those of sliding layers where they are others."""
    full = _first(layers, Mechanism.ATTENTION, frozenset({LayerKind.FULL}))
    slides = _first(layers, Mechanism.ATTENTION, _WINDOWS)
    keys: Metadata = {}
    for cache, tail in ((full or slides, ""), (slides if full else None, "_swa")):
        if cache is None:
            continue
        key, value = _stream(cache, Role.KEY), _stream(cache, Role.VALUE)
        if key is not None and value is not None:
            keys["attention.key_length" + tail] = key.width
            keys["attention.value_length" + tail] = value.width
    if keys.get("attention.key_length_swa") == keys.get("attention.key_length"):
        keys.pop("attention.key_length_swa", None)
        keys.pop("attention.value_length_swa", None)
    return keys


def windows(layers: Layers, view: ConfigView, *, listed: bool) -> Metadata:
    """Return the window, and which layers slide where the file has to list them."""
    sliding = [next((c for c in caches if c.kind in _WINDOWS), None) for caches in layers]
    found = next((c.window_tokens for c in sliding if c is not None), None)
    if found is None:
        stated = view.values.get("sliding_window")
        return {"attention.sliding_window": stated} if is_int(stated) and stated > 0 else {}
    keys: Metadata = {"attention.sliding_window": found}
    if listed:
        keys["attention.sliding_window_pattern"] = [int(c is not None) for c in sliding]
    return keys


def latents(layers: Layers, target: ArchitectureRow, view: ConfigView, query: object) -> Metadata:
    """Return the keys of latent attention: latent and rope together are the key, the latent is the value.

    Architectures whose graph expands the heads have those of a plain model (MiniCPM3).
    """
    cache = _first(layers, Mechanism.LATENT_ATTENTION)
    if cache is None:
        return {}
    latent, rope = _stream(cache, Role.LATENT), _stream(cache, Role.ROPE)
    rank = latent.width if latent else 0
    rotated = rope.width if rope else 0
    keys: Metadata = {"attention.kv_lora_rank": rank, "rope.dimension_count": rotated}
    if not target.latent:
        key, value = cache.head_widths or _expanded(view, rotated)
        own = {"attention.key_length": key, "attention.value_length": value, "attention.head_count_kv": query}
        return {**keys, **own}
    keys |= {"attention.key_length": rank + rotated, "attention.value_length": rank}
    if cache.head_widths is not None:
        keys["attention.key_length_mla"], keys["attention.value_length_mla"] = cache.head_widths
    return keys


def _expanded(view: ConfigView, rotated: int) -> tuple[int, int]:
    """Return K and V width of an expanded head; V is as wide as a plain head where the config is silent."""
    plain = view.count("qk_nope_head_dim", because="is the part of a head without rope")
    value = view.optional_count("v_head_dim")
    return plain + rotated, value or view.count("hidden_size") // view.count("num_attention_heads")


def indexes(layers: Layers, target: ArchitectureRow) -> Metadata:
    """Return the width of index keys and which layers own an indexer."""
    kinds = frozenset({LayerKind.INDEX, LayerKind.BLOCK_INDEX})
    owners = [any(c.kind in kinds for c in caches) for caches in layers]
    if target.indexer is None or not any(owners):
        return {}
    cache = next(c for caches in layers for c in caches if c.kind in kinds)
    index = cache.streams[0]
    keys: Metadata = {"attention.indexer.key_length": index.width}
    if target.indexer.layers == "types":
        keys["attention.indexer.types"] = [int(owns) for owns in owners]
    if target.indexer.layers == "after_dense":
        keys["leading_dense_block_count"] = owners.index(True)
    if target.indexer.pooled:
        keys["attention.compress_ratios"] = [index.counted.step_tokens if owns else 0 for owns in owners]
    return keys


def compressed(layers: Layers) -> Metadata:
    """Return the keys of DeepSeek-V4: records of one width, and what each layer compresses by."""
    window = _first(layers, Mechanism.COMPRESSED_ATTENTION, _WINDOWS)
    if window is None:
        return {}
    rope = _stream(window, Role.ROPE)
    width = sum(s.elements for s in window.streams)
    index = _first(layers, Mechanism.COMPRESSED_ATTENTION, frozenset({LayerKind.INDEX}))
    keys: Metadata = {
        "attention.key_length": width,
        "attention.value_length": width,
        "rope.dimension_count": rope.width if rope else 0,
        "attention.compress_ratios": [_ratio(caches) for caches in layers],
    }
    if index is not None:
        keys["attention.indexer.key_length"] = index.streams[0].width
    return keys


def _ratio(caches: tuple[LayerCache, ...]) -> int:
    squeezed = next((c for c in caches if c.kind is LayerKind.COMPRESSED), None)
    return squeezed.streams[0].counted.step_tokens if squeezed else 0


def states(layers: Layers, target: ArchitectureRow) -> Metadata:
    """Return the keys of a recurrence, and which blocks have it where the heads do not tell."""
    cache = next((c for caches in layers for c in caches if c.kind in STATE_KINDS), None)
    if cache is None:
        return {}
    keys = _state(cache)
    if target.state_layers == "interval":
        keys["attention.recurrent_layers"] = [
            int(any(c.kind in STATE_KINDS for c in caches)) for caches in layers
        ]
    return keys


def _state(cache: LayerCache) -> Metadata:
    columns = [s for s in cache.streams if s.role is Role.CONV]
    state = _stream(cache, Role.RECURRENT)
    if state is None:
        return {"shortconv.l_cache": columns[0].columns + 1} if columns else {}
    keys: Metadata = {"ssm.conv_kernel": columns[0].columns + 1} if columns else {}
    match cache.mechanism:
        case Mechanism.KIMI_DELTA:
            keys["kda.head_dim"] = isqrt(state.width)
        case Mechanism.LIGHTNING:
            keys |= dict.fromkeys(("attention.key_length", "attention.value_length"), isqrt(state.width))
        case Mechanism.MAMBA1:
            keys |= {"ssm.inner_size": state.vectors, "ssm.state_size": state.width}
        case Mechanism.GATED_DELTA_NET:
            keys |= _scan(columns[1], columns[0].width // 2, groups=columns[0].vectors)
        case Mechanism.MAMBA2:
            groups = columns[1].vectors if len(columns) > 1 else 0
            keys |= _scan(columns[0], state.width // columns[0].width, groups=groups)
    return keys


def _scan(channels: Stream, size: int, *, groups: int) -> Metadata:
    return {
        "ssm.inner_size": channels.vectors * channels.width,
        "ssm.state_size": size,
        "ssm.group_count": groups,
        "ssm.time_step_rank": channels.vectors,
    }


def feed_forward(layers: Layers, width: object) -> list[int]:
    """Return one feed-forward width a block: only blocks without attention and state have one."""
    size = width if is_int(width) else 1
    return [0 if _keeps(caches) else size for caches in layers]


def _keeps(caches: tuple[LayerCache, ...]) -> bool:
    return any(c.kind is not LayerKind.NONE for c in caches)


__all__: Sequence[str] = (
    "compressed", "feed_forward", "heads", "indexes", "latents", "states", "widths", "windows",
)  # fmt: skip
