"""The tensor tables: which tensors a mechanism has, and which mechanisms a model type is made of.

``data/tensors.json`` has two parts. ``blocks``: name -> ``{"when", "let", "tensors"}``, where a tensor is
``name | dimensions | part shard | condition | tied to``. The shard ``kv`` may go on with the outputs that its
heads make up, and ``by`` what is counted instead of KV heads: ``attention kv k + v``. ``model_types``:
type -> ``{"blocks", "let", "rename"}``, or ``{"like": type}`` with differences. Names in expressions are
symbols: ``let`` entries, what the layer says (``layer``, ``full``, ``moe`` ...), fields of the config. A
dimension of zero means no such tensor.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import cast

from kvgauge.data import read_data
from kvgauge.values import dataclass
from kvgauge.weights import Part, WeightShard


@dataclass(frozen=True, slots=True)
class TensorLine:
    """One tensor of a block: expressions still to be evaluated."""

    name: str
    dims: tuple[str, ...]
    part: Part
    shard: WeightShard
    when: str = ""
    unit_rows: str = ""
    units: str = "kv_heads"
    tied_to: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """The tensors of one mechanism."""

    name: str
    tensors: tuple[TensorLine, ...]
    when: str = ""
    let: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StackRow:
    """A stack of layers: the decoder, an encoder, a tower.

    Args:
        section: dotted path of the sub-config from the top, "" for the language model's own level.
        repeat: expression for the layers of a tower; "" for the decoder, whose pattern says it.
        default_type: model type whose class defaults stand for fields that the section omits.
        optional: a file without the section has no such part.
        kinds: kinds that the section may name; empty where it may name any.
        kind_field: field of the section that names its kind.
        unlike: the layers of a tower differ by their index.
    """

    blocks: tuple[str, ...]
    let: Mapping[str, object] = field(default_factory=dict)
    rename: tuple[tuple[str, str], ...] = ()
    section: str = ""
    repeat: str = ""
    default_type: str = ""
    optional: bool = False
    kinds: tuple[str, ...] = ()
    kind_field: str = "model_type"
    unlike: bool = False


@dataclass(frozen=True, slots=True)
class WeightRow:
    """What a model type is made of.

    Args:
        tied: whether the head is the embedding, where the model's code says so.
        stacks: towers and encoders beside the decoder.
        text: whether there is a decoder whose layers follow the language model's pattern.
        text_type: type of the language model of a composite whose file does not nest it.
        prefix: what stands before the names of its language model.
        mtp: blocks of one multi-token-prediction layer.
        mtp_prefix: what its names have for ``model.layers.``, from 0; else the decoder's count goes on.
        mtp_default: modules of a file that does not say how many.
        text_ties: whether the language model of a composite may tie its head against the composite's false.
        nested: rows of language models that are made differently inside this composite, by their type.
    """

    model_type: str
    blocks: tuple[str, ...] = ()
    let: Mapping[str, object] = field(default_factory=dict)
    rename: tuple[tuple[str, str], ...] = ()
    tied: bool | None = None
    stacks: tuple[StackRow, ...] = ()
    text: bool = True
    text_type: str = ""
    prefix: str = ""
    mtp: tuple[str, ...] = ()
    mtp_prefix: str = ""
    mtp_default: int = 0
    text_ties: bool = False
    nested: Mapping[str, str] = field(default_factory=dict)


_LAYER = "model.layers.{layer}"
_SHARDS = {
    "col": WeightShard.COLUMN,
    "row": WeightShard.ROW,
    "vocab": WeightShard.VOCABULARY,
    "kv": WeightShard.KV_HEADS,
    "": WeightShard.REPLICATED,
}


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, dict[str, object]]]:
    table: dict[str, dict[str, dict[str, object]]] = json.loads(read_data("tensors.json"))
    return table


@lru_cache(maxsize=128)
def block(name: str) -> Block:
    """Return a block of the table."""
    raw = _table()["blocks"][name]
    lines = tuple(_line(text) for text in cast("list[str]", raw["tensors"]))
    return Block(name, lines, str(raw.get("when", "")), cast("Mapping[str, object]", raw.get("let", {})))


def _line(text: str) -> TensorLine:
    fields = [part.strip() for part in text.split("|")]
    name, dims, kind = fields[:3]
    if name.startswith("L."):
        name = _LAYER + name[1:]
    part, shard, rows = (*kind.split(" ", 2), "", "")[:3]
    rows, _, units = rows.partition(" by ")
    when, tied = (*fields[3:], "", "")[:2]
    shape = tuple(dim.strip() for dim in dims.split(";"))
    return TensorLine(name, shape, Part(part), _SHARDS[shard], when, rows, units or "kv_heads", tied)


@lru_cache(maxsize=128)
def weight_row(model_type: str) -> WeightRow | None:
    """Return the row of a model type, or None where its tensors are not known."""
    raw = _merged(model_type)
    if raw is None:
        return None
    stacks = tuple(_stack(entry) for entry in cast("list[dict[str, object]]", raw.pop("stacks", [])))
    blocks = tuple(cast("list[str]", raw.pop("blocks", ())))
    mtp = tuple(cast("list[str]", raw.pop("mtp", ())))
    rename = _pairs(raw.pop("rename", ()))
    return WeightRow(model_type, blocks=blocks, mtp=mtp, rename=rename, stacks=stacks, **raw)  # type: ignore[arg-type]


def _merged(model_type: str) -> dict[str, object] | None:
    own = _table()["model_types"].get(model_type)
    if own is None:
        return None
    base = own.get("like")
    if not isinstance(base, str):
        return dict(own)
    parent = _merged(base) or {}
    let = {
        **cast("dict[str, object]", parent.get("let", {})),
        **cast("dict[str, object]", own.get("let", {})),
    }
    merged = {**parent, **own, "let": let}
    merged.pop("like")
    return merged


def _stack(raw: dict[str, object]) -> StackRow:
    values = dict(raw)
    blocks = tuple(cast("list[str]", values.pop("blocks")))
    rename = _pairs(values.pop("rename", ()))
    kinds = tuple(cast("list[str]", values.pop("kinds", ())))
    return StackRow(blocks, rename=rename, kinds=kinds, **values)  # type: ignore[arg-type]


def _pairs(raw: object) -> tuple[tuple[str, str], ...]:
    return tuple((str(a), str(b)) for a, b in cast("list[list[str]]", raw or []))


def known_weight_types() -> tuple[str, ...]:
    """Return the model types whose tensors are known."""
    return tuple(_table()["model_types"])
