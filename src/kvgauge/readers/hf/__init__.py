"""Read a Hugging Face style config into a ``ModelArchitecture``.

Structure decides; the model type's data row adds what lives in model code only. A type without a row is read
by structure alone and marked inferred; what can't be understood is refused with the field named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Protocol

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.dtypes import canonical_dtype
from kvgauge.errors import (
    InvalidFieldError,
    InvalidRequestError,
    MissingFieldError,
    UnknownArchitectureError,
)
from kvgauge.layers import STATE_KINDS, LayerCache, LayerKind
from kvgauge.readers.hf.config import MAX_WINDOW, ConfigView, ReadLog, short
from kvgauge.readers.hf.mixers.attention import query_heads
from kvgauge.readers.hf.nesting import language_view
from kvgauge.readers.hf.quantization import modelopt_kv_dtype, prescribed_kv_dtype, unknown_kv_word
from kvgauge.readers.hf.rows import ModelTypeRow, model_type_row
from kvgauge.readers.hf.towers import tower_dimensions


class _Reader(Protocol):
    def read_layers(
        self, view: ConfigView, row: ModelTypeRow
    ) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]: ...


def read_config(
    config: Mapping[str, object], quantization: Mapping[str, object] | None = None
) -> ModelArchitecture:
    """Read a config.

    Args:
        config: the parsed JSON object.
        quantization: ``hf_quant_config.json`` beside it, if any.

    Raises:
        UnknownArchitectureError, MissingFieldError, InvalidFieldError: it can't be understood; says why.
    """
    log = ReadLog()
    view, model_type = language_view(config, log)
    row = _effective_row(view, model_type_row(_outer_encoder(config) or model_type))
    _check_language_model(view, row)
    _check_needs(view, row)
    if row.encoder_only:
        layers, mtp, count = _no_cache(view)
    else:
        reader: _Reader = import_module(f"kvgauge.readers.hf.{row.reader}")
        layers, mtp, count = reader.read_layers(view, row)
    kinds = {layer.kind for layer in layers}
    if not row.encoder_only and not kinds - {LayerKind.NONE, LayerKind.SHARED}:
        raise UnknownArchitectureError(
            "none of the layers keeps a cache, which no decoder does",
            hint="check the layer pattern, or the model is an encoder of a type that is not known",
            field=view.path + "layer_types",
        )
    dtype, dtype_notes = model_dtype(view)
    prescribed, prescribed_by = prescribed_kv_dtype(view, quantization)
    unknown_word = unknown_kv_word(view, quantization)
    if prescribed is None and unknown_word is not None:
        text = (
            f"the checkpoint prescribes a KV dtype that is not known: {unknown_word}; the model dtype is used"
        )
        dtype_notes = (*dtype_notes, Note("kv_dtype_unknown", "warning", text, (("field", unknown_word),)))
    return ModelArchitecture(
        model_type=model_type,
        architecture=_architecture_name(config, view),
        layers=layers,
        num_layers=count,
        model_dtype=dtype,
        mtp_layers=mtp,
        num_attention_heads=query_heads(view) if any(k not in _STATE_KINDS for k in kinds) else None,
        context_limit_tokens=context_limit(view),
        encoder_tokens=view.optional_count("max_source_positions", high=MAX_WINDOW)
        if row.reader == "encoder_decoder"
        else None,
        encoder_only=row.encoder_only,
        is_encoder_decoder=row.reader == "encoder_decoder",
        prescribed_kv_dtype=prescribed,
        prescribed_by=prescribed_by,
        modelopt_kv_dtype=modelopt_kv_dtype(view, quantization),
        fields=tuple(log.used.items()),
        notes=(*dtype_notes, *_reading_notes(view, row, log, count)),
        dimensions=tower_dimensions(config, view),
    )


def _outer_encoder(config: Mapping[str, object]) -> str:
    """Return the model type of an encoder whose text part is described inside it (SigLIP), or nothing."""
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type_row(model_type).encoder_only:
        return model_type
    return ""


def _effective_row(view: ConfigView, row: ModelTypeRow) -> ModelTypeRow:
    """Let switches of the config overrule the row: an encoder used as decoder, an encoder-decoder pair."""
    if row.refused:
        raise UnknownArchitectureError(
            f"model type {row.model_type} is not supported: the rules of {row.refused} are not known",
            hint="the theory of its cache is welcome, see CONTRIBUTING.md",
            field="model_type",
        )
    if row.encoder_only and view.flag("is_decoder", default=False):
        return replace(row, encoder_only=False, multi_head_default=True)
    paired = view.path.endswith("decoder.") and view.outer[0].mentions("encoder")
    said = any(level.values.get("is_encoder_decoder") is True for level in (view, *view.outer))
    if paired or (said and not row.encoder_only):
        return replace(row, reader="encoder_decoder")
    return row


def _check_needs(view: ConfigView, row: ModelTypeRow) -> None:
    """Refuse a file that lost what tells this design from a plainer one."""
    for need in row.needs:
        names = need.split("|")
        if need == "kv_lora_rank" and not view.flag("use_mla", default=True):
            continue
        if not any(_answered(view, name) for name in names):
            names = [name.rstrip("?!") for name in names]
            where = f", which {row.model_type} can't be read without"
            text = " or ".join(view.path + name for name in names)
            raise MissingFieldError(
                f"the config has no {text}{where}",
                hint=f"add it to the file or pass --override {view.path}{names[0]}=VALUE",
                field=view.path + names[0],
            )
    rope_only = view.has("qk_nope_head_dim") or view.has("q_lora_rank")
    plain_keys = not view.mentions("kv_lora_rank") and not view.mentions("compress_ratios")
    if rope_only and plain_keys and not row.known:
        raise view.missing("kv_lora_rank", "the other fields of latent attention go with")


def _answered(view: ConfigView, name: str) -> bool:
    """Whether a needed field is there: ``?`` lets null count, ``!`` lets a class default not count."""
    plain = name.rstrip("?!")
    if name.endswith("!"):
        return view.has(plain)
    return view.find(plain) is not None or (name.endswith("?") and view.mentions(plain))


#: Fields that say how often layers are run again; every pass would keep a cache of its own.
_LOOP_FIELDS = ("n_recurrent_loops", "loop_num_passes", "num_loops", "total_ut_steps", "H_cycles")

_STATE_KINDS = STATE_KINDS | {LayerKind.NONE, LayerKind.SHARED}


_LAYER_LISTS = (
    "layer_types",
    "layers_block_type",
    "compress_ratios",
    "hybrid_layer_pattern",
    "attn_type_list",
)


def _longer_lists(view: ConfigView, num_layers: int) -> tuple[Note, ...]:
    """Say when a list names more layers than the model and its multi-token prediction have."""
    predicted = view.optional_count("num_nextn_predict_layers", low=0) or 0
    notes: list[Note] = []
    for name in _LAYER_LISTS:
        entries = view.values.get(name)
        if isinstance(entries, list) and len(entries) > num_layers + predicted:
            text = (
                f"{view.path}{name} has {len(entries)} entries; those beyond {num_layers} layers are left out"
            )
            values = (
                ("field", view.path + name),
                ("entries", str(len(entries))),
                ("layers", str(num_layers)),
            )
            notes.append(Note("list_longer_than_layers", "warning", text, values))
    return tuple(notes)


def _check_language_model(view: ConfigView, row: ModelTypeRow) -> None:
    """Refuse what is no model, encoders of unknown types, and looped models of unknown design."""
    if "peft_type" in view.values or "_diffusers_version" in view.values or "_class_name" in view.values:
        raise UnknownArchitectureError(
            "this is the config of an adapter or of a diffusion pipeline, not of a language model",
            hint="give the config.json of the base model",
            field="peft_type" if "peft_type" in view.values else "_class_name",
        )
    for name in _LOOP_FIELDS:
        if row.reader != "looped" and (view.optional_count(name, low=0) or 0) > 1:
            raise UnknownArchitectureError(
                f"{view.path}{name} says that layers run more than once, in a design that is not known",
                hint="each pass keeps a cache of its own; size one pass with --override " + f"{name}=1",
                field=view.path + name,
            )
    if row.known or not view.values.get("architectures"):
        return
    names = view.values["architectures"]
    name = names[0] if isinstance(names, list) and names else ""
    encoder_like = ("ForMaskedLM", "ForSequenceClassification", "ForImageClassification", "VisionModel")
    if isinstance(name, str) and name.endswith(encoder_like):
        raise UnknownArchitectureError(
            f"{short(name)} is not a decoder, and its model type is not known",
            hint="kvgauge sizes the cache of generating models",
            field="architectures",
        )


def _no_cache(view: ConfigView) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    from kvgauge.layers import Mechanism  # noqa: PLC0415
    from kvgauge.readers.hf.patterns import layer_count  # noqa: PLC0415

    count = layer_count(view) or 0
    return tuple(LayerCache(i, LayerKind.NONE, Mechanism.NONE) for i in range(count)), (), count


def _architecture_name(config: Mapping[str, object], view: ConfigView) -> str:
    for source in (config, view.values):
        names = source.get("architectures")
        if isinstance(names, list) and names and isinstance(names[0], str):
            return names[0][:200]
    return ""


def model_dtype(view: ConfigView) -> tuple[str, tuple[Note, ...]]:
    """Return the canonical dtype of activations, and a note where it had to be assumed."""
    for name in ("dtype", "torch_dtype"):
        word = view.text(name)
        if word is None or word == "auto":
            continue
        try:
            dtype = canonical_dtype(word)
        except InvalidRequestError as error:
            raise InvalidFieldError(
                f"{view.path}{name}: {error.message}", hint=error.hint, field=view.path + name
            ) from None
        if dtype.startswith("fp8"):
            continue  # weights in fp8 run with 16-bit activations
        return dtype, ()
    message = "the config states no dtype; bf16 is assumed for whatever follows the model dtype"
    return "bf16", (Note("dtype_assumed", "info", message),)


def context_limit(view: ConfigView) -> int | None:
    """Return the longest context the model was made for, or None."""
    found = view.find("max_position_embeddings")
    if found is None or not isinstance(found[1], int) or isinstance(found[1], bool) or found[1] < 1:
        return None
    return min(found[1], MAX_WINDOW)


def _reading_notes(view: ConfigView, row: ModelTypeRow, log: ReadLog, num_layers: int) -> tuple[Note, ...]:
    notes: list[Note] = []
    if not row.known:
        name = row.model_type or "(none)"
        notes.append(
            Note(
                "inferred",
                "warning",
                f"model type {name} is not known; read from its shape fields alone",
                (("model_type", name),),
            )
        )
    notes.extend(_longer_lists(view, num_layers))
    if any(level.mentions("talker_config") for level in view.outer):
        text = "only the language model that writes text is counted, not the talker beside it"
        notes.append(Note("other_stacks", "info", text))
    if row.encoder_only:
        notes.append(Note("no_cache", "info", "an encoder keeps no cache between tokens"))
    implied = {path: value for path, value in log.defaulted.items() if not isinstance(value, bool)}
    if implied:
        text = ", ".join(f"{path} = {value}" for path, value in sorted(implied.items()))
        notes.append(
            Note(
                "class_defaults",
                "info",
                f"the file omits fields that equal the defaults of its class: {text}",
                (("fields", text),),
            )
        )
    return tuple(notes)
