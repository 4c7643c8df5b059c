"""What a model weighs, from the best that is known of it: its tensors, else its config's shapes and scheme.

Weights that can't be known are None with a note that says why; a cache is sized without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import Experts
from kvgauge.errors import FeatureUnsupportedError, KvgaugeError
from kvgauge.readers import is_gguf
from kvgauge.sources import RawModel
from kvgauge.stored_weights import StoredWeights
from kvgauge.weight_answer import WeightAnswer, WhatIf
from kvgauge.weights import ModelWeights, TensorFamily
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvgauge.engines.llamacpp_weights import GgufLayout
    from kvgauge.sharding import ShardPolicy
    from kvgauge.sources.weight_files import Progress

#: Sources that say how every tensor is stored. A stated total does not; nor do a GGUF's metadata alone, whose
#: mix may have been made with an importance matrix.
_TOLD = ("config", "safetensors", "gguf")
_DEFAULTS = "class_defaults"
#: A plain dtype in the words of llama.cpp's mixes.
_PLAIN_MIXES = {"fp16": "f16", "bf16": "bf16", "fp32": "f32"}
#: Notes that say the bytes rest on something that nobody states.
_ASSUMING = frozenset({"kept_layers_assumed", "group_size_assumed", "gguf_head_assumed"})


class Weighed(NamedTuple):
    """The weights of a model, or why there are none."""

    stored: StoredWeights | None
    notes: tuple[Note, ...] = ()
    what_if: WhatIf | None = None
    layout: GgufLayout | None = None


def answer_weights(
    model: Weighable,
    parallelism: Parallelism,
    *,
    scheme: str | None,
    mtp: bool,
    cut: Callable[[Experts], ShardPolicy | None] | None = None,
    like: WeightAnswer | None = None,
) -> tuple[WeightAnswer | None, tuple[Note, ...]]:
    """Return the weights of an answer and what to say about them.

    Args:
        scheme: a quantisation asked for with ``--weights``; None is the one that the model has.
        cut: how an engine cuts weights over ranks, once their experts are known.
        like: the answer to a like question; where it is equal, it is taken, with what it has worked out.

    Raises:
        KvgaugeError: the scheme is not known or not possible, or a shape can't be divided over the ranks.
    """
    if scheme is None:
        stored, notes, what_if, layout = model.weighed
        is_told = stored is None or stored.source in (("gguf",) if is_gguf(model.raw.config) else _TOLD)
        is_told = is_told and not any(note.code in _ASSUMING for note in notes)
        grade = "exact" if is_told else "assumed"
    else:
        stored, notes, what_if, layout = model.weighed_as(scheme)
        grade = "assumed"
    if stored is None:
        return None, notes
    if mtp and not stored.mtp_families:
        text = "multi-token prediction: its cache is counted, its weights are not known"
        notes = (*notes, Note("mtp_weights_unknown", "warning", text))
    policy = None if cut is None or layout is not None else cut(_experts(stored, model.raw.config))
    answer = WeightAnswer(stored, model.architecture, parallelism, mtp, grade, what_if, layout, policy)
    if like is not None and answer == like:
        answer = like
    _ = answer.per_rank_bytes  # refuses an impossible split now, not when it is printed
    return answer, (*notes, *_loaded_notes(stored, policy))


def _loaded_notes(stored: StoredWeights, policy: ShardPolicy | None) -> tuple[Note, ...]:
    """Say that ranks hold less than the file where the engine loads its weights in a narrower dtype."""
    cast = {} if policy is None else policy.loaded_as
    kept = sorted({item.format.name for item in stored.families} & set(cast))
    return tuple(
        Note(
            "weights_loaded_as",
            "info",
            f"the engine loads {name} weights in {cast[name]}: a rank holds them so, not as they are stored",
            (("stored", name), ("loaded", cast[name])),
        )
        for name in kept
    )


def _experts(stored: StoredWeights, config: Mapping[str, object]) -> Experts:
    """Return what an engine's expert kernels depend on."""
    count = max((item.family.num_experts for item in stored.families), default=0)
    inner = config.get("text_config")
    parts = [part for part in (inner, config) if isinstance(part, Mapping)]
    words = [part.get(name) for part in parts for name in ("hidden_activation", "hidden_act")]
    return Experts(count, next((word for word in words if isinstance(word, str)), "silu"))


class Weighable(Protocol):
    """A model whose weights can be asked for."""

    @property
    def raw(self) -> RawModel: ...  # noqa: D102
    @property
    def architecture(self) -> ModelArchitecture: ...  # noqa: D102
    @property
    def weighed(self) -> Weighed: ...  # noqa: D102
    @property
    def families(self) -> ModelWeights | None: ...  # noqa: D102
    def weighed_as(self, scheme: str) -> Weighed: ...  # noqa: D102


def read_families(raw: RawModel) -> ModelWeights | None:
    """Return the tensors of a model, by the shapes that its config or its GGUF states; None: not known.

    Raises:
        KvgaugeError: the shapes can't be understood; says why.
    """
    if is_gguf(raw.config):
        from kvgauge.gguf_weights import gguf_families  # noqa: PLC0415 - one dialect is loaded

        return gguf_families(raw.config, raw.tensors)
    from kvgauge.readers.hf.weights import read_weights  # noqa: PLC0415 - one dialect is loaded

    return read_weights(raw.config)


def weigh_as(model: Weighable, word: str) -> Weighed:
    """Return the weights in a scheme that the model need not be published in.

    Raises:
        KvgaugeError: the scheme is not known, or the model's tensors are not.
    """
    from kvgauge.what_if import parse_scheme, reweigh  # noqa: PLC0415 - few ask

    raw, architecture = model.raw, model.architecture
    scheme = parse_scheme(word)
    if is_gguf(raw.config) and scheme.is_plain:
        # llama-quantize keeps norms and routers in f32 whatever the dtype of the rest
        scheme = replace(scheme, word=_PLAIN_MIXES[scheme.word], is_plain=False, is_ggml=True)
    weights = model.families
    if weights is None:
        raise FeatureUnsupportedError(
            f"--weights {word[:40]}: {_why_unknown(raw, architecture)}",
            hint="leave --weights out",
            field="weights",
        )
    stored = reweigh(
        weights, scheme, architecture.model_dtype, lambda asked: _mixed(raw, weights, asked.word)
    )
    asked = WhatIf(raw.id, scheme, weights, architecture.model_dtype)
    return Weighed(stored, stored.notes, asked, _layout(raw))


def _mixed(raw: RawModel, weights: ModelWeights, mix: str) -> StoredWeights:
    """Return what a mix of llama.cpp makes of a model."""
    if is_gguf(raw.config):
        from kvgauge.ggml_mixes import price_mix  # noqa: PLC0415
        from kvgauge.gguf_weights import mix_model  # noqa: PLC0415 - one dialect is loaded

        return price_mix(weights, mix, mix_model(raw.config))
    from kvgauge.gguf_from_config import mix_of_config  # noqa: PLC0415 - few ask

    return mix_of_config(weights, raw.config, mix)


def _layout(raw: RawModel) -> GgufLayout | None:
    if not is_gguf(raw.config):
        return None
    from kvgauge.gguf_weights import gguf_layout  # noqa: PLC0415 - one dialect is loaded

    return gguf_layout(raw.config)


def weigh(model: Weighable, progress: Progress | None = None) -> Weighed:
    """Return the weights of a model as it is published.

    Args:
        progress: told of weight files as their headers are read.

    Raises:
        DamagedFileError: a weight file that the user named is damaged.
    """
    raw = model.raw
    if is_gguf(raw.config):
        return _weighed(lambda: _from_gguf(raw), model)._replace(layout=_layout(raw))
    held = Weighed(None) if raw.overrides else _from_files(model, progress)
    if held.stored is not None:
        return held
    stored, notes, *_ = _weighed(lambda: _from_config(model), model)
    return Weighed(stored, (*held.notes, *notes))


def decoder_shapes(raw: RawModel) -> tuple[TensorFamily, ...]:
    """Return the tensors of the decoder as the config implies them, none where it does not.

    What a checkpoint stores them in, and how large its towers are, need not be known.
    """
    from kvgauge.readers.hf.weights import read_decoder  # noqa: PLC0415 - one dialect is loaded

    try:
        return () if is_gguf(raw.config) else read_decoder(raw.config)
    except KvgaugeError:
        return ()


def _weighed(read: Callable[[], StoredWeights | None], model: Weighable) -> Weighed:
    """Return what is read, or a note that says why it can't be."""
    try:
        stored = read()
    except KvgaugeError as error:
        return Weighed(None, (_unknown(error.message),))
    if stored is None:
        return Weighed(None, (_unknown(_why_unknown(model.raw, model.architecture)),))
    return Weighed(stored, _not_said(stored.notes, model.architecture))


def _why_unknown(raw: RawModel, architecture: ModelArchitecture) -> str:
    """Return what is missing of a model whose tensors are not known."""
    if not is_gguf(raw.config):
        from kvgauge.readers.hf.weights import why_unknown  # noqa: PLC0415 - one dialect is loaded

        why = why_unknown(raw.config)
        if why:
            return why
    return f"the tensors of {architecture.model_type or 'this type'} are not known"


def _not_said(notes: tuple[Note, ...], architecture: ModelArchitecture) -> tuple[Note, ...]:
    """Leave out class defaults that the cache's own note names."""
    said = {field for note in architecture.notes for field in _defaults_named(note)}
    kept = []
    for note in notes:
        named = _defaults_named(note)
        left = ", ".join(field for field in named if field not in said)
        if not named:
            kept.append(note)
        elif left:
            text = note.message.replace(", ".join(named), left)
            kept.append(note._replace(message=text, values=(("fields", left),)))
    return tuple(kept)


def _defaults_named(note: Note) -> list[str]:
    return dict(note.values)["fields"].split(", ") if note.code == _DEFAULTS else []


def _from_files(model: Weighable, progress: Progress | None) -> Weighed:
    """Return the weights that lie beside the config, or none with notes."""
    raw, architecture = model.raw, model.architecture
    found = raw.weight_files.read(progress) if raw.weight_files is not None else None
    if found is None:
        return Weighed(None)
    from kvgauge.file_weights import weights_from_files  # noqa: PLC0415 - few models have files

    try:
        weights = model.families
    except KvgaugeError:
        weights = None  # the tensors speak for themselves
    stored, notes = weights_from_files(found, weights, architecture.num_layers, architecture.model_dtype)
    if stored is not None and stored.source == "index":
        from kvgauge.stated_total import with_parts  # noqa: PLC0415 - headers say more

        config = _weighed(lambda: _from_config(model), model).stored
        split = with_parts(stored, config) if config is not None else None
        return Weighed(split, split.notes) if split is not None else Weighed(stored, notes)
    return Weighed(stored, notes)


def _unknown(why: str) -> Note:
    text = f"the weights are not counted: {why}"
    return Note("weights_unknown", "info", text, (("why", why),))


def _from_config(model: Weighable) -> StoredWeights | None:
    from kvgauge.readers.hf.schemes import stored_weights  # noqa: PLC0415 - one dialect is loaded

    weights = model.families
    if weights is None:
        return None
    raw = model.raw
    stored = stored_weights(weights, raw.config, raw.quantization, model.architecture.model_dtype)
    return replace(
        stored,
        num_parameters=weights.num_parameters,
        num_active_parameters=weights.num_active_parameters,
    )


def _from_gguf(raw: RawModel) -> StoredWeights | None:
    from kvgauge.gguf_weights import gguf_weights  # noqa: PLC0415 - one dialect is loaded

    return gguf_weights(raw.config, raw.tensors)
