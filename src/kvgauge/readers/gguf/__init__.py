"""Read GGUF metadata into a ``ModelArchitecture``: the other dialect, with the same words for one design.

Keys decide; the architecture's data row adds what lives in llama.cpp's code only. What is answered is what
must be kept, as for a config; what llama.cpp sets aside for it is its engine's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.errors import InvalidFieldError, UnknownArchitectureError
from kvgauge.layers import STATE_KINDS, LayerCache, LayerKind, Mechanism
from kvgauge.readers.gguf.decoder import MLA_KEYS, block_counts, read_layers
from kvgauge.readers.gguf.dimensions import read_block_dimensions, read_dimensions
from kvgauge.readers.gguf.metadata import Metadata, Shapes
from kvgauge.readers.gguf.rows import ArchitectureRow, architecture_row
from kvgauge.readers.values import MAX_HEADS, MAX_WINDOW, is_int, short

_ARCHITECTURE = "general.architecture"
_STATE_KINDS = STATE_KINDS | {LayerKind.NONE, LayerKind.SHARED}

#: Keys that only make sense in a design; an unknown architecture with one of them can't be read by shape.
_DESIGN_KEYS = (
    "attention.indexer.key_length",
    "attention.compress_ratios",
    "num_loops",
    "decoder_block_count",
)


def read_metadata(metadata: Mapping[str, object], shapes: Shapes | None = None) -> ModelArchitecture:
    """Read GGUF metadata.

    Args:
        metadata: whole keys and values; ``general.architecture`` among them.
        shapes: tensor name -> shape, fastest dimension first; the metadata is held against it.

    Raises:
        UnknownArchitectureError, MissingFieldError, InvalidFieldError: it can't be understood; says why.

    >>> keys = {"general.architecture": "qwen3", "qwen3.block_count": 36, "qwen3.attention.head_count": 32,
    ...         "qwen3.attention.head_count_kv": 8, "qwen3.attention.key_length": 128,
    ...         "qwen3.attention.value_length": 128}
    >>> read_metadata(keys).num_layers
    36
    """
    name = metadata.get(_ARCHITECTURE)
    if not isinstance(name, str) or not name:
        raise InvalidFieldError(f"{_ARCHITECTURE} must be text, not {short(name)}", field=_ARCHITECTURE)
    row, meta = architecture_row(name), Metadata(metadata, name, shapes or {})
    _check_kind(meta, row)
    layers, mtp, count = _no_cache(meta, row) if row.no_cache else read_layers(meta, row)
    kinds = {layer.kind for layer in layers}
    if not row.no_cache and not kinds - {LayerKind.NONE, LayerKind.SHARED}:
        raise UnknownArchitectureError(
            "none of the blocks keeps a cache, which no decoder does",
            hint="check the heads and the layer lists of the metadata",
            field=meta.key("attention.head_count_kv"),
        )
    return ModelArchitecture(
        model_type=name[:200],
        architecture="",
        layers=layers,
        num_layers=count,
        model_dtype="f16",
        mtp_layers=mtp,
        num_attention_heads=_query_heads(meta) if kinds - _STATE_KINDS else None,
        context_limit_tokens=_context_limit(meta),
        encoder_only=row.no_cache,
        is_encoder_decoder=row.encoder_decoder,
        fields=tuple(meta.used.items()),
        notes=_notes(meta, row),
        dimensions=read_dimensions(meta),
        block_dimensions=() if row.no_cache else read_block_dimensions(metadata, meta, count),
    )


def _check_kind(meta: Metadata, row: ArchitectureRow) -> None:
    """Refuse files that are no language model, and unknown architectures of a design that keys don't tell."""
    kind = meta.values.get("general.type")
    reason = row.refused or (f"of the kind {short(kind)}" if kind not in (None, "model") else None)
    if reason:
        raise UnknownArchitectureError(
            f"{short(meta.architecture)} is {reason.partition(';')[0]}, not a language model",
            hint=reason.partition("; ")[2] or "give the model that it belongs to",
            field=_ARCHITECTURE,
        )
    for name in () if row.known else _DESIGN_KEYS:
        if meta.has(name):
            raise UnknownArchitectureError(
                f"{short(meta.architecture)} is not known, and {meta.key(name)} belongs to a design that its "
                "keys alone do not tell",
                hint=f"--override {meta.key(name)}=null reads it without",
                field=meta.key(name),
            )


def _no_cache(
    meta: Metadata, row: ArchitectureRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    count, _ = block_counts(meta, row)
    return tuple(LayerCache(i, LayerKind.NONE, Mechanism.NONE) for i in range(count)), (), count


def _query_heads(meta: Metadata) -> int | None:
    blocks = meta.listed("attention.head_count")
    heads = meta.per_layer("attention.head_count", 1 if blocks is None else len(blocks), high=MAX_HEADS)
    return max(heads or (0,)) or None


def _context_limit(meta: Metadata) -> int | None:
    value = meta.find("context_length")
    return min(value, MAX_WINDOW) if is_int(value) and value > 0 else None


def _notes(meta: Metadata, row: ArchitectureRow) -> tuple[Note, ...]:
    if row.no_cache:
        return (Note("no_cache", "info", "an encoder keeps no cache between tokens"),)
    notes = [
        Note(
            "gguf_kv_dtype",
            "info",
            "a GGUF's cache is f16 unless a KV dtype is asked for, whatever the weights, as in llama.cpp",
        )
    ]
    if not row.known:
        text = f"architecture {short(meta.architecture)} is not known; read from its shape keys alone"
        notes.append(Note("inferred", "warning", text, (("model_type", short(meta.architecture)),)))
    notes += [*_window_note(meta, row), *_latent_note(meta, row)]
    if meta.defaulted:
        text = ", ".join(f"{key} = {value}" for key, value in sorted(meta.defaulted.items()))
        message = f"the file omits keys for which the architecture has a value of its own: {text}"
        notes.append(Note("gguf_defaults", "info", message, (("keys", text),)))
    return tuple(notes)


def _window_note(meta: Metadata, row: ArchitectureRow) -> tuple[Note, ...]:
    window, limit = meta.values.get(meta.key("attention.sliding_window")), _context_limit(meta)
    if row.windows is not None or row.compressed or not is_int(window) or window < 1:
        return ()
    if limit is not None and window >= limit:
        return ()
    text = f"the file states a window of {window:,} tokens, which llama.cpp does not use for {row.name}"
    values = (("window", f"{window:,}"), ("architecture", row.name))
    return (Note("gguf_window_unused", "info", text, values),)


def _latent_note(meta: Metadata, row: ArchitectureRow) -> tuple[Note, ...]:
    if not row.latent or not meta.has("attention.kv_lora_rank") or meta.has(MLA_KEYS[0]):
        return ()
    key = meta.key(MLA_KEYS[0])
    text = f"without {key} the heads are kept expanded, many times the latent; a newer conversion has the key"
    return (Note("gguf_latent_expanded", "warning", text, (("key", key),)),)


__all__ = ["read_metadata"]
