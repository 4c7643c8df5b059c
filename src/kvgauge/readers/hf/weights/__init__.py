"""Read the tensors that a config alone implies: a few families, exact, or nothing for an unknown type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from kvgauge.architecture import Note
from kvgauge.errors import InvalidFieldError
from kvgauge.readers.hf.config import ConfigView, ReadLog, short
from kvgauge.readers.hf.mixers.latent import is_latent
from kvgauge.readers.hf.nesting import is_abbreviated, language_view
from kvgauge.readers.hf.patterns import read_pattern
from kvgauge.readers.hf.rows import ModelTypeRow, class_defaults, model_type_row
from kvgauge.readers.hf.weights.decoder import DecoderLayers
from kvgauge.readers.hf.weights.defaults import weight_defaults
from kvgauge.readers.hf.weights.drafts import draft_type
from kvgauge.readers.hf.weights.stacks import Stack, Trace, stack_families, tower_layers
from kvgauge.readers.hf.weights.symbols import MAIN_SIZES, Symbols
from kvgauge.readers.hf.weights.tables import StackRow, WeightRow, weight_row
from kvgauge.readers.values import MAX_LAYERS, as_count, is_int
from kvgauge.weights import ModelWeights, Part, TensorFamily, WeightShard


class _NotKnownError(Exception):
    """The tensors of a config are not known; says why."""


def read_weights(config: Mapping[str, object]) -> ModelWeights | None:
    """Return the tensor families of a config, or None where the tensors of its model type are not known.

    Raises:
        UnknownArchitectureError, MissingFieldError, InvalidFieldError: the config can't be understood.
    """
    try:
        return _read(config)
    except _NotKnownError:
        return None


def read_decoder(config: Mapping[str, object]) -> tuple[TensorFamily, ...]:
    """Return the tensor families of the decoder alone, none where they are not known.

    They may be known where a tower is not: a file may leave that out.

    Raises:
        UnknownArchitectureError, MissingFieldError, InvalidFieldError: as ``read_weights``.
    """
    try:
        return _read(config, with_towers=False).families
    except _NotKnownError:
        return ()


def why_unknown(config: Mapping[str, object]) -> str:
    """Return why ``read_weights`` knows no tensors, in words; "" where it does.

    Raises:
        UnknownArchitectureError, MissingFieldError, InvalidFieldError: as ``read_weights``.
    """
    try:
        _read(config)
    except _NotKnownError as error:
        return str(error)
    return ""


def weight_fields(config: Mapping[str, object]) -> Trace:
    """Return the config fields behind each tensor's shape: its name -> dotted path -> value.

    Raises:
        UnknownArchitectureError, MissingFieldError, InvalidFieldError: as ``read_weights``.
    """
    trace: Trace = {}
    with suppress(_NotKnownError):
        _read(config, trace)
    return trace


def _read(
    config: Mapping[str, object], trace: Trace | None = None, *, with_towers: bool = True
) -> ModelWeights:
    view, model_type = language_view(config, ReadLog())
    top_type = config.get("model_type") if view.path else model_type
    row = weight_row(top_type) if isinstance(top_type, str) else None
    own_type = model_type
    if row is not None and not view.path and row.text_type:
        own_type = str(class_defaults(row.model_type).get("_text") or row.text_type)
        model_type = row.text_type
    made_of = row.nested.get(model_type, model_type) if row is not None else model_type
    draft = draft_type(view, model_type)
    if draft == "":
        raise _NotKnownError("it is a draft for speculative decoding, whose file does not tell its tensors")
    text_row = (
        row if draft is None and (row is None or made_of == row.model_type) else weight_row(draft or made_of)
    )
    if row is None or (text_row is None and row.text):
        kind = top_type if row is None and isinstance(top_type, str) else model_type
        name = short(kind).strip("'\"")
        text = f"the tensors of {name} are not known" if name else "the file names no model type"
        raise _NotKnownError(text)
    families: list[TensorFamily] = []
    mtp: list[TensorFamily] = []
    implied: dict[str, object] = {}
    if text_row is not None and row.text:
        tied = _tied(config, row, text_row, view)
        own: Trace | None = None if trace is None else {}
        decoder, mtp = _text_families(view, (model_type, own_type), text_row, tied, own, implied)
        families += _prefixed(decoder, row.prefix)
        if trace is not None and own is not None:
            trace.update({row.prefix + name: fields for name, fields in own.items()})
        mtp = _prefixed(mtp, row.prefix)
        _check_accounted(view, model_type_row(model_type), families)
    if not with_towers:
        return ModelWeights(tuple(families), tuple(mtp), _implied_notes(implied, view.log))
    top = ConfigView(config, view.log)
    stacks = (*row.stacks, *(text_row.stacks if text_row is not None and text_row is not row else ()))
    _check_towers(stacks, top, row.model_type)
    for stack in stacks:
        _check_kind(stack, top)
        families += _stack_families(stack, top, view, trace)
    return ModelWeights(tuple(families), tuple(mtp), _implied_notes(implied, view.log))


def _implied_notes(implied: dict[str, object], log: ReadLog) -> tuple[Note, ...]:
    """Name the main sizes that the file leaves to its class."""
    defaulted = log.defaulted.items()
    implied |= {path: value for path, value in defaulted if path.rpartition(".")[2] in MAIN_SIZES}
    if not implied:
        return ()
    text = ", ".join(f"{path} = {value}" for path, value in sorted(implied.items()))
    shown = f"the file omits fields that equal the defaults of its class: {text}"
    return (Note("class_defaults", "info", shown, (("fields", text),)),)


MAX_MTP_LAYERS = 100
_WIDTHS = ("moe_intermediate_size", "intermediate_size")
_EXPERT_COUNTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")


def _check_accounted(view: ConfigView, row: ModelTypeRow, families: list[TensorFamily]) -> None:
    """Refuse a config that speaks of what no tensor explains, as a file under a plainer type's name does."""
    field = _unaccounted(view, row, families)
    empty = next((name for name in _WIDTHS if view.values.get(name) == 0), None) if field else None
    if empty:
        raise _NotKnownError(f"{empty} is 0 in the file, and no tensor accounts for {field}")
    if field:
        raise _NotKnownError(f"no tensor known of {row.model_type} accounts for {field} in the file")


def _unaccounted(view: ConfigView, row: ModelTypeRow, families: list[TensorFamily]) -> str:
    parts = {family.part for family in families}
    counts = {name: view.values.get(name) for name in _EXPERT_COUNTS}
    field = next((name for name, count in counts.items() if is_int(count) and count > 1), "")
    if Part.EXPERTS not in parts and field:
        # Nemotron-H's class writes a number of experts into files of models without any.
        kinds = view.values.get("layers_block_type")
        if not isinstance(kinds, list | tuple) or "mlp" not in kinds or "moe" in kinds:
            return field
    words = "+".join(set(read_pattern(view, row).words)).split("+")
    if "conv" in words and Part.CONVOLUTION not in parts:
        return "convolution layers"
    if "state" in words and not parts & {Part.LINEAR_ATTENTION, Part.MAMBA, Part.CONVOLUTION}:
        return "recurrent layers"
    latent = is_latent(view) and not any(".kv_b_proj" in family.name for family in families)
    return "kv_lora_rank" if latent else ""


def _tied(config: Mapping[str, object], row: WeightRow, text_row: WeightRow, view: ConfigView) -> bool:
    """Whether the head is the embedding: what the file states, else what the model's code says."""
    stated = (config.get("tie_word_embeddings"), view.values.get("tie_word_embeddings"))
    strange = next((said for said in stated if said is not None and said not in (0, 1)), None)
    if strange is not None:
        name = "tie_word_embeddings"
        raise InvalidFieldError(f"{name} must be true or false, not {short(strange)}", field=name)
    said_so = [bool(said) for said in stated if said is not None]
    if row.text_ties:
        return any(said_so)
    code = (row.tied, text_row.tied, _tied_default(row), _tied_default(text_row))
    return next((said for said in (*said_so, *code) if isinstance(said, bool)), True)


def _tied_default(row: WeightRow) -> object:
    return weight_defaults(row.model_type).get("tie_word_embeddings")


def _text_families(
    view: ConfigView,
    types: tuple[str, str],
    row: WeightRow,
    tied: bool,
    trace: Trace | None,
    implied: dict[str, object],
) -> tuple[list[TensorFamily], list[TensorFamily]]:
    """Return the families of the decoder and those of its multi-token-prediction module.

    Args:
        types: the model type whose layers these are, and the one whose class has the defaults.
        implied: takes the main sizes that the file leaves to its class.
    """
    model_type, own_type = types
    defaults = _usable(view, own_type, row)
    cache_row = model_type_row(model_type)
    layers = DecoderLayers.of(view, cache_row, row.let, defaults)
    let = {"count": layers.count, **row.let, "tied": int(tied)}
    stack = Stack(view, row.blocks, let, defaults, row.rename, trace=trace, implied=implied)
    decoder = [_with_tie(family, tied) for family in stack_families(stack, layers)]
    return decoder, _mtp_families(replace(stack, blocks=row.mtp), row, layers)


def _usable(view: ConfigView, model_type: str, row: WeightRow) -> Mapping[str, object]:
    """Return the class defaults, main sizes None where the file is a full one: they are lost then."""
    defaults = weight_defaults(model_type) or weight_defaults(row.model_type)
    return _without_lost(defaults, view, model_type)


def _without_lost(defaults: Mapping[str, object], view: ConfigView, model_type: str) -> Mapping[str, object]:
    saved = view.path or view.mentions("transformers_version")
    if saved and is_abbreviated(view, model_type):
        return defaults
    return {name: None if name in MAIN_SIZES else value for name, value in defaults.items()}


def _mtp_families(stack: Stack, row: WeightRow, layers: DecoderLayers) -> list[TensorFamily]:
    modules = stack.view.optional_count("num_nextn_predict_layers", low=0, high=MAX_MTP_LAYERS)
    modules = row.mtp_default if modules is None else modules
    if not row.mtp or not modules:
        return []
    facts = layers.predicting()
    start = 0 if row.mtp_prefix else layers.count
    families: list[TensorFamily] = []
    for family in stack_families(stack, [(0, facts)] * modules):
        name = family.name.replace("model.layers.", row.mtp_prefix or "model.layers.")
        indices = tuple(start + index for index in family.layers)
        families.append(replace(family, name=name, part=Part.MTP, layers=indices))
    return families


def _with_tie(family: TensorFamily, tied: bool) -> TensorFamily:
    if (
        tied
        and family.part is Part.LM_HEAD
        and family.shard is WeightShard.VOCABULARY
        and len(family.shape) == 2
    ):
        return replace(family, tied_to="embedding")
    return family


def _prefixed(families: list[TensorFamily], prefix: str) -> list[TensorFamily]:
    """Put a composite's prefix before the names of its language model."""
    return [replace(family, name=prefix + family.name) for family in families] if prefix else families


def _check_kind(row: StackRow, top: ConfigView) -> None:
    """Refuse a part of a kind whose tensors are not known, where there are several."""
    section = top.section(row.section) if row.section and row.kinds else None
    kind = section.text(row.kind_field) if section is not None else None
    if kind is not None and kind not in row.kinds:
        raise _NotKnownError(f"the tensors of {row.section}.{row.kind_field} {short(kind)} are not known")


_TOWERS = ("vision_config", "audio_config")


def _tells_towers(top: ConfigView) -> bool:
    """Whether a file without one tower is whole: its class saved it, or it speaks of another."""
    return any(top.mentions(name) for name in ("transformers_version", *_TOWERS))


def _check_towers(stacks: Sequence[StackRow], top: ConfigView, model_type: str) -> None:
    """Refuse a file that describes a tower that is no part of what its type is known to be made of."""
    known = {row.section.partition(".")[0] for row in stacks}
    for name in _TOWERS:
        section = top.section(name) if name not in known else None
        if section is not None and section.values:
            raise _NotKnownError(f"{model_type} is not known with a {name}")


def _stack_families(
    row: StackRow, top: ConfigView, text: ConfigView, trace: Trace | None
) -> tuple[TensorFamily, ...]:
    section = top.section(row.section) if row.section else top
    if section is None and (top.mentions(row.section) or (row.optional and _tells_towers(top))):
        return ()
    if section is None and not top.mentions("transformers_version"):
        raise top.missing(row.section, "describes a part of the model")  # lost, not left to the class
    view = section or ConfigView({}, top.log, row.section + ".")
    let = {**_hidden(text), **row.let}
    defaults = weight_defaults(row.default_type)
    if view is top:
        defaults = _without_lost(defaults, view, row.default_type)
    stack = Stack(view, row.blocks, let, defaults, row.rename, top, trace)
    symbols = Symbols(view, let, {}, stack.defaults, top)
    count = as_count(symbols.evaluate(row.repeat), row.repeat, low=0, high=MAX_LAYERS) if row.repeat else 0
    return stack_families(stack, tower_layers(count, unlike=row.unlike))


def _hidden(text: ConfigView) -> dict[str, int]:
    """Return the width that projectors lead to; a file that has lost it has none, not 0."""
    width = text.optional_count("hidden_size")
    return {} if width is None else {"text_hidden": width}
