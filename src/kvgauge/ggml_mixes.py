"""Quantisation mixes: the type that llama-quantize gives each tensor of a GGUF, without an importance matrix.

A mix (``q4_k_m``) has a type and rules that depart from it. ``data/ggml_mixes.json`` holds them: ``category
| mixes | conditions | type``. The first rule that matches a tensor decides; ``same`` is the mix's own type,
which a tensor has that no rule matches. Categories come from tensor names; conditions are below, ``!``
negates one. A type whose blocks do not divide a tensor's rows gives way to the one in ``fallback``, then to
f16.
Source: llama.cpp v0.5.0, ``src/llama-quant.cpp``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import cast

from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError, one_line
from kvgauge.sources.gguf import TENSOR_TYPES
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.values import dataclass
from kvgauge.weight_formats import WeightFormat, plain
from kvgauge.weights import ModelWeights, TensorFamily

#: Tensors of a GGUF start at multiples of this (``general.alignment`` unless stated), as in CPU buffers.
ALIGN_BYTES = 32

#: Types of blocks up to this have no smaller one to give way to; such rows become f16.
_SMALL_BLOCK = 32

_UNPACKED = frozenset({"f64", "f32", "f16", "bf16", "i32", "i16", "i64"})
_BLOCK_OF_NAME = re.compile(r"blk\.\{layer\}\.")


@lru_cache(maxsize=64)
def ggml_format(name: str) -> WeightFormat:
    """Return the format of a ggml type.

    >>> ggml_format("q4_k").stored_bytes((4096, 4096))
    9437184
    """
    if name in _UNPACKED:
        return plain(name)
    block, size = next((block, size) for own, block, size in TENSOR_TYPES.values() if own == name)
    return WeightFormat(name, -(-8 * size // block), row_block=block, row_block_bytes=size)


@dataclass(frozen=True, slots=True)
class MixModel:
    """What the choice of types asks of a model.

    Args:
        architecture: ``general.architecture``.
        num_layers: blocks, those of multi-token prediction included.
        num_mtp_layers: how many of them are.
        num_experts: routed experts; 0 in a dense model.
        num_heads: query heads of block 0.
        num_kv_heads: KV heads of block 0; 0 where it has none.
    """

    architecture: str
    num_layers: int
    num_mtp_layers: int = 0
    num_experts: int = 0
    num_heads: int = 0
    num_kv_heads: int = 0

    @property
    def grouping(self) -> int:
        """Query heads to a KV head in block 0."""
        return self.num_heads // self.num_kv_heads if self.num_kv_heads else 0


@dataclass(slots=True)
class _Tensor:
    """One tensor at its turn.

    Args:
        place: of its family among all.
        index: its block, or in a dense model the number of tensors of its category before it.
        count: what ``index`` runs to.
        turn: tensors of its category before it, whatever the model.
    """

    model: MixModel
    family: TensorFamily
    place: int
    category: str
    block: int
    index: int = 0
    count: int = 0
    turn: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions, those of experts included."""
        own = self.family.shape
        return (self.family.num_experts, *own) if self.family.stacked else own


def _more_bits(tensor: _Tensor) -> bool:
    """The first eighth, the last, and every third between."""
    index, count = tensor.index, tensor.count
    return index < count // 8 or index >= 7 * count // 8 or (index - count // 8) % 3 == 2


def _stacked(tensor: _Tensor) -> bool:
    """Three-dimensional: experts, and the per-head matrices of latent attention."""
    shape = tensor.shape
    if len(shape) < 3 or shape[-3] < 2:
        return False
    only_experts = tensor.model.architecture in _lists("only_experts_are_mxfp4")
    return not only_experts or tensor.category.startswith("ffn_")


_CONDITIONS: Mapping[str, Callable[[_Tensor], bool]] = {
    "falcon": lambda t: t.model.architecture == "falcon",
    "experts_4": lambda t: t.model.num_experts >= 4,
    "experts_8": lambda t: t.model.num_experts == 8,
    "grouped_4": lambda t: t.model.grouping >= 4,
    "stacked": _stacked,
    "more_bits": _more_bits,
    "first_2": lambda t: t.index < 2,
    "first_4": lambda t: t.index < 4,
    "first_eighth": lambda t: t.index < t.count // 8,
    "first_sixteenth": lambda t: t.index < t.count // 16,
    "middle": lambda t: t.count // 8 <= t.index < 7 * t.count // 8,
    "early_tensor": lambda t: t.turn < t.count // 8,
}


_Types = dict[int, dict[str, list[int]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table, for one mix."""

    conditions: tuple[tuple[str, bool], ...]
    type_name: str


@lru_cache(maxsize=1)
def _table() -> dict[str, object]:
    return cast("dict[str, object]", json.loads(read_data("ggml_mixes.json")))


def _lists(name: str) -> list[str]:
    return cast("list[str]", _table()[name])


def mix_names() -> tuple[str, ...]:
    """Return the mixes that can be priced."""
    return tuple(cast("dict[str, object]", _table()["mixes"]))


def mix_name(word: str) -> str:
    """Return the mix that a word names, in any case and with either separator.

    Raises:
        FeatureUnsupportedError: there is no such mix.

    >>> mix_name("Q4_K_M")
    'q4_k_m'
    """
    name = word.strip().lower().replace("-", "_")
    name = cast("dict[str, str]", _table()["aliases"]).get(name, name)
    if name not in mix_names():
        raise FeatureUnsupportedError(
            f"{one_line(word, 40)!r} is no quantisation mix of llama.cpp",
            hint="one of: " + ", ".join(mix_names()),
            field="weights",
        )
    return name


def mix_of_file_type(number: int) -> str | None:
    """Return the mix of a ``general.file_type``, or None where it is not known.

    >>> mix_of_file_type(15)
    'q4_k_m'
    """
    mixes = cast("dict[str, list[object]]", _table()["mixes"])
    return next((name for name, (own, _) in mixes.items() if own == number), None)


def needs_importance_matrix(mix: str) -> bool:
    """Whether llama-quantize refuses to write the mix without an importance matrix."""
    return mix in _lists("importance_matrix")


@lru_cache(maxsize=64)
def _rules(mix: str) -> Mapping[str, tuple[Rule, ...]]:
    """Return the rules that hold for a mix, by category; ``*`` rules are in all of them, in their place."""
    categories = {"head", "token_embd", "other", *(str(row[1]) for row in _lists("categories"))}
    found: dict[str, list[Rule]] = {category: [] for category in categories}
    groups = cast("dict[str, str]", _table()["groups"])
    for text in _lists("rules"):
        where, mixes, conditions, type_name = (piece.strip() for piece in text.split("|"))
        names = " ".join(groups.get(name, name) for name in mixes.split()).split()
        if mixes != "*" and mix not in names:
            continue
        rule = Rule(
            tuple((c.removeprefix("!"), not c.startswith("!")) for c in conditions.split()), type_name
        )
        for category in (categories - {"head"}) if where == "*" else where.split():
            found[category].append(rule)
    return {category: tuple(rules) for category, rules in found.items()}


def price_mix(weights: ModelWeights, mix: str, model: MixModel) -> StoredWeights:
    """Return the tensors of a GGUF in the types that a mix gives them.

    Args:
        weights: families in ggml names.
        mix: a name of ``mix_names``.
        model: the model that they belong to.

    Raises:
        FeatureUnsupportedError: there is no such mix.
    """
    name = mix_name(mix)
    trunk = _types(weights.families, name, model)
    # a file without the blocks of multi-token prediction, and those that it has beside them
    whole = _types((*weights.families, *weights.mtp_families), name, model) if weights.mtp_families else {}
    return StoredWeights(
        _stored(weights.families, trunk),
        _stored(weights.mtp_families, whole, len(weights.families)),
        source="config",
        num_parameters=weights.num_parameters,
        num_active_parameters=weights.num_active_parameters,
        scheme=name,
        notes=weights.notes,
    )


def _types(families: tuple[TensorFamily, ...], mix: str, model: MixModel) -> _Types:
    """Return the types of all tensors: place of the family -> type -> blocks."""
    own = str(cast("dict[str, list[object]]", _table()["mixes"])[mix][1])
    tied = all(family.name != "output.weight" for family in families)
    chosen: _Types = {}
    turns: dict[str, int] = {}
    for tensor in _in_turn(families, model):
        type_name = _type(tensor, mix, own, turns, tied=tied)
        chosen.setdefault(tensor.place, {}).setdefault(type_name, []).append(tensor.block)
    return chosen


def _stored(families: tuple[TensorFamily, ...], chosen: _Types, start: int = 0) -> tuple[StoredFamily, ...]:
    stored = []
    for place, family in enumerate(families, start):
        for type_name, blocks in chosen[place].items():
            layers = tuple(blocks) if family.layers else ()
            own = replace(family, layers=layers)
            stored.append(StoredFamily(own, ggml_format(type_name), align_bytes=ALIGN_BYTES))
    return tuple(stored)


def _in_turn(families: tuple[TensorFamily, ...], model: MixModel) -> Iterator[_Tensor]:
    """Yield tensors in the order that llama-quantize takes them: by block, then by name."""
    turns: list[tuple[int, str, int, int]] = []
    for place, family in enumerate(families):
        if _BLOCK_OF_NAME.match(family.name):
            turns += [(block, family.name, place, block) for block in family.layers or (-1,)]
        else:  # a name that llama-quantize reads no block from
            names = [(family.name.replace("{layer}", str(block)), block) for block in family.layers or (-1,)]
            turns += [(-1, name, place, block) for name, block in names]
    turns.sort()
    categories = [_category(family.name) for family in families]
    attn_v = sum(categories[place] == "attn_v" for _, _, place, _ in turns)
    for _, _, place, block in turns:
        count = attn_v if categories[place] == "attn_v" else model.num_layers
        yield _Tensor(model, families[place], place, categories[place], block, count=count)


@lru_cache(maxsize=1024)
def _category(name: str) -> str:
    for part, category, *whole in cast("list[list[str]]", _table()["categories"]):
        if name == part if whole else part in name:
            return category
    return "other"


@lru_cache(maxsize=1024)
def _kept_type(name: str) -> str:
    """Return the type of a tensor that is never quantised, "" for others.

    Vectors, norms, routers and convolutions are f32 in every file; other tensors that llama-quantize leaves
    alone keep the type of the file that it reads, whose matrices are 16 bit.
    """
    for type_name in ("f32", "f16"):
        kept = cast("dict[str, list[str]]", _table()["kept_" + type_name])
        if name in kept["names"] or any(part in name for part in kept["parts"]):
            return type_name
    return "" if name.endswith("weight") else "f32"


def _num_dimensions(shape: tuple[int, ...]) -> int:
    """Return the dimensions that ggml counts: trailing ones in its order, leading ones in ours, do not."""
    return next((len(shape) - place for place, size in enumerate(shape) if size != 1), 1)


def _type(tensor: _Tensor, mix: str, own: str, turns: dict[str, int], *, tied: bool) -> str:
    """Return the type of one tensor; ``turns`` counts the tensors of each category that were quantised."""
    kept = "f32" if _num_dimensions(tensor.shape) < 2 else _kept_type(tensor.family.name)
    if kept == "f32" or own in _UNPACKED:
        return kept if kept == "f32" else own
    if kept:
        return kept
    category = tensor.category
    tensor.turn = turns.get(category, 0)
    turns[category] = tensor.turn + 1
    in_block = category.startswith("ffn_") and tensor.model.num_experts > 1
    tensor.index = tensor.block if in_block else tensor.turn
    is_head = category == "output" or (tied and category == "token_embd")
    return _fitting(_chosen(tensor, mix, own, "head" if is_head else category), tensor.shape[-1])


def _chosen(tensor: _Tensor, mix: str, own: str, category: str) -> str:
    found = own
    for rule in _rules(mix)[category]:
        if all(_holds(name, tensor, own) is wanted for name, wanted in rule.conditions):
            found = own if rule.type_name == "same" else rule.type_name
            break
    if category == "attn_v" and _is_seventy_billion(tensor.model) and tensor.model.num_experts != 8:
        low = mix in cast("dict[str, str]", _table()["groups"])["low"].split() or mix == "mxfp4_moe"
        return found if low else cast("dict[str, str]", _table()["seventy_billion_attn_v"]).get(found, found)
    return found


def _holds(name: str, tensor: _Tensor, own: str) -> bool:
    if name == "odd_row":
        return tensor.shape[-1] % (ggml_format(own).row_block or 1) != 0
    return _CONDITIONS[name](tensor)


def _is_seventy_billion(model: MixModel) -> bool:
    """Whether llama.cpp takes the model for a "70B", whose V projections get more bits."""
    layers, grouped = cast("dict[str, tuple[int, str]]", _table()["seventy_billion"]).get(
        model.architecture, (0, "")
    )
    if model.num_layers - model.num_mtp_layers != layers:
        return False
    return not grouped or model.num_heads != model.num_kv_heads


def _fitting(type_name: str, columns: int) -> str:
    """Return the type, or the one that takes its place where its blocks do not divide a row."""
    block = ggml_format(type_name).row_block or 1
    if columns % block == 0:
        return type_name
    other = cast("dict[str, str]", _table()["fallback"]).get(type_name, type_name)
    if other == type_name and block > _SMALL_BLOCK:
        raise FeatureUnsupportedError(
            f"{type_name} packs {block} values a block, a row of {columns} can't be packed",
            hint="llama-quantize has no other type for such rows; use q8_0",
            field="weights",
        )
    return other if columns % (ggml_format(other).row_block or 1) == 0 else "f16"
