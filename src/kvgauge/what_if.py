"""What weights would weigh under a quantisation that the checkpoint does not have, and what that costs.

Which parts stay at 16 bit is a table (``parts`` of ``data/weight_schemes.json``) with a source for each row;
why, in both languages, is section ``weights_advice`` of the explanations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kvgauge.architecture import Note
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.values import dataclass
from kvgauge.weight_formats import WeightFormat, plain
from kvgauge.weight_schemes import Scheme, parse_scheme, scheme_table
from kvgauge.weights import ModelWeights, Part, TensorFamily

__all__ = ["AdviceRow", "Scheme", "parse_scheme", "reweigh", "sensitivity", "with_kept"]

#: What a mix of llama.cpp makes of a model; ``kvgauge.ggml_mixes`` has the rules.
Mix = Callable[[Scheme], StoredWeights]

_SIXTEEN_BIT = ("bf16", "f16")
_TABLES = (Part.EMBEDDING, Part.PER_LAYER_EMBEDDING)
#: Packers of integers want whole blocks of so many rows and columns; auto-round skips the rest.
_PACKED_MULTIPLE = 32
_REASONING_BITS = 4


def kept_dtype(model_dtype: str) -> str:
    """Return what "kept at 16 bit" means: the model's dtype, or bf16 where that has other than 16 bits."""
    return model_dtype if model_dtype in _SIXTEEN_BIT else "bf16"


def is_matrix(family: TensorFamily) -> bool:
    """Whether a family holds matrices that are multiplied or looked up: no norms, vectors or convolutions."""
    module = family.name.removesuffix(".weight").rpartition(".")[2]
    named = family.stacked or family.name.endswith(".weight")
    return len(family.shape) == 2 and named and "norm" not in module and family.part is not Part.NORM


def is_linear(family: TensorFamily) -> bool:
    """Whether a family is of Linear modules, which quantisers work on: no table that is looked up in."""
    module = family.name.removesuffix(".weight").rpartition(".")[2]
    return is_matrix(family) and module not in scheme_table()["looked_up"]


def is_quantised(family: TensorFamily, scheme: Scheme, model_dtype: str) -> bool:
    """Whether a scheme other than a mix stores a family quantised.

    Kept are the scheme's parts, whatever is no matrix, what a layout can't pack, and the few that would grow.
    """
    if family.part in scheme.keep:
        return False
    return _can_quantise(family, scheme.format, plain(kept_dtype(model_dtype)))


def _can_quantise(family: TensorFamily, layout: WeightFormat | None, kept: WeightFormat) -> bool:
    if layout is None or not is_matrix(family) or not (is_linear(family) or family.part in _TABLES):
        return False
    if layout.word_bits and any(size % _PACKED_MULTIPLE for size in family.shape):
        return False
    return layout.stored_bytes(family.shape) < kept.stored_bytes(family.shape)


def reweigh(weights: ModelWeights, scheme: Scheme, model_dtype: str, mix: Mix | None = None) -> StoredWeights:
    """Return the weights as a scheme would store them.

    Args:
        model_dtype: canonical dtype of the unquantised weights.
        mix: prices a mix of llama.cpp (``scheme.is_ggml``).

    Raises:
        FeatureUnsupportedError: a mix, where none can be priced.

    >>> from kvgauge.weights import TensorFamily
    >>> up = TensorFamily("layers.{layer}.mlp.up_proj.weight", (12288, 4096), Part.MLP, layers=(0, 1))
    >>> reweigh(ModelWeights((up,)), parse_scheme("int4"), "bf16").num_bytes  # 2 x 25952256
    51904512
    """
    if scheme.is_ggml:
        if mix is None:
            raise FeatureUnsupportedError(
                f"what {scheme.word} makes of this model is not known",
                hint="give a GGUF file of it: ORG/NAME:FILE.gguf",
                field="weights",
            )
        stored = with_kept(mix(scheme), scheme, model_dtype)
        return replace(stored, notes=(*stored.notes, *_notes(scheme, ())))
    families = tuple(_stored(weights.families, scheme, model_dtype))
    mtp_families = tuple(_stored(weights.mtp_families, scheme, model_dtype))
    return StoredWeights(
        families,
        mtp_families,
        "config",
        weights.num_parameters,
        weights.num_active_parameters,
        scheme.text,
        (*weights.notes, *_notes(scheme, (*families, *mtp_families))),
    )


def with_kept(mixed: StoredWeights, scheme: Scheme, model_dtype: str) -> StoredWeights:
    """Return a mix with the parts of ``keep=`` at 16 bit; what the mix leaves alone stays as it is."""
    kept = plain(kept_dtype(model_dtype))

    def raised(stored: StoredFamily) -> StoredFamily:
        is_packed = stored.format.row_block > 1
        return replace(stored, format=kept) if is_packed and stored.family.part in scheme.keep else stored

    return replace(
        mixed,
        families=tuple(raised(stored) for stored in mixed.families),
        mtp_families=tuple(raised(stored) for stored in mixed.mtp_families),
    )


def _stored(families: Iterable[TensorFamily], scheme: Scheme, model_dtype: str) -> Iterator[StoredFamily]:
    kept = plain(kept_dtype(model_dtype))
    for family in families:
        if scheme.is_plain and scheme.format is not None:
            yield StoredFamily(family, scheme.format)
        elif scheme.format is not None and is_quantised(family, scheme, model_dtype):
            for piece in _unfused(family, scheme.format):
                yield StoredFamily(piece, scheme.format)
        else:
            yield StoredFamily(family, kept)


def _unfused(family: TensorFamily, layout: WeightFormat) -> Iterator[TensorFamily]:
    """Yield the matrices that a quantiser makes of a stacked family, where the layout counts them one by one.

    Experts stacked as gate and up in one are taken apart before they are quantised: each has its own global
    scale and its own input order.
    """
    head, _, module = family.name.rpartition(".")
    names = scheme_table()["unfused"].get(module, [module])
    is_counted = layout.per_tensor_bytes or layout.per_input_bytes
    if not family.stacked or not is_counted or family.shape[0] % len(names):
        yield family
        return
    rows = family.shape[0] // len(names)
    for name in names:
        yield replace(
            family, name=f"{head}.{{expert}}.{name}.weight", shape=(rows, family.shape[1]), stacked=False
        )


def _notes(scheme: Scheme, stored: tuple[StoredFamily, ...]) -> tuple[Note, ...]:
    notes = [
        Note(
            "weights_what_if",
            "info",
            f"the weights are priced as {scheme.text}, which this checkpoint need not be",
            (("scheme", scheme.text),),
        )
    ]
    ragged = [s.family.name for s in stored if scheme.group and _is_ragged(s, scheme)]
    if ragged:
        text = f"groups of {scheme.group} do not divide the rows of {ragged[0]}: not every engine runs that"
        values = (("group", str(scheme.group)), ("name", ragged[0]))
        notes.append(Note("weights_group_ragged", "warning", text, values))
    if not scheme.is_plain and 0 < scheme.value_bits <= _REASONING_BITS:
        text = (
            "4-bit reasoning models think longer: at the same limit, Qwen3.5-9B cut off about 70 % of its "
            "AIME25 answers in INT4, about 30 % in BF16; plan more context"
        )
        notes.append(Note("reasoning_4bit", "info", text))
    return tuple(notes)


def _is_ragged(stored: StoredFamily, scheme: Scheme) -> bool:
    """Whether a row ends in a part of a group; flat groups have no rows."""
    tiles = stored.format.tiles
    return (
        stored.format == scheme.format and not tiles[0].flat and bool(stored.family.shape[-1] % scheme.group)
    )


@dataclass(frozen=True, slots=True)
class AdviceRow:
    """A part of the model, and what its precision costs.

    Args:
        advice: ``quantise`` or ``keep``, by the table.
        source: where the advice comes from.
        is_kept: nothing of the part is quantised under this scheme.
        bytes_now: in the model's dtype.
        num_bytes: under the scheme.
        kept_bytes: all of it at 16 bit.
        quantised_bytes: all of it that can be, quantised.
    """

    part: Part
    advice: str
    source: str
    num_parameters: int
    is_kept: bool
    bytes_now: int
    num_bytes: int
    kept_bytes: int
    quantised_bytes: int

    @property
    def keeping_costs_bytes(self) -> int:
        """What the part takes more at 16 bit than quantised."""
        return self.kept_bytes - self.quantised_bytes


def sensitivity(weights: ModelWeights, scheme: Scheme, model_dtype: str) -> tuple[AdviceRow, ...]:
    """Return a row for each part that the model has, in that order; none for a mix or a plain dtype."""
    if scheme.format is None or scheme.is_plain:
        return ()
    table = scheme_table()
    advice = {Part(row["part"]): row for row in table["parts"]}
    everything = replace(scheme, keep=frozenset())
    by_part: dict[Part, list[TensorFamily]] = {}
    for family in (*weights.families, *weights.mtp_families):
        by_part.setdefault(family.part, []).append(family)
    rows = []
    for part in Part:
        families = by_part.get(part, [])
        parameters = sum(family.num_parameters for family in families)
        if not parameters:
            continue
        own = _total(StoredFamily(f, plain(model_dtype)) for f in families)
        kept = _total(StoredFamily(f, plain(kept_dtype(model_dtype))) for f in families)
        size = _total(_stored(families, scheme, model_dtype))
        least = _total(_stored(families, everything, model_dtype))
        is_kept = not any(is_quantised(f, scheme, model_dtype) for f in families)
        row = advice[part]
        rows.append(
            AdviceRow(
                part,
                row["advice"],
                table["sources"][row["source"]],
                parameters,
                is_kept,
                own,
                size,
                kept,
                least,
            )
        )
    return tuple(rows)


def _total(families: Iterable[StoredFamily]) -> int:
    return sum(stored.num_bytes for stored in families)
