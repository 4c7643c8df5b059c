"""What a user of Transformers should know beside the bytes of the cache: memory that is alive around it."""

from __future__ import annotations

from collections.abc import Iterable

from kvgauge.architecture import Note
from kvgauge.dtypes import row_bytes
from kvgauge.engines.base import GroupDemand
from kvgauge.engines.transformers_streams import OUTSIDE, WINDOW_KINDS, Storage, state_streams
from kvgauge.layers import Mechanism, Role
from kvgauge.units import format_bytes

Notes = tuple[Note, ...]


def storage_notes(
    storage: Storage, demands: tuple[GroupDemand, ...], kept: tuple[GroupDemand, ...]
) -> tuple[Notes, dict[str, object]]:
    """Return the notes, and the ``details`` of the answer (bytes, all sequences).

    Args:
        demands: what the layers hold once a cache object exists.
        kept: the same, or nothing where a plain forward returns no cache object.
    """
    outside, outside_notes = _outside(storage)
    held_back = _total(storage, demands) if kept != demands else 0
    alive = _prompt_alive(storage, kept)
    transient = _expansion(storage)
    details: dict[str, object] = {
        "cache": storage.choice.word,
        "rules": storage.rules.version,
        "outside_cache_bytes": outside,
        "prompt_alive_bytes": alive,
        "transient_expansion_bytes": transient,
    }
    notes = [*outside_notes, *_too_small(storage)]
    if kept != demands:
        notes.append(_no_object(storage, held_back))
    if alive:
        text = f"sliding layers keep the whole prompt alive until the next token: {format_bytes(alive)} more"
        notes.append(Note("prompt_alive", "info", text, (("size", format_bytes(alive)),), (alive,)))
    if transient:
        text = (
            f"every step expands the latents of one layer to K and V of all heads: {format_bytes(transient)}"
        )
        notes.append(
            Note("latents_expanded", "info", text, (("size", format_bytes(transient)),), (transient,))
        )
    return tuple(notes), details


def _too_small(storage: Storage) -> Notes:
    """Say when a static cache can't hold the load."""
    room, context = storage.choice.max_cache_tokens, storage.workload.context_tokens
    if storage.choice.cache != "static" or room is None or context <= room:
        return ()
    text = f"the static cache holds {room:,} tokens, the load has {context:,}"
    values = (("max_cache_len", f"{room:,}"), ("context", f"{context:,}"))
    return (Note("static_cache_too_small", "warning", text, values),)


def _total(storage: Storage, demands: Iterable[GroupDemand]) -> int:
    load = storage.workload
    return load.sequences * sum(d.group.num_layers * d.sequence_bytes(load) for d in demands)


def _outside(storage: Storage) -> tuple[int, Notes]:
    """Return the bytes of states that no cache layer holds."""
    groups = [g for g in storage.architecture.groups if g.mechanism in OUTSIDE]
    if not groups:
        return 0, ()
    size = _total(storage, [GroupDemand(g, state_streams(g, storage)) for g in groups])
    where = OUTSIDE[groups[0].mechanism]
    text = f"the recurrent state, {format_bytes(size)}, is kept {where}; it is not counted here"
    values = (("size", format_bytes(size)), ("where", where))
    return size, (Note("state_outside_cache", "warning", text, values, (size,)),)


def _no_object(storage: Storage, held_back: int) -> Note:
    name = storage.architecture.model_type
    text = (
        f"a plain forward of {name} returns no cache object, so the cache is 0 bytes; "
        f"generate() makes one that holds {format_bytes(held_back)}"
    )
    values = (("model_type", name), ("size", format_bytes(held_back)))
    return Note("no_cache_object", "warning", text, values, (held_back,))


def _prompt_alive(storage: Storage, demands: Iterable[GroupDemand]) -> int:
    """Return what a prompt of the whole context keeps alive beyond the windows: slices are views of it."""
    if storage.choice.cache != "dynamic" or storage.choice.offloading:
        return 0  # what goes to the host is a copy of the slice
    tokens, size = storage.workload.context_tokens, 0
    for demand in demands:
        if demand.group.kind in WINDOW_KINDS:
            per_layer = sum(s.row_bytes * (tokens - s.counted.rows(tokens)) for s in demand.streams)
            size += demand.group.num_layers * per_layer
    return storage.workload.sequences * size


def _expansion(storage: Storage) -> int:
    """Return the bytes of the expanded K and V of the layer in work."""
    architecture = storage.architecture
    if storage.rules.latents_expanded or architecture.num_attention_heads is None:
        return 0
    if not any(g.mechanism is Mechanism.LATENT_ATTENTION for g in architecture.groups):
        return 0
    widths = next((c.head_widths for c in architecture.layers if c.head_widths is not None), None)
    if widths is None:
        return 0
    row = row_bytes(architecture.model_dtype, Role.KEY, architecture.num_attention_heads, sum(widths))
    return storage.workload.sequences * storage.workload.context_tokens * row
