"""How many rows a formula counts, and the form that any group can take: bytes of a row times rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import NamedTuple

from kvgauge.architecture import LayerGroup
from kvgauge.dtypes import get_format
from kvgauge.engines.base import GroupDemand, StreamDemand
from kvgauge.layers import Axis, Counted, Rounding
from kvgauge.units import json_number
from kvgauge.values import dataclass
from kvgauge.workload import Workload

Number = int | float
Symbols = dict[str, Number]

#: Axis -> the symbol that counts its tokens; a stream of the sequence axis has one set of rows.
AXIS_SYMBOLS = {Axis.DECODER: "T", Axis.ENCODER: "T_enc", Axis.IMAGE: "T_img"}


class Definition(NamedTuple):
    """How a symbol follows from others."""

    symbol: str
    formula: str


@dataclass(frozen=True)
class GroupFormula:
    """A formula, the values of its symbols, and the definitions of those that are computed.

    Attributes:
        rows: for a symbol that stands for the bytes or the number of one kind of row, a stream of that kind.
    """

    formula: str
    symbols: Mapping[str, Number]
    definitions: tuple[Definition, ...] = ()
    rows: Mapping[str, StreamDemand] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return the JSON fields."""
        return {
            "formula": self.formula,
            "symbols": dict(self.symbols),
            "definitions": {d.symbol: d.formula for d in self.definitions},
        }


class Share(NamedTuple):
    """The rows of one rank of decode context parallelism: every ``ranks``-th one, from ``place`` on."""

    ranks: int = 1
    place: int = 0

    def of(self, rows: int) -> int:
        """Return how many of the rows this rank holds."""
        return -(-max(0, rows - self.place) // self.ranks)


WHOLE = Share()


@dataclass(frozen=True)
class Scope:
    """What a formula is about: a load, the group's window, and the rows that one rank holds."""

    workload: Workload
    group: LayerGroup
    share: Share = WHOLE

    def is_dealt(self, counted: Counted) -> bool:
        """Whether the rows are dealt out over context ranks: those of tokens, without a window."""
        return self.share.ranks > 1 and counted.axis is Axis.DECODER and counted.to_tokens is None

    def held(self, counted: Counted) -> tuple[int, int]:
        """Return the rows of one sequence here, and how many of them further sequences do not need again."""
        load = self.workload
        rows = counted.rows(load.tokens_on(counted.axis))
        shared = counted.shared_rows(load.context_tokens, load.shared_prefix_tokens)
        return (self.share.of(rows), self.share.of(shared)) if self.is_dealt(counted) else (rows, shared)

    def total(self, counted: Counted) -> int:
        """Return the rows of all sequences here."""
        rows, shared = self.held(counted)
        return self.workload.sequences * rows - (self.workload.sequences - 1) * shared


def element_bytes(stream: StreamDemand) -> Fraction | None:
    """Return the bytes of an element, or None where scales or padding make a row more than that.

    ggml blocks share their scale over a fixed number of elements, which makes an exact binary fraction.
    """
    storage = get_format(stream.dtype)
    if storage.row_block:
        return Fraction(storage.row_block_bytes, storage.row_block)
    packing = storage.roles.get(stream.role, storage.default)
    if packing is None or packing.scale_bytes or packing.pad_bytes:
        return None
    return Fraction(packing.bits, 8)


def row_count(stream: StreamDemand, scope: Scope) -> tuple[str, Symbols, tuple[Definition, ...]]:
    """Return the factor that counts rows over all sequences, its symbols and their definitions."""
    counted, workload = stream.counted, scope.workload
    if counted.axis is Axis.SEQUENCE:  # allocated ahead where there are many of them
        ahead: Symbols = {"n_max": stream.factor} if stream.factor != 1 else {}
        return "n_max × B" if ahead else "B", {**ahead, "B": workload.sequences}, ()
    times = f"{stream.factor} × " if stream.factor != 1 else ""
    text, values = _one_sequence(counted, scope)
    symbols: Symbols = {**values, "B": workload.sequences}
    if not workload.shared_prefix_tokens or counted.axis is not Axis.DECODER:
        return f"{times}{text} × B", symbols, ()
    own, shared = scope.held(counted)
    symbols |= {"N": scope.total(counted), "n": own, "n_shared": shared}
    symbols["T_pre"] = workload.shared_prefix_tokens
    window = values.get("W") is not None
    start = f"max(0, T_pre - (T - {_tokens(counted, scope)[0]}))" if window else "T_pre"
    definitions = (
        Definition("N", "B × n - (B - 1) × n_shared"),
        Definition("n", text),
        Definition("n_shared", _stepped(start, replace(counted, rounding=Rounding.FLOOR), scope)),
    )
    return f"{times}N", symbols, definitions


def _one_sequence(counted: Counted, scope: Scope) -> tuple[str, Symbols]:
    """Return the rows of one sequence that are held here."""
    text, values = _tokens(counted, scope)
    if counted.step_tokens != 1:
        values["m"] = counted.step_tokens
    if scope.is_dealt(counted):
        values["N_dcp"] = scope.share.ranks
        if scope.share.place:
            values["i"] = scope.share.place
    return _stepped(text, counted, scope), values


def _tokens(counted: Counted, scope: Scope) -> tuple[str, Symbols]:
    """Return the tokens of one sequence that have rows."""
    name = AXIS_SYMBOLS[counted.axis]
    values: Symbols = {name: scope.workload.tokens_on(counted.axis)}
    if counted.to_tokens is None:
        return name, values
    window, values["W"] = _window(counted.to_tokens, scope.group.window_tokens)
    return f"min({name}, {window})", values


def _stepped(tokens: str, counted: Counted, scope: Scope) -> str:
    """Return the rows that tokens make, and of those the ones of a context rank."""
    text = f"{counted.rounding.value}({tokens} / m)" if counted.step_tokens != 1 else tokens
    if scope.is_dealt(counted):
        text = f"ceil(({text} - i) / N_dcp)" if scope.share.place else f"ceil({text} / N_dcp)"
    return text


def _window(kept: int, window: int | None) -> tuple[str, int]:
    """Return the window in terms of the config's: an engine may keep one row less."""
    if window is None or window == kept:
        return "W", kept
    return (f"W - {window - kept}" if window > kept else f"W + {kept - window}"), window


def generic_form(demand: GroupDemand, scope: Scope) -> GroupFormula:
    """Return L times the sum of every kind of row, each its bytes times how many are held.

    Parts of one kind are put together, so that a count that is made by subtraction shows what is left.
    """
    kinds: dict[tuple[object, ...], list[StreamDemand]] = {}
    for stream in demand.streams:
        kind = (stream.role, stream.vectors, stream.width, stream.columns, stream.dtype)
        kinds.setdefault(kind, []).append(stream)
    symbols: Symbols = {"L": demand.group.num_layers}
    parts: list[str] = []
    definitions: list[Definition] = []
    named: dict[str, StreamDemand] = {}
    for streams in kinds.values():
        held = sum(s.factor * scope.total(s.counted) for s in streams)
        if not held:
            continue
        first, number = streams[0], len(parts) + 1
        row, count = f"R_{number}", f"n_{number}"
        symbols |= {row: first.row_bytes // first.factor, count: held}
        named |= {row: first, count: first}
        parts.append(f"{row} × {count}")
        definitions += [*_row_definition(row, first), *_count_definition(count, streams, scope, symbols)]
    if not parts:
        return GroupFormula("0", {})
    text = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
    return GroupFormula(f"L × {text}", symbols, tuple(definitions), named)


def _row_definition(symbol: str, stream: StreamDemand) -> list[Definition]:
    size = element_bytes(stream)
    if size is None:
        return []
    shape = [n for n in (stream.vectors, stream.width, stream.columns) if n != 1] or [1]
    return [Definition(symbol, " × ".join(map(str, [*shape, json_number(size)])))]


def _count_definition(
    symbol: str, streams: list[StreamDemand], scope: Scope, symbols: Symbols
) -> list[Definition]:
    """Spell out a count; what is dealt out over ranks or shared by sequences stays a number."""
    load = scope.workload
    if load.shared_prefix_tokens or any(scope.is_dealt(s.counted) for s in streams):
        return []
    text = ""
    for stream in streams:
        rows, axis = _count_text(stream.counted), stream.counted.axis
        if axis in AXIS_SYMBOLS:
            symbols[AXIS_SYMBOLS[axis]] = load.tokens_on(axis)
        size = abs(stream.factor)
        term = rows if size == 1 else str(size) if rows == "1" else f"{size} × {rows}"
        sign = " - " if stream.factor < 0 else " + " if text else ""
        text += f"{sign}{term}" if text or stream.factor > 0 else f"0 - {term}"
    symbols["B"] = load.sequences
    return [Definition(symbol, f"B × ({text})" if len(streams) > 1 else f"B × {text}")]


def _count_text(counted: Counted) -> str:
    if counted.axis is Axis.SEQUENCE:
        return "1"
    text = AXIS_SYMBOLS[counted.axis]
    if counted.to_tokens is not None:
        text = f"min({text}, {counted.to_tokens})"
    if counted.from_tokens:
        text = f"max(0, {text} - {counted.from_tokens})"
    return f"{counted.rounding.value}({text} / {counted.step_tokens})" if counted.step_tokens > 1 else text
