"""What a GGUF of a Hugging Face model would weigh: its tensors as llama.cpp's converter writes them.

``data/gguf_names.json`` has the names: ``name | ggml names | how``. Towers and projectors go to a file of
their own and are left out; a tied head is not written, nor are rotation factors and routing biases that
no row adds. A tensor that no row names is refused, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import lru_cache
from math import prod
from typing import cast

from kvgauge.architecture import Note
from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError, one_line
from kvgauge.ggml_mixes import MixModel, price_mix
from kvgauge.readers.gguf.rows import architecture_row
from kvgauge.readers.hf.config import ConfigView, ReadLog
from kvgauge.readers.hf.mixers.attention import attention_geometry, query_heads
from kvgauge.readers.hf.nesting import language_view
from kvgauge.readers.hf.patterns import read_pattern
from kvgauge.readers.hf.rows import model_type_row
from kvgauge.stored_weights import StoredWeights
from kvgauge.values import dataclass
from kvgauge.weights import ModelWeights, Part, TensorFamily, WeightShard

_BLOCK = "blk.{layer}."
_OTHER_FILE = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})
_KV_B, _OUTPUT = "attn_k_b.weight", "attn_output.weight"


def mix_of_config(weights: ModelWeights, config: Mapping[str, object], mix: str) -> StoredWeights:
    """Return what a mix of a Hugging Face model would weigh.

    Args:
        weights: its tensor families, from ``readers.hf.weights.read_weights``.
        config: its config.
        mix: ``q4_k_m`` and so on.

    Raises:
        FeatureUnsupportedError: llama.cpp's converter has no names for the model type or for a tensor of it;
            there is no such mix.
    """
    view, model_type = language_view(config, ReadLog())
    row = _type_row(model_type)
    translator = _Translator(view, row)
    families = translator.translated(weights.families)
    mtp = translator.translated(weights.mtp_families, mtp=True) if row.mtp else ()
    families += tuple(family for name in row.adds for family in _ADDS[name](families))
    trunk = max((layer for family in families for layer in family.layers), default=-1) + 1
    mtp = _behind(mtp, trunk)
    whole = ModelWeights(families, mtp, (*weights.notes, *_left_out(weights)))
    return price_mix(whole, mix, _mix_model(view, model_type, row, whole))


def _left_out(weights: ModelWeights) -> tuple[Note, ...]:
    """Say that towers are in no GGUF of the language model: the converter writes them with ``--mmproj``."""
    count = sum(family.num_parameters for family in weights.families if family.part in _OTHER_FILE)
    if not count:
        return ()
    shown = f"{count:,}"
    text = f"a GGUF of the language model holds no vision or audio part: {shown} parameters are in mmproj's"
    return (Note("weights_mmproj", "info", text, (("count", shown),)),)


@dataclass(frozen=True, slots=True)
class TypeRow:
    """How the converter writes a model type.

    Args:
        architecture: ``general.architecture``.
        post_attention_norm: ``post_attention_layernorm`` comes after attention, it does not open the MLP.
        adds: tensors that the converter writes and the families do not have: ``correction`` (the routing's
            bias, a buffer), ``rotation`` (factors of the full layers).
        mtp: blocks of multi-token prediction are written unless told otherwise.
        names: rows of its own, which go before the common ones.
        dense_shared: without routed experts, the shared expert is the MLP.
    """

    architecture: str
    post_attention_norm: bool = False
    adds: tuple[str, ...] = ()
    mtp: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    dense_shared: bool = False


@lru_cache(maxsize=1)
def _table() -> dict[str, object]:
    return cast("dict[str, object]", json.loads(read_data("gguf_names.json")))


def _type_row(model_type: str) -> TypeRow:
    raw = cast("dict[str, dict[str, object]]", _table()["types"]).get(model_type)
    if raw is None:
        raise FeatureUnsupportedError(
            f"how llama.cpp would convert the model type {one_line(model_type, 40)!r} is not known",
            hint="read a GGUF of it, or ask for a scheme of its own checkpoint: bf16, int8, int4",
            field="model_type",
        )
    values = dict(raw)
    adds = tuple(cast("list[str]", values.pop("adds", [])))
    return TypeRow(adds=adds, **values)  # type: ignore[arg-type]


def known_config_types() -> Mapping[str, str]:
    """Return model type -> GGUF architecture, of all types that can be converted."""
    types = cast("dict[str, dict[str, object]]", _table()["types"])
    return {name: str(row["architecture"]) for name, row in types.items()}


@dataclass(frozen=True, slots=True)
class _Row:
    """Where a tensor goes: its ggml names, none where it is dropped, and how its shape changes."""

    targets: tuple[str, ...]
    how: str


@lru_cache(maxsize=2)
def _rows(key: str) -> Mapping[str, _Row]:
    found = {}
    for text in cast("list[str]", _table()[key]):
        name, _, rest = text.partition("|")
        found[name.strip()] = _parsed(rest)
    return found


def _parsed(text: str) -> _Row:
    targets, _, how = text.partition("|")
    return _Row(tuple(_expanded(target) for target in targets.split()), how.strip() or "same")


def _expanded(target: str) -> str:
    return _BLOCK + target.removeprefix("b.") if target.startswith("b.") else target


@dataclass(frozen=True)
class _Translator:
    """Gives the families of one model their ggml names and shapes."""

    view: ConfigView
    row: TypeRow

    def translated(self, families: Iterable[TensorFamily], *, mtp: bool = False) -> tuple[TensorFamily, ...]:
        """Return the families as the converter writes them."""
        own = [family for family in families if family.part not in _OTHER_FILE and not family.tied_to]
        dense = self.row.dense_shared and not any(family.num_experts for family in own)
        found: list[TensorFamily] = []
        for family in own:
            row = self._row(family.name, mtp=mtp)
            for name, shape in zip(row.targets, self._shapes(row, family, own), strict=True):
                stacked = row.how == "stack" or family.stacked
                name = name.replace("_shexp.", ".") if dense else name  # noqa: PLW2901
                changed = replace(family, name=name, shape=shape, stacked=stacked)
                found.append(replace(changed, shard=WeightShard.REPLICATED, shard_units=0))
        return tuple(found)

    def _row(self, name: str, *, mtp: bool) -> _Row:
        suffix = _suffix(name)
        if suffix is not None and suffix in self.row.names:
            return _parsed(self.row.names[suffix])
        if suffix is not None:
            row = (_rows("mtp_tensors").get(suffix) if mtp else None) or _rows("tensors").get(suffix)
            if row is not None:
                return self._placed(suffix, row)
        raise FeatureUnsupportedError(
            f"llama.cpp's name of the tensor {one_line(name, 80)!r} is not known",
            hint="read a GGUF of the model, or ask for a scheme of its own checkpoint: bf16, int8, int4",
            field="weights",
        )

    def _placed(self, suffix: str, row: _Row) -> _Row:
        if self.row.post_attention_norm and suffix == "post_attention_layernorm.weight":
            return _Row((_BLOCK + "post_attention_norm.weight",), row.how)
        return row

    def _shapes(
        self, row: _Row, family: TensorFamily, own: list[TensorFamily]
    ) -> tuple[tuple[int, ...], ...]:
        shape = family.shape
        if row.how == "kv_b":
            return self._per_head(shape)
        if row.how == "qkv":
            outputs = (f.shape[1] for f in own if self._is_output(f) and set(f.layers) >= set(family.layers))
            width = next(outputs, shape[0] // 3)
            rest = (shape[0] - width) // 2
            return tuple((rows, *shape[1:]) for rows in (width, rest, rest))
        if row.how == "qkvz":
            values = self.view.count("linear_num_value_heads") * self.view.count("linear_value_head_dim")
            return ((shape[0] - values, *shape[1:]), (values, *shape[1:]))
        if row.how == "vocab":  # padded: llama.cpp has one number of words
            return ((self.view.count("vocab_size"), *shape[1:]),)
        if row.how == "groups":
            name = "mamba_n_groups" if self.view.has("mamba_n_groups") else "n_groups"
            groups = self.view.count(name)
            return ((groups, shape[0] // groups),)
        return _SHAPES[row.how](shape)[: len(row.targets)]

    def _is_output(self, family: TensorFamily) -> bool:
        row = _rows("tensors").get(_suffix(family.name) or "")
        return row is not None and row.targets == (_BLOCK + _OUTPUT,)

    def _per_head(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        """Return K and V of an up-projection as llama.cpp absorbs them: a matrix a head, K turned round."""
        nope, value = self.view.count("qk_nope_head_dim"), self.view.count("v_head_dim")
        heads = shape[0] // (nope + value)
        return (heads, shape[1], nope), (heads, value, shape[1])


_SHAPES: Mapping[str, Callable[[tuple[int, ...]], tuple[tuple[int, ...], ...]]] = {
    "same": lambda shape: (shape,),
    "stack": lambda shape: (shape,),
    "flat": lambda shape: ((prod(shape),),),
    "column": lambda shape: ((*shape, 1),),
    "squeeze": lambda shape: (tuple(n for i, n in enumerate(shape) if i != 1 or n != 1),),
    "turned": lambda shape: ((shape[1], shape[0]),),
    "halves": lambda shape: ((shape[0] // 2, *shape[1:]), (shape[0] // 2, *shape[1:])),
}


def _suffix(name: str) -> str | None:
    """Return a tensor's name within its layer, ``^`` before what is outside of layers; None elsewhere."""
    for prefix in cast("list[str]", _table()["prefixes"]):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return None if "{layer}" in name else "^" + ".".join(name.split(".")[-2:])


def _behind(families: tuple[TensorFamily, ...], trunk: int) -> tuple[TensorFamily, ...]:
    """Count the blocks of multi-token prediction on from the model's."""
    moved = []
    for family in families:
        layers = family.layers or (0,)
        layers = tuple(layer if layer >= trunk else trunk + layer for layer in layers)
        moved.append(replace(family, layers=layers, part=Part.MTP))
    return tuple(moved)


def _correction(families: tuple[TensorFamily, ...]) -> Iterable[TensorFamily]:
    """The bias that the routing adds to its scores: a buffer of the model, a tensor of the file."""
    for family in families:
        if family.name == _BLOCK + "ffn_gate_inp.weight":
            yield replace(family, name=_BLOCK + "exp_probs_b.bias", shape=family.shape[:1])


def _rotation(families: tuple[TensorFamily, ...]) -> Iterable[TensorFamily]:
    """One factor for each pair of the widest heads."""
    widths = [family.shape[0] for family in families if family.name == _BLOCK + "attn_q_norm.weight"]
    if widths:
        yield TensorFamily("rope_freqs.weight", (max(widths) // 2,), Part.OTHER)


_ADDS: Mapping[str, Callable[[tuple[TensorFamily, ...]], Iterable[TensorFamily]]] = {
    "correction": _correction,
    "rotation": _rotation,
}


def _mix_model(view: ConfigView, model_type: str, row: TypeRow, weights: ModelWeights) -> MixModel:
    everything = (*weights.families, *weights.mtp_families)
    trunk, blocks = (
        max((layer for family in families for layer in family.layers), default=-1) + 1
        for families in (weights.families, everything)
    )
    experts = max((family.num_experts for family in everything), default=0)
    heads, kv_heads = _heads(view, model_type, row, weights)
    return MixModel(row.architecture, blocks, blocks - trunk, experts, heads, kv_heads)


def _heads(view: ConfigView, model_type: str, row: TypeRow, weights: ModelWeights) -> tuple[int, int]:
    """Return the heads that the converter writes for block 0: latent attention has one KV head."""
    if all(family.part is not Part.ATTENTION for family in weights.families):
        return 0, 0
    heads = query_heads(view, 0) or 0
    if any(family.name.endswith(_KV_B) for family in weights.families):
        return heads, 1
    config_row = model_type_row(model_type)
    words = read_pattern(view, config_row).words
    word = words[0].split("+")[0] if words else "full"
    listed = (architecture_row(row.architecture).state_layers or "").startswith("no_kv_heads")
    if word in ("full", "sliding", "chunked"):
        return heads, attention_geometry(view, config_row, 0, len(words), word)[0]
    if listed:
        return heads, 0
    full = next((index for index, other in enumerate(words) if "full" in other.split("+")), None)
    kv = 0 if full is None else attention_geometry(view, config_row, full, len(words), "full")[0]
    return heads, kv


__all__ = ["known_config_types", "mix_of_config"]
