"""The tensor tables of GGUF architectures: which tensors a mechanism has, which mechanisms an architecture.

``data/gguf_tensors.json``: ``keys`` (symbol -> GGUF key, ``?`` where an absent one is 0), ``let`` (symbols
that follow from others), ``blocks`` (``{"when", "let", "tensors"}``, a tensor being ``name | dimensions |
part | condition``), ``base`` (the blocks of an architecture that names none), ``architectures`` (``{"like",
"base", "blocks", "let", "tied", "twice", "head", "unless"}``). Source: llama.cpp v0.5.0,
``load_arch_tensors`` of ``src/models/*.cpp`` (names and shapes) and ``src/llama-arch.cpp`` (names).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import cast

from kvgauge.data import read_data
from kvgauge.values import dataclass
from kvgauge.weights import Part

_BLOCK = "blk.{layer}."


@dataclass(frozen=True, slots=True)
class TensorLine:
    """One tensor of a block: expressions still to be evaluated."""

    name: str
    dims: tuple[str, ...]
    part: Part
    when: str = ""

    @property
    def layered(self) -> bool:
        """Whether each block has one."""
        return "{layer}" in self.name


@dataclass(frozen=True, slots=True)
class Block:
    """The tensors of one mechanism."""

    tensors: tuple[TensorLine, ...]
    when: str = ""
    let: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TensorRow:
    """What an architecture is made of.

    Args:
        tied: whether the head is the embedding: always, never, or as an expression says of published models,
            where the architecture allows both and no key tells.
        twice: where the head is the embedding, the host holds a copy of it for the logits even without a
            device.
        head: there are logits.
        unless: a key that changes the tensors in a way that is not known.
    """

    name: str
    blocks: tuple[str, ...]
    let: Mapping[str, object]
    tied: bool | str
    twice: bool = False
    head: bool = True
    unless: str = ""


@lru_cache(maxsize=1)
def _table() -> dict[str, object]:
    return cast("dict[str, object]", json.loads(read_data("gguf_tensors.json")))


@lru_cache(maxsize=1)
def symbol_keys() -> Mapping[str, tuple[str, bool]]:
    """Return symbol -> (key without the architecture, whether it is required)."""
    keys = cast("dict[str, str]", _table()["keys"])
    return {name: (key.removesuffix("?"), not key.endswith("?")) for name, key in keys.items()}


@lru_cache(maxsize=1)
def common_let() -> Mapping[str, object]:
    """Return the symbols that follow from others in every architecture."""
    return cast("Mapping[str, object]", _table()["let"])


@lru_cache(maxsize=128)
def tensor_block(name: str) -> Block:
    """Return a block of the table."""
    raw = cast("dict[str, dict[str, object]]", _table()["blocks"])[name]
    lines = tuple(_line(text) for text in cast("list[str]", raw["tensors"]))
    return Block(lines, str(raw.get("when", "")), cast("Mapping[str, object]", raw.get("let", {})))


def _line(text: str) -> TensorLine:
    name, dims, part, *rest = (piece.strip() for piece in text.split("|"))
    for start in ("", "enc.", "dec."):
        if name.startswith(start + "b."):
            name = start + _BLOCK + name.removeprefix(start + "b.")
    shape = tuple(dim.strip() for dim in dims.split(";"))
    return TensorLine(name, shape, Part(part), rest[0] if rest else "")


@lru_cache(maxsize=256)
def tensor_row(architecture: str) -> TensorRow | None:
    """Return the row of an architecture, or None where its tensors are not known."""
    raw = _merged(architecture)
    if raw is None:
        return None
    base = cast("list[str]", raw.get("base", _table()["base"]))
    return TensorRow(
        architecture,
        (*base, *cast("list[str]", raw.get("blocks", ()))),
        cast("Mapping[str, object]", raw.get("let", {})),
        cast("bool | str", raw["tied"]),
        bool(raw.get("twice")),
        bool(raw.get("head", True)),
        str(raw.get("unless", "")),
    )


def _merged(architecture: str) -> dict[str, object] | None:
    own = cast("dict[str, dict[str, object]]", _table()["architectures"]).get(architecture)
    if own is None or "like" not in own:
        return own
    parent = _merged(str(own["like"])) or {}
    lets = (cast("dict[str, object]", row.get("let", {})) for row in (parent, own))
    return {**parent, **own, "let": {name: value for let in lets for name, value in let.items()}}


def known_tensor_architectures() -> tuple[str, ...]:
    """Return the architectures whose tensors are known."""
    return tuple(cast("dict[str, object]", _table()["architectures"]))


def tensor_block_names() -> tuple[str, ...]:
    """Return the names of all blocks."""
    return tuple(cast("dict[str, object]", _table()["blocks"]))
