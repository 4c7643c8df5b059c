"""Read the tensors that GGUF metadata alone implies: a few families, exact, or nothing where not known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

from kvgauge.architecture import Note
from kvgauge.errors import InvalidFieldError
from kvgauge.readers.gguf.attention import head_widths, read_heads
from kvgauge.readers.gguf.decoder import BlockBuilder, block_counts
from kvgauge.readers.gguf.metadata import Metadata
from kvgauge.readers.gguf.rows import architecture_row
from kvgauge.readers.gguf.tensor_tables import (
    Block,
    TensorLine,
    TensorRow,
    common_let,
    symbol_keys,
    tensor_block,
    tensor_row,
)
from kvgauge.readers.hf.weights.expressions import Value, evaluate
from kvgauge.readers.values import MAX_LAYERS, MAX_WIDTH, as_count, is_int, short
from kvgauge.weights import ModelWeights, Part, TensorFamily

_SLICE = "[expert]"
_LARGEST_DIM = 1 << 40
_LARGEST_EXPERTS = 1 << 20
_BECAUSE = "gives the shape of a tensor"
_MENTIONS_LAYER = re.compile(r"\blayer\b")

Facts = Mapping[str, Value | Callable[[], Value]]


def read_tensors(metadata: Mapping[str, object], *, tied: bool | None = None) -> ModelWeights | None:
    """Return the tensor families of GGUF metadata, or None where those of its architecture are not known.

    Tensors that are optional in llama.cpp and that no key announces (biases of the routing, scales, rotation
    factors) are left out.

    Args:
        metadata: whole keys and values; ``general.architecture`` among them.
        tied: whether the head is the embedding, where the architecture allows both; None: as its published
            models have it.

    Raises:
        MissingFieldError, InvalidFieldError: the metadata can't be understood; says why.

    >>> keys = {"general.architecture": "gemma", "gemma.block_count": 28, "gemma.embedding_length": 3072,
    ...         "gemma.feed_forward_length": 24576, "gemma.attention.head_count": 16,
    ...         "gemma.attention.head_count_kv": 16, "gemma.attention.key_length": 256,
    ...         "gemma.attention.value_length": 256, "gemma.vocab_size": 256000}
    >>> read_tensors(keys).num_parameters
    8537680896
    """
    name = metadata.get("general.architecture")
    row = tensor_row(name) if isinstance(name, str) else None
    if row is None:
        return None
    meta = Metadata(metadata, row.name)
    if row.unless and meta.find(row.unless):
        return None
    if _has_mlp(row) and not any(meta.has(key) for key in _MLP_KEYS):
        raise meta.missing(_MLP_KEYS[0], _BECAUSE)
    model = _Model(meta, row)
    head = model.tied() if tied is None or isinstance(row.tied, bool) else tied
    gathered = _gather(model, {"tied": int(head)})
    trunk, extra = _split(gathered, model.count)
    notes = model.tie_notes(tied=head) if tied is None else ()
    return ModelWeights(tuple(trunk), tuple(extra), notes)


#: A key that each MLP has one of; without them its tensors would count nothing.
_MLP_KEYS = ("feed_forward_length", "expert_feed_forward_length")
#: What the tables call the width of an MLP.
_WIDTHS = frozenset({"ff", "mlp_width"})


def _has_mlp(row: TensorRow) -> bool:
    """Whether some tensors of an architecture are as wide as its MLP."""
    lines = (line for name in row.blocks for line in tensor_block(name).tensors)
    return any(_WIDTHS & set(re.findall(r"[A-Za-z_]+", dim)) for line in lines for dim in line.dims)


@dataclass
class _Model:
    """What all symbols of one model are looked up in."""

    meta: Metadata
    row: TensorRow
    lists: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @cached_property
    def builder(self) -> BlockBuilder | None:
        """The reader of the blocks, or None where none keeps a cache."""
        row = architecture_row(self.row.name)
        return None if row.no_cache else BlockBuilder(self.meta, row)

    @cached_property
    def count(self) -> int:
        """Blocks without those of multi-token prediction."""
        return self.builder.count if self.builder else self.blocks

    @cached_property
    def blocks(self) -> int:
        """Blocks with those of multi-token prediction; of encoder and decoder, the longer."""
        row = architecture_row(self.row.name)
        stated = self.meta.count("block_count", high=MAX_LAYERS)
        return max(stated, block_counts(self.meta, row)[1])

    def tied(self) -> bool:
        """Return whether the head is the embedding, as far as the architecture tells."""
        if isinstance(self.row.tied, bool):
            return self.row.tied
        return bool(_Symbols(self, {"count": self.count}, {}).evaluate(self.row.tied))

    def tie_notes(self, *, tied: bool) -> tuple[Note, ...]:
        """Return the note on a head that no key of the file tells of."""
        if isinstance(self.row.tied, bool):
            return ()
        kind = "tied" if tied else "untied"
        text = (
            f"no key says whether the head is the embedding; counted as {kind}, as published models have it"
        )
        return (Note("gguf_head_assumed", "info", text, (("tied", str(tied).lower()),)),)

    def facts(self, index: int) -> Facts:
        """Return what tells one block from the others."""
        builder, mtp = self.builder, index >= self.count
        if builder is None or index >= len(builder.heads.query):
            heads = read_heads(self.meta, architecture_row(self.row.name), self.blocks)
            flags = {"recurrent": 0, "slides": 0, "indexed": 0, "owns": 1, "attends": 1}
        else:
            heads = builder.heads
            flags = {
                "recurrent": int(builder.recurrent[index]),
                "slides": int(builder.slides[index]),
                "indexed": int(not mtp and builder.indexed[index]),
                "owns": int(mtp or builder.owners[index] is None),
                "attends": int(mtp or builder._attends(index)),
            }
        widths = self._widths(slides=bool(flags["slides"]))
        return {
            **flags, "layer": index, "count": self.count, "mtp": int(mtp),
            "heads": heads.query[index], "kv_heads": heads.key_value[index],
            "sliding_kv_heads": self._sliding_heads,
            "k_width": lambda: widths()[0], "v_width": lambda: widths()[1],
        }  # fmt: skip

    def _widths(self, *, slides: bool) -> Callable[[], tuple[int, int]]:
        row = architecture_row(self.row.name)
        heads = read_heads(self.meta, row, self.blocks)
        return lambda: head_widths(self.meta, row, heads, slides=slides)

    @cached_property
    def _sliding_heads(self) -> int:
        """KV heads of the first block that slides, else of the first block."""
        builder = self.builder
        if builder is None:
            return 0
        first = next((i for i, slides in enumerate(builder.slides) if slides), 0)
        return builder.heads.key_value[first]

    def vocabulary(self) -> int:
        """Return the rows of the embedding: stated, or the length of the tokeniser's list."""
        value = self.meta.values.get(self.meta.key("vocab_size"))
        if value is None:
            tokens = self.meta.values.get("tokenizer.ggml.tokens")
            value = tokens.get("length") if isinstance(tokens, Mapping) else None
            value = len(tokens) if isinstance(tokens, list | tuple) else value
        if value is None:
            raise self.meta.missing("vocab_size", _BECAUSE)
        return as_count(value, self.meta.key("vocab_size"), low=1, high=MAX_WIDTH)


class _Symbols:
    """Looks names up: the architecture's ``let``, facts of the block, the mechanism's ``let``, keys."""

    def __init__(self, model: _Model, facts: Facts, let: Mapping[str, object]) -> None:
        self.model = model
        self.facts = facts
        self.let = let
        self.pending: list[str] = []

    def evaluate(self, text: str) -> Value:
        """Return the value of an expression."""
        return evaluate(text, self.value)

    def value(self, name: str) -> Value:
        """Return the value of a symbol.

        Raises:
            MissingFieldError: no key has it. InvalidFieldError: it is no number.
        """
        for level, let in enumerate((self.model.row.let, self.facts, self.let, common_let())):
            if name in let and (level == 1 or name not in self.pending):
                return self._resolve(name, let[name], fact=level == 1)
        if name == "vocab":
            return self.model.vocabulary()
        return self._key(name)

    def _resolve(self, name: str, found: object, *, fact: bool) -> Value:
        if fact:
            return cast("Value", found() if callable(found) else found)
        if not isinstance(found, str):
            return cast("Value", found)
        self.pending.append(name)
        try:
            return evaluate(found, self.value)
        finally:
            self.pending.pop()

    def _key(self, name: str) -> Value:
        meta = self.model.meta
        key, required = symbol_keys()[name]
        value = meta.find(key)
        if value is None:
            if required:
                raise meta.missing(key, _BECAUSE)
            return 0
        if isinstance(value, list | tuple):
            layer = self.facts.get("layer", 0)
            if not is_int(layer) or layer >= len(value):
                raise meta.invalid(key, f"has {len(value)} entries, none for block {layer}")
            value = value[layer]
        return as_count(
            int(value) if isinstance(value, bool) else value, meta.key(key), low=0, high=MAX_WIDTH
        )


def _gather(model: _Model, fixed: Mapping[str, Value]) -> list[TensorFamily]:
    blocks = [tensor_block(name) for name in model.row.blocks]
    families = list(_families(model, blocks, {"count": model.count, **fixed}, layered=False))
    by_layer = _expressions_of_layer(model.row, blocks)
    lists = [v for v in model.meta.values.values() if isinstance(v, list | tuple) and len(v) >= model.count]
    gathered: dict[TensorFamily, list[int]] = {}
    alike: dict[object, tuple[TensorFamily, ...]] = {}
    for index in range(model.blocks):
        facts = {**model.facts(index), **fixed}
        key = _likeness(model, facts, by_layer, tuple(str(v[index : index + 1]) for v in lists))
        if key not in alike:
            alike[key] = tuple(_families(model, blocks, facts, layered=True))
        for family in alike[key]:
            gathered.setdefault(family, []).append(index)
    return families + [replace(family, layers=tuple(indices)) for family, indices in gathered.items()]


def _expressions_of_layer(
    row: TensorRow, blocks: list[Block]
) -> tuple[tuple[str, Mapping[str, object]], ...]:
    """Return the expressions whose value depends on a block's place, each with its mechanism's symbols."""
    texts: list[tuple[object, Mapping[str, object]]] = [(text, {}) for text in row.let.values()]
    for block in blocks:
        own = [*block.let.values(), block.when]
        own += [text for line in block.tensors for text in (*line.dims, line.when)]
        texts += [(text, block.let) for text in own]
    return tuple((text, let) for text, let in texts if isinstance(text, str) and _MENTIONS_LAYER.search(text))


def _likeness(
    model: _Model,
    facts: Facts,
    by_layer: tuple[tuple[str, Mapping[str, object]], ...],
    own: tuple[str, ...],
) -> object:
    """Return what tells blocks with different tensors apart."""
    plain = tuple(value for name, value in facts.items() if name != "layer" and not callable(value))
    placed = tuple(_Symbols(model, facts, let).evaluate(text) for text, let in by_layer)
    return plain, placed, own


def _families(model: _Model, blocks: list[Block], facts: Facts, *, layered: bool) -> Iterator[TensorFamily]:
    for block in blocks:
        lines = [line for line in block.tensors if line.layered is layered]
        symbols = _Symbols(model, facts, block.let)
        if not lines or (block.when and not symbols.evaluate(block.when)):
            continue
        for line in lines:
            family = _family(line, symbols)
            if family is not None:
                yield family


def _family(line: TensorLine, symbols: _Symbols) -> TensorFamily | None:
    if line.when and not symbols.evaluate(line.when):
        return None
    shape = tuple(_count(symbols, dim, _LARGEST_DIM) for dim in line.dims)
    if 0 in shape:
        return None
    stacked = line.name.endswith(_SLICE)
    experts = _count(symbols, "experts", _LARGEST_EXPERTS) if stacked else 0
    active = min(experts, _count(symbols, "used", _LARGEST_EXPERTS)) if stacked else 0
    return TensorFamily(
        line.name.removesuffix(_SLICE),
        shape,
        line.part,
        num_experts=experts,
        num_active_experts=active,
        stacked=stacked,
    )


def _count(symbols: _Symbols, text: str, high: int) -> int:
    value = symbols.evaluate(text)
    if isinstance(value, str) or value != int(value) or not 0 <= value <= high:
        raise InvalidFieldError(f"{text} is {short(value)}, which is no size of a tensor", field=text)
    return int(value)


def _split(families: list[TensorFamily], count: int) -> tuple[list[TensorFamily], list[TensorFamily]]:
    """Part the blocks of the model from those of multi-token prediction, which stand at the end."""
    trunk: list[TensorFamily] = []
    extra: list[TensorFamily] = []
    for family in families:
        own = tuple(index for index in family.layers if index < count)
        rest = family.layers[len(own) :]
        if own or not family.layers:
            trunk.append(replace(family, layers=own))
        if rest:
            extra.append(replace(family, layers=rest, part=Part.MTP))
    return trunk, extra


__all__ = ["read_tensors"]
