"""Blocks of the tensor tables, layer by layer, into tensor families."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from kvgauge.errors import InvalidFieldError
from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.hf.weights.symbols import LayerFacts, Symbols
from kvgauge.readers.hf.weights.tables import Block, TensorLine, block
from kvgauge.values import dataclass
from kvgauge.weights import TensorFamily, WeightShard

#: Tensor name -> dotted path -> value.
Trace = dict[str, dict[str, object]]

#: A table of no words is no table that a model leaves out.
_VOCABULARY = "vocab_size"
_SLICE = "[expert]"
_LARGEST_DIM = 1 << 40
_LARGEST_EXPERTS = 1 << 20


@dataclass(frozen=True)
class Stack:
    """What the tensors of one stack follow from.

    Args:
        defaults: class defaults for fields that the section omits.
        rename: (from, to) applied to each name in turn.
        top: the whole file, for names that begin with ``top__``.
        trace: takes the config fields behind each tensor, by its name; None where nobody asks.
        implied: takes the main sizes that the file leaves to its class, by dotted path.
    """

    view: ConfigView
    blocks: tuple[str, ...]
    let: Mapping[str, object]
    defaults: Mapping[str, object]
    rename: tuple[tuple[str, str], ...] = ()
    top: ConfigView | None = None
    trace: Trace | None = None
    implied: dict[str, object] | None = None

    def symbols(self, layer: LayerFacts, own: Mapping[str, object]) -> Symbols:
        """Return the symbols of one layer inside one block; the row's ``let`` goes before the block's."""
        return Symbols(self.view, {**own, **self.let}, layer, self.defaults, self.top, self.implied)


def stack_families(stack: Stack, layers: Iterable[tuple[object, LayerFacts]]) -> tuple[TensorFamily, ...]:
    """Return the families of a stack.

    Args:
        stack: blocks and symbols.
        layers: one entry a layer: what tells it from others (equal keys are alike), and its facts.
    """
    gathered: dict[TensorFamily, list[int]] = {}
    alike: dict[object, tuple[TensorFamily, ...]] = {}
    blocks = [block(name) for name in stack.blocks]
    families = list(_families(stack, blocks, {}, layered=False))
    for index, (key, facts) in enumerate(layers):
        if key not in alike:
            alike[key] = tuple(_families(stack, blocks, facts, layered=True))
        for family in alike[key]:
            gathered.setdefault(family, []).append(index)
    families += [replace(family, layers=tuple(indices)) for family, indices in gathered.items()]
    return tuple(families)


def _families(
    stack: Stack, blocks: Iterable[Block], facts: LayerFacts, *, layered: bool
) -> Iterable[TensorFamily]:
    for own in blocks:
        lines = [line for line in own.tensors if ("{layer}" in _renamed(line.name, stack)) is layered]
        if not lines:
            continue
        symbols = stack.symbols(facts, own.let)
        if own.when and not symbols.evaluate(own.when):
            continue
        for line in lines:
            if stack.trace is not None:
                symbols = stack.symbols(facts, own.let)  # each tensor looks its own fields up
            family = _family(line, symbols, stack)
            if family is not None:
                yield family


def _renamed(name: str, stack: Stack) -> str:
    for old, new in stack.rename:
        name = name.replace(old, new)
    return name


def _family(line: TensorLine, symbols: Symbols, stack: Stack) -> TensorFamily | None:
    if line.when and not symbols.evaluate(line.when):
        return None
    symbols.used.clear()
    shape = tuple(_count(symbols, dim, _LARGEST_DIM) for dim in line.dims)
    if 0 in shape:
        words = dict(zip(line.dims, shape, strict=True)).get(_VOCABULARY)
        if words == 0:
            raise InvalidFieldError(
                f"{_VOCABULARY} is {words}, which is no size of a tensor", field=_VOCABULARY
            )
        return None
    stacked = line.name.endswith(_SLICE)
    routed = stacked or "{expert}" in line.name
    experts = _count(symbols, "experts", _LARGEST_EXPERTS) if routed else 0
    if routed and not experts:
        return None
    active = min(experts, _count(symbols, "active_experts", _LARGEST_EXPERTS)) if experts else 0
    units = _count(symbols, line.units, _LARGEST_DIM) if line.shard is WeightShard.KV_HEADS else 0
    unit_rows = _count(symbols, line.unit_rows, _LARGEST_DIM) if line.unit_rows else 0
    name = _renamed(line.name.removesuffix(_SLICE), stack)
    if stack.trace is not None:
        stack.trace.setdefault(name, dict(symbols.used))
    return TensorFamily(
        name, shape, line.part, line.shard, (), experts, active, stacked, units, line.tied_to, unit_rows
    )


def _count(symbols: Symbols, text: str, high: int) -> int:
    value = symbols.evaluate(text)
    if isinstance(value, str) or value != int(value) or not 0 <= value <= high:
        where = _stated_as(symbols, value) or text
        raise InvalidFieldError(f"{where} is {value!s:.40}, which is no size of a tensor", field=where)
    return int(value)


def _stated_as(symbols: Symbols, value: object) -> str | None:
    """Return the field of the file that gave a value, the last one read first."""
    read = {**symbols.view.log.used, **symbols.used}
    return next((p for p in reversed(read) if read[p] == value and type(read[p]) is type(value)), None)


def tower_layers(count: int, *, unlike: bool = False) -> Iterable[tuple[object, LayerFacts]]:
    """Yield the layers of a tower, all alike but for what lists say by index, or each of its own kind."""
    facts: dict[str, int | Callable[[], int]]
    for index in range(count):
        facts = {"layer": index, "count": count}
        yield index if unlike else 0, facts
