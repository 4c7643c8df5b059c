"""``learn activations``: the life of the activations of a model's layers, for a context and a dtype."""

from __future__ import annotations

from dataclasses import dataclass

from kvgauge.architecture import Note
from kvgauge.dtypes import canonical_dtype, row_bytes
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.lab.layer_shape import LayerShape, layer_shape
from kvgauge.lab.life import Activation, Fate, Peak, activations, peak
from kvgauge.layers import Role
from kvgauge.models import Model, ModelLike, load
from kvgauge.units import parse_tokens
from kvgauge.weights import Part, TensorFamily

#: Tokens of the sequence where none are asked for.
DEFAULT_TOKENS = 32_768
MAX_TOKENS = 1 << 30


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass of one sequence through one layer."""

    queries: int
    keys: int
    made: tuple[Activation, ...]
    plain_peak: Peak
    flash_peak: Peak

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "queries": self.queries,
            "keys": self.keys,
            "activations": [one.to_dict() for one in self.made],
            "peak": self.plain_peak.to_dict(),
            "peak_with_flash_attention": self.flash_peak.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class LayerLife:
    """Layers of one shape.

    Args:
        cached_bytes: what one of them keeps of the whole context: the horizontal use.
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
        """How many of the numbered activations meet each fate."""
        counted = dict.fromkeys((fate.value for fate in Fate), 0)
        for one in self.prefill.made:
            counted[one.life.fate.value] += 1 if one.life.number else 0
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
            "model": self.model.to_dict(),
            "request": {
                "context_tokens": self.tokens,
                "dtype": self.dtype,
                "element_bytes": self.element_bytes,
            },
            "groups": [group.to_dict() for group in self.groups],
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_activations(
    model: ModelLike, *, tokens: int | str | None = None, dtype: str | None = None, offline: bool = False
) -> ActivationsAnswer:
    """Return what each layer of a model makes in a forward pass, and what becomes of it.

    Args:
        tokens: of one sequence: a prefill of all of them, then a decode step whose token is the last of them.
        dtype: of all activations and of the cache; None is the model's own.

    Raises:
        KvgaugeError: the model is refused, none of its layers is plain attention, the dtype has no whole
            bytes, or the tokens are none or too many.

    >>> answer = learn_activations("Qwen/Qwen3-8B", tokens="32k")
    >>> answer.groups[0].fates
    {'residual': 2, 'discarded': 10, 'cached': 2, 'passed_on': 1}
    """
    found = load(model, offline=offline)
    count = DEFAULT_TOKENS if tokens is None else parse_tokens(tokens)
    if not 0 < count <= MAX_TOKENS:
        raise InvalidRequestError(
            f"--tokens {count} is out of range", hint=f"1 to {MAX_TOKENS} tokens", field="tokens"
        )
    name = canonical_dtype(dtype or found.architecture.model_dtype)
    element_bytes = _element_bytes(name)
    groups, missing = _groups(found, count, element_bytes)
    if not groups:
        raise FeatureUnsupportedError(
            f"none of the {found.architecture.num_layers} layers is plain attention with an FFN behind it",
            hint="kvgauge explain shows what its layers keep",
        )
    return ActivationsAnswer(found, count, name, element_bytes, groups, _left_out(missing))


def _element_bytes(dtype: str) -> int:
    size, rest = divmod(row_bytes(dtype, Role.KEY, 1, 64), 64)
    if rest or not size:
        raise FeatureUnsupportedError(
            f"activations are not held in {dtype}", hint="fp32, bf16, fp16 or fp8", field="dtype"
        )
    return size


def _groups(model: Model, tokens: int, element_bytes: int) -> tuple[tuple[LayerLife, ...], int]:
    """Return layers by shape, and how many have none."""
    architecture, families = model.architecture, _families(model)
    hidden = next((family.shape[1] for family in families if family.part is Part.EMBEDDING), 0)
    by_shape: dict[LayerShape, list[int]] = {}
    own = tuple(family for family in families if family.part in _OF_DECODER)
    missing = 0
    for index in sorted({layer.index for layer in architecture.layers}):
        shape = layer_shape(index, architecture, own, hidden) if hidden else None
        if shape is None:
            missing += 1
        else:
            by_shape.setdefault(shape, []).append(index)
    return tuple(_life(shape, tuple(n), tokens, element_bytes) for shape, n in by_shape.items()), missing


_OF_DECODER = frozenset({Part.MLP, Part.EXPERTS, Part.SHARED_EXPERTS})


def _families(model: Model) -> tuple[TensorFamily, ...]:
    stored = model.weighed.stored
    return tuple(each.family for each in stored.families) if stored is not None else ()


def _life(shape: LayerShape, indices: tuple[int, ...], tokens: int, element_bytes: int) -> LayerLife:
    seen = tokens if shape.window_tokens is None else min(tokens, shape.window_tokens)
    row = shape.kv_heads * (shape.key_width + shape.value_width) * element_bytes
    return LayerLife(
        indices,
        shape,
        _pass(shape, tokens, tokens, element_bytes),
        _pass(shape, 1, seen, element_bytes),
        row * shape.kept.rows(tokens),
    )


def _pass(shape: LayerShape, queries: int, keys: int, element_bytes: int) -> Pass:
    made = activations(shape, queries, keys, element_bytes)
    return Pass(queries, keys, made, peak(made, flash=False), peak(made, flash=True))


def _left_out(missing: int) -> tuple[Note, ...]:
    if not missing:
        return ()
    message = f"layers left out: {missing}; they are no plain attention with an FFN behind it"
    return (Note("layers_left_out", "info", message, (("count", str(missing)),)),)
