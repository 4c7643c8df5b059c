"""Formulas of layer groups in the article's symbols, each with the numbers that fill it.

A formula evaluates to the group's bytes exactly (``kvgauge.arithmetic.evaluate``; a test compares). ``×``
multiplies, ``min``, ``floor`` and ``ceil`` mean what they say. A symbol that is itself computed has a
definition, which evaluates to the symbol's value.

Symbols: L layers, H_kv KV heads, D head width, T tokens, B sequences, b bytes an element, W window, m tokens
a compressed row, r latent width, d_rope rope width, R bytes a row or vector, S state elements, C channels,
K kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from kvgauge.dtypes import get_format
from kvgauge.engines.base import GroupDemand, StreamDemand
from kvgauge.layers import Axis, Counted, Mechanism, Role
from kvgauge.units import json_number
from kvgauge.workload import Workload

Number = int | float
Symbols = dict[str, Number]


class Definition(NamedTuple):
    """How a symbol follows from others."""

    symbol: str
    formula: str


class GroupFormula(NamedTuple):
    """A formula, the values of its symbols, and the definitions of those that are computed."""

    formula: str
    symbols: Mapping[str, Number]
    definitions: tuple[Definition, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the JSON fields."""
        return {
            "formula": self.formula,
            "symbols": dict(self.symbols),
            "definitions": {d.symbol: d.formula for d in self.definitions},
        }


def group_formula(demand: GroupDemand, workload: Workload) -> GroupFormula:
    """Return the formula of one group under a load."""
    streams = demand.streams
    if not streams:
        return GroupFormula("0", {})
    roles = {s.role for s in streams}
    if any(s.factor != 1 or s.counted.from_tokens for s in streams):
        return _generic(demand, workload)
    if roles & {Role.RECURRENT, Role.CONV}:
        return _state(demand, workload)
    if len({s.counted for s in streams if s.counted.axis is not Axis.SEQUENCE}) > 1:
        return _generic(demand, workload)
    if [s.role for s in streams] == [Role.KEY, Role.VALUE] and streams[0].vectors == streams[1].vectors:
        return _attention(demand, workload)
    return _row_form(demand, workload)


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


def vector_bytes_form(stream: StreamDemand, width: str) -> str:
    """Return the bytes of one vector as a formula of its width's symbol, scales and padding spelled out."""
    packing = get_format(stream.dtype).roles.get(stream.role, get_format(stream.dtype).default)
    if packing is None:
        return f"{width} × {json_number(element_bytes(stream) or Fraction(1))}"
    bits = packing.bits
    text = (
        width if bits == 8 else f"{width} × {bits // 8}" if bits % 8 == 0 else f"ceil({width} × {bits} / 8)"
    )
    if packing.scale_bytes and packing.scale_block:
        each = f" × {packing.scale_bytes}" if packing.scale_bytes > 1 else ""
        text += f" + ceil({width} / {packing.scale_block}){each}"
    elif packing.scale_bytes:
        text += f" + {packing.scale_bytes}"
    return text + (f" + {packing.pad_bytes}" if packing.pad_bytes else "")


def _rows(counted: Counted, workload: Workload) -> tuple[str, Symbols, tuple[Definition, ...]]:
    """Return the factor that counts rows over all sequences, its symbols and their definitions."""
    if counted.axis is Axis.SEQUENCE:
        return "B", {"B": workload.sequences}, ()
    if workload.shared_prefix_tokens and counted.axis is Axis.DECODER:
        own = counted.rows(workload.context_tokens)
        shared = counted.shared_rows(workload.context_tokens, workload.shared_prefix_tokens)
        total = workload.sequences * own - (workload.sequences - 1) * shared
        symbols: Symbols = {"N": total, "B": workload.sequences, "n": own, "n_shared": shared}
        return "N", symbols, (Definition("N", "B × n - (B - 1) × n_shared"),)
    name = {Axis.DECODER: "T", Axis.ENCODER: "T_enc", Axis.IMAGE: "T_img"}[counted.axis]
    values: Symbols = {name: workload.tokens_on(counted.axis), "B": workload.sequences}
    text = name
    if counted.to_tokens is not None:
        text, values["W"] = f"min({text}, W)", counted.to_tokens
    if counted.step_tokens != 1:
        text, values["m"] = f"{counted.rounding.value}({text} / m)", counted.step_tokens
    return f"{text} × B", values, ()


def _attention(demand: GroupDemand, workload: Workload) -> GroupFormula:
    key, value = demand.streams
    rows, symbols, definitions = _rows(key.counted, workload)
    head: Symbols = {"L": demand.group.num_layers, "H_kv": key.vectors}
    size_k, size_v = element_bytes(key), element_bytes(value)
    if size_k is None or size_v is None:
        return _packed_attention(demand, rows, head | symbols, definitions)
    if size_k != size_v:
        pairs: Symbols = {
            "D_k": key.width,
            "b_k": json_number(size_k),
            "D_v": value.width,
            "b_v": json_number(size_v),
        }
        text = f"L × H_kv × (D_k × b_k + D_v × b_v) × {rows}"
        return GroupFormula(text, {**head, **pairs, **symbols}, definitions)
    size: Symbols = {"b": json_number(size_k)}
    if key.width == value.width:
        text = f"L × 2 × H_kv × D × {rows} × b"
        return GroupFormula(text, {**head, "D": key.width, **symbols, **size}, definitions)
    widths: Symbols = {"D_k": key.width, "D_v": value.width}
    text = f"L × H_kv × (D_k + D_v) × {rows} × b"
    return GroupFormula(text, {**head, **widths, **symbols, **size}, definitions)


def _packed_attention(
    demand: GroupDemand, rows: str, symbols: Symbols, definitions: tuple[Definition, ...]
) -> GroupFormula:
    """K and V vectors that carry scales: R bytes a vector, spelled out."""
    key, value = demand.streams
    if vector_bytes_form(key, "D") == vector_bytes_form(value, "D") and key.width == value.width:
        defined = (Definition("R", vector_bytes_form(key, "D")), *definitions)
        values: Symbols = {**symbols, "D": key.width, "R": key.row_bytes // key.vectors}
        return GroupFormula(f"L × 2 × H_kv × R × {rows}", values, defined)
    defined = (
        Definition("R_k", vector_bytes_form(key, "D_k")),
        Definition("R_v", vector_bytes_form(value, "D_v")),
        *definitions,
    )
    values = {**symbols, "D_k": key.width, "D_v": value.width}
    values |= {"R_k": key.row_bytes // key.vectors, "R_v": value.row_bytes // value.vectors}
    return GroupFormula(f"L × H_kv × (R_k + R_v) × {rows}", values, defined)


_WIDTH_SYMBOLS = {
    Role.LATENT: "r",
    Role.ROPE: "d_rope",
    Role.RECORD: "d_nope",
    Role.INDEX: "d_idx",
    Role.KEY: "D_k",
    Role.VALUE: "D_v",
}


def _row_form(demand: GroupDemand, workload: Workload) -> GroupFormula:
    """Latents, records and index keys (L x row x rows), with the compressor's ring beside them."""
    growing = [s for s in demand.streams if s.counted.axis is not Axis.SEQUENCE]
    fixed = [s for s in demand.streams if s.counted.axis is Axis.SEQUENCE]
    if len({s.role for s in growing}) < len(growing) or any(s.columns != 1 for s in growing):
        return _generic(demand, workload)
    symbols: Symbols = {"L": demand.group.num_layers}
    definitions: list[Definition] = []
    parts: list[str] = []
    if growing:
        row, row_symbols, row_definitions = _row_text(growing)
        rows, more, more_definitions = _rows(growing[0].counted, workload)
        size = row_symbols.pop("b", None)
        parts.append(f"{row} × {rows}" + (" × b" if size is not None else ""))
        symbols |= {**row_symbols, **more, **({} if size is None else {"b": size})}
        definitions += [*row_definitions, *more_definitions]
    if fixed:
        element = {element_bytes(s) for s in fixed}
        if len(fixed) > 1 or None in element:
            return _generic(demand, workload)
        ring = fixed[0]
        parts.append("S × b_S × B")
        symbols |= {"S": ring.vectors * ring.width, "n_ring": ring.vectors, "d_ring": ring.width}
        symbols |= {"b_S": json_number(element.pop() or Fraction(0)), "B": workload.sequences}
        definitions.append(Definition("S", "n_ring × d_ring"))
    text = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
    return GroupFormula(f"L × {text}", symbols, tuple(definitions))


def _row_text(streams: Sequence[StreamDemand]) -> tuple[str, Symbols, list[Definition]]:
    """Return the elements of a row with b apart, or R with its definition where scales are packed in."""
    symbols: Symbols = {}
    names: list[str] = []
    for stream in streams:
        name = _WIDTH_SYMBOLS.get(stream.role, "d")
        symbols[name] = stream.width
        if stream.vectors != 1:
            symbols["H_" + name] = stream.vectors
            name = f"H_{name} × {name}"
        names.append(name)
    sizes = {element_bytes(s) for s in streams}
    if len(sizes) == 1 and None not in sizes:
        symbols["b"] = json_number(sizes.pop() or Fraction(0))
        return (names[0] if len(names) == 1 else f"({' + '.join(names)})"), symbols, []
    parts: list[str] = []
    for stream in streams:
        form = vector_bytes_form(stream, _WIDTH_SYMBOLS.get(stream.role, "d"))
        heads = f"H_{_WIDTH_SYMBOLS.get(stream.role, 'd')}"
        parts.append(form if stream.vectors == 1 else f"{heads} × ({form})")
    symbols["R"] = sum(s.row_bytes for s in streams)
    return "R", symbols, [Definition("R", " + ".join(parts))]


def _state(demand: GroupDemand, workload: Workload) -> GroupFormula:
    """State and convolution columns, one set a sequence."""
    states = [s for s in demand.streams if s.role is Role.RECURRENT]
    convs = [s for s in demand.streams if s.role is Role.CONV]
    sizes = [{element_bytes(s) for s in part} for part in (states, convs)]
    columns = {s.columns for s in convs}
    if (
        len(states) + len(convs) < len(demand.streams)
        or len(columns) > 1
        or any(None in s or len(s) > 1 for s in sizes)
    ):
        return _generic(demand, workload)
    symbols: Symbols = {"L": demand.group.num_layers, "B": workload.sequences}
    parts: list[str] = []
    definitions: list[Definition] = []
    if states:
        symbols |= {
            "S": sum(s.vectors * s.width for s in states),
            "b_S": json_number(sizes[0].pop() or Fraction(0)),
        }
        parts.append("S × b_S")
        if len(states) == 1 and states[0].vectors > 1 and states[0].width > 1:
            symbols |= {"H_S": states[0].vectors, "N_S": states[0].width}
            definitions.append(Definition("S", "H_S × N_S"))
    if convs and columns != {0}:
        text, kernel = _columns_text(demand, columns.pop())
        symbols |= {
            **kernel,
            "C": sum(s.vectors * s.width for s in convs),
            "b_C": json_number(sizes[1].pop() or Fraction(0)),
        }
        parts.append(f"{text} × b_C")
    text = " + ".join(parts) if parts else "0"
    return GroupFormula(
        f"L × B × ({text})" if len(parts) > 1 else f"L × B × {text}", symbols, tuple(definitions)
    )


def _columns_text(demand: GroupDemand, columns: int) -> tuple[str, Symbols]:
    """Return the convolution's elements: K - 1 columns must be kept, some engines keep K."""
    if demand.group.mechanism is Mechanism.RWKV:
        return "C", {}
    kept = next((s.columns for s in demand.group.streams if s.role is Role.CONV), columns)
    return ("C × (K - 1)", {"K": columns + 1}) if columns == kept else ("C × K", {"K": columns})


def _generic(demand: GroupDemand, workload: Workload) -> GroupFormula:
    """L x N, with N the sum of every kind of row, each its bytes times how many are held."""
    symbols: Symbols = {"L": demand.group.num_layers}
    parts: list[str] = []
    total = 0
    for number, stream in enumerate(demand.streams, start=1):
        tokens = workload.tokens_on(stream.counted.axis)
        shared = stream.counted.shared_rows(workload.context_tokens, workload.shared_prefix_tokens)
        rows = workload.sequences * stream.counted.rows(tokens) - (workload.sequences - 1) * shared
        symbols |= {f"R_{number}": stream.row_bytes, f"n_{number}": rows}
        parts.append(f"R_{number} × n_{number}")
        total += stream.row_bytes * rows
    return GroupFormula("L × N", symbols | {"N": total}, (Definition("N", " + ".join(parts)),))


__all__ = ["Definition", "GroupFormula", "Number", "element_bytes", "group_formula", "vector_bytes_form"]
