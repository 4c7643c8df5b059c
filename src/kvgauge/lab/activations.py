"""``learn activations``: the life of the activations of a model's layers, for a context and a dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.dtypes import canonical_dtype
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.lab.element import plain_element
from kvgauge.lab.layer_shape import LayerShape, layer_shape
from kvgauge.lab.life import Activation, Fate, Peak, activations, peak
from kvgauge.lab.mixers import Recurrence, SideBySide
from kvgauge.models import Model, ModelLike, load
from kvgauge.sizing import size
from kvgauge.units import parse_tokens
from kvgauge.weighing import decoder_shapes
from kvgauge.weights import Part, TensorFamily

if TYPE_CHECKING:
    from kvgauge.lab.folder import Folder
    from kvgauge.lab.measuring import Measured

#: Tokens of the sequence where none are asked for; fewer where they are run.
DEFAULT_TOKENS, DEFAULT_MEASURED_TOKENS = 32_768, 64
MAX_TOKENS, MAX_MEASURED_TOKENS = 1 << 30, 1024
#: The dtype that the decoder computes in.
MEASURED_DTYPE = "fp32"
_NOT_OF_DECODER = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR, Part.MTP})


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass of one sequence through one layer.

    Args:
        encoder: positions of the encoder's output, 0 where there is none.
        measured: the same as the decoder ran it, None where it was not run.
    """

    queries: int
    keys: int
    encoder: int
    made: tuple[Activation, ...]
    plain_peak: Peak
    flash_peak: Peak
    measured: Measured | None = None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "queries": self.queries,
            "keys": self.keys,
            "encoder": self.encoder,
            "activations": [one.to_dict() for one in self.made],
            "peak": self.plain_peak.to_dict(),
            "peak_with_flash_attention": self.flash_peak.to_dict(),
            "measured": self.measured.to_dict() if self.measured else None,
        }


@dataclass(frozen=True, slots=True)
class LayerLife:
    """Layers of one shape.

    Args:
        cached_bytes: what one of them keeps of the whole context, as ``size`` counts it.
    """

    indices: tuple[int, ...]
    shape: LayerShape
    prefill: Pass
    decode: Pass
    cached_bytes: int

    @property
    def passed_on_bytes(self) -> int:
        """What one of them hands to the next in decode."""
        return next(one.size_bytes for one in self.decode.made if one.life.fate is Fate.PASSED_ON)

    @property
    def fates(self) -> dict[str, int]:
        """How many activations of a prefill meet each fate; outputs of norms are not counted."""
        counted = {fate.value: 0 for fate in Fate}
        for one in self.prefill.made:
            counted[one.life.fate.value] += "normed" not in one.life.name
        return counted

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "layers": list(self.indices),
            "window_tokens": self.shape.window_tokens,
            "fates": self.fates,
            "cached_bytes": self.cached_bytes,
            "passed_on_bytes": self.passed_on_bytes,
            "prefill": self.prefill.to_dict(),
            "decode": self.decode.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class ActivationsAnswer:
    """The answer of ``learn activations``."""

    name: str
    model: Model
    tokens: int
    dtype: str
    element_bytes: int
    groups: tuple[LayerLife, ...]
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_activations/1`` object."""
        return {
            "schema": "kvgauge.learn_activations/1",
            "model": {**self.model.to_dict(), "id": self.name},
            "request": {
                "context_tokens": self.tokens,
                "dtype": self.dtype,
                "element_bytes": self.element_bytes,
            },
            "groups": [group.to_dict() for group in self.groups],
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_activations(
    model: ModelLike,
    *,
    tokens: int | str | None = None,
    dtype: str | None = None,
    measure: bool = False,
    offline: bool = False,
) -> ActivationsAnswer:
    """Return what each layer of a model makes in a forward pass, and what becomes of it.

    Args:
        model: as for ``load``; ``kvgauge-lab`` is the small model that ships.
        tokens: of one sequence: a prefill of all of them, then a decode step whose token is the last of them.
        dtype: of all activations and of the cache; None is the model's own.
        measure: run the model, a folder of the Llama or Qwen3 kind, and note what its layers make.

    Raises:
        KvgaugeError: the model is refused, none of its layers is described here, the dtype has no whole
            bytes, or the tokens are none or too many.

    >>> answer = learn_activations("Qwen/Qwen3-8B", tokens="32k")
    >>> answer.groups[0].fates
    {'cached': 2, 'state': 0, 'passed_on': 1, 'residual': 2, 'discarded': 10}
    """
    count = _count(tokens, measure=measure)
    folder, found, shown = _find(model, measure=measure, offline=offline)
    if measure and dtype is not None and canonical_dtype(dtype) != canonical_dtype(MEASURED_DTYPE):
        raise InvalidRequestError(
            f"--measure computes in {MEASURED_DTYPE}, not in {dtype}", hint="leave --dtype out", field="dtype"
        )
    own = MEASURED_DTYPE if measure else found.architecture.model_dtype
    name, element_bytes = plain_element(dtype or own)
    groups, missing = _groups(found, count, name, element_bytes)
    if not groups:
        raise FeatureUnsupportedError(
            f"none of the {found.architecture.num_layers} layers is of a kind that is described here",
            hint="kvgauge explain shows what its layers keep",
        )
    if folder is not None:
        groups = _measured(folder, count, groups)
    return ActivationsAnswer(shown, found, count, name, element_bytes, groups, _notes(groups, missing))


def _count(tokens: int | str | None, *, measure: bool) -> int:
    default, limit = (
        (DEFAULT_MEASURED_TOKENS, MAX_MEASURED_TOKENS) if measure else (DEFAULT_TOKENS, MAX_TOKENS)
    )
    count = default if tokens is None else parse_tokens(tokens)
    if not 0 < count <= limit:
        raise InvalidRequestError(
            f"--tokens {count} is out of range", hint=f"1 to {limit} tokens", field="tokens"
        )
    return count


def _find(model: ModelLike, *, measure: bool, offline: bool) -> tuple[Folder | None, Model, str]:
    """Return the folder to be run, the model, and its name."""
    from kvgauge.lab.shipped import SHIPPED, SHIPPED_NAME  # noqa: PLC0415 - light

    is_shipped = model == SHIPPED_NAME
    place = SHIPPED if is_shipped else model
    if measure:
        from kvgauge.lab.extra import require  # noqa: PLC0415

        require("--measure", ("numpy",))
        from kvgauge.lab.folder import open_folder  # noqa: PLC0415 - NumPy

        if not isinstance(place, str | Path):
            raise InvalidRequestError("--measure runs a folder", hint="give its path", field="model")
        folder = open_folder(place)
        return folder, folder.model, SHIPPED_NAME if is_shipped else folder.model.raw.id
    found = load(place, offline=offline)
    return None, found, SHIPPED_NAME if is_shipped else found.raw.id


def _groups(model: Model, tokens: int, dtype: str, element_bytes: int) -> tuple[tuple[LayerLife, ...], int]:
    """Return layers by shape, and how many have none."""
    architecture, families = model.architecture, _families(model)
    if not families:
        raise FeatureUnsupportedError(
            "the shapes of the model's weights are not known, and its FFNs follow from them",
            hint="give a folder that holds the weights",
        )
    hidden = next((family.shape[1] for family in families if family.part is Part.EMBEDDING), 0)
    kept, encoder = _kept_bytes(model, tokens, dtype)
    told = model.raw.config.get("use_parallel_residual") is True
    by_shape: dict[tuple[LayerShape, int], list[int]] = {}
    missing = 0
    for index in sorted({layer.index for layer in architecture.layers}):
        shape = layer_shape(index, architecture, families, hidden, is_told_parallel=told) if hidden else None
        if shape is None:
            missing += 1
        else:
            by_shape.setdefault((shape, kept.get(index, 0)), []).append(index)
    groups = (
        _life(shape, tuple(indices), tokens, element_bytes, cached, encoder)
        for (shape, cached), indices in by_shape.items()
    )
    return tuple(groups), missing


def _kept_bytes(model: Model, tokens: int, dtype: str) -> tuple[Mapping[int, int], int]:
    """Return what ``size`` says each layer keeps, its caches together, and the encoder's positions."""
    kept: dict[int, int] = {}
    answer = size(model, context=tokens, kv_dtype=dtype, no_weights=True)
    for layer in answer.cache.layers:
        kept[layer.index] = kept.get(layer.index, 0) + layer.total_bytes
    return kept, answer.request.workload.encoder_tokens


def _families(model: Model) -> tuple[TensorFamily, ...]:
    stored = model.weighed.stored
    families = decoder_shapes(model.raw) if stored is None else (each.family for each in stored.families)
    return tuple(family for family in families if family.part not in _NOT_OF_DECODER)


def _life(
    shape: LayerShape, indices: tuple[int, ...], tokens: int, element_bytes: int, cached: int, encoder: int
) -> LayerLife:
    seen = tokens if shape.window_tokens is None else min(tokens, shape.window_tokens)
    prefill = _pass(shape, tokens, tokens, element_bytes, encoder, decode=False)
    decode = _pass(shape, 1, seen, element_bytes, encoder, decode=True)
    return LayerLife(indices, shape, prefill, decode, cached)


def _pass(
    shape: LayerShape, queries: int, keys: int, element_bytes: int, encoder: int, *, decode: bool
) -> Pass:
    mixer = shape.mixer.recurrence if isinstance(shape.mixer, SideBySide) else shape.mixer
    state_bytes = plain_element(mixer.state_dtype)[1] if isinstance(mixer, Recurrence) else 0
    made = activations(
        shape, queries, keys, element_bytes, decode=decode, encoder=encoder, state_bytes=state_bytes
    )
    return Pass(queries, keys, encoder, made, peak(made, flash=False), peak(made, flash=True))


def _measured(folder: Folder, tokens: int, groups: tuple[LayerLife, ...]) -> tuple[LayerLife, ...]:
    """Return the groups with what the decoder made of them."""
    from kvgauge.lab.measuring import compare, run_measured  # noqa: PLC0415 - NumPy

    run = run_measured(folder, tokens)
    return tuple(
        replace(
            group,
            prefill=replace(group.prefill, measured=compare(run.prefill, group.indices, group.prefill.made)),
            decode=replace(group.decode, measured=compare(run.decode, group.indices, group.decode.made)),
        )
        for group in groups
    )


def _notes(groups: tuple[LayerLife, ...], missing: int) -> tuple[Note, ...]:
    found = []
    if missing:
        message = f"layers left out: {missing}; they are of kinds that are not described here"
        found.append(Note("layers_left_out", "info", message, (("count", str(missing)),)))
    if any(group.shape.norms_elsewhere for group in groups):
        message = "this model has norms behind attention and FFN; one before each is shown"
        found.append(Note("norms_elsewhere", "info", message))
    return tuple(found)
