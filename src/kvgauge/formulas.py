"""Formulas of layer groups in the article's symbols, each with the numbers that fill it.

A formula evaluates to the group's bytes exactly (``kvgauge.arithmetic.evaluate``; a test compares). ``×``
multiplies, ``min``, ``floor`` and ``ceil`` mean what they say. A symbol that is itself computed has a
definition, which evaluates to the symbol's value.

Symbols: L layers, H_kv KV heads, D head width, T tokens, B sequences, b bytes an element, W window, m tokens
a compressed row, r latent width, d_rope rope width, R bytes a row or vector, S state elements, C channels,
K kernel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from kvgauge.dtypes import get_format
from kvgauge.engines.base import GroupDemand, StreamDemand
from kvgauge.formula_rows import (
    WHOLE,
    Definition,
    GroupFormula,
    Number,
    Scope,
    Share,
    Symbols,
    element_bytes,
    generic_form,
    row_count,
)
from kvgauge.layers import Axis, Counted, Mechanism, Role
from kvgauge.units import json_number
from kvgauge.workload import Workload

#: Elements of a group that share a scale and a zero of 16 bits each, in quantised caches of Transformers.
GROUP_ELEMENTS = 64
#: The factor of sequences, where it stands among others.
_SEQUENCES = re.compile(r" × B\b|\bB × ")
_GROUPED = {f"int{bits}_group{GROUP_ELEMENTS}": bits for bits in (2, 4, 8)}


def group_formula(demand: GroupDemand, workload: Workload, share: Share = WHOLE) -> GroupFormula:
    """Return the formula of one group under a load; ``share``: of one context-parallel rank."""
    return (_pooled if demand.pooled else _each)(demand, workload, share)


def _each(demand: GroupDemand, workload: Workload, share: Share) -> GroupFormula:
    """Return the formula of rows that every sequence has for itself."""
    streams, scope = demand.streams, Scope(workload, demand.group, share)
    if not streams:
        return GroupFormula("0", {})
    roles = {s.role for s in streams}
    factors = {s.factor for s in streams}
    if any(s.counted.from_tokens or s.factor < 1 for s in streams):
        return _quantized(demand, scope) or generic_form(demand, scope)
    if roles & {Role.RECURRENT, Role.CONV}:
        return _state(demand, scope) if factors == {1} else generic_form(demand, scope)
    rows = {(s.counted, s.factor) for s in streams if s.role is not Role.COMPRESSOR}
    if len(rows) > 1 or any(s.role is Role.COMPRESSOR and not _is_ring(s) for s in streams):
        return generic_form(demand, scope)
    if [s.role for s in streams] == [Role.KEY, Role.VALUE] and streams[0].vectors == streams[1].vectors:
        return _attention(demand, scope)
    return _row_form(demand, scope)


def _pooled(demand: GroupDemand, workload: Workload, share: Share) -> GroupFormula:
    """Return the formula of what all sequences share: the one of a single sequence, without their number."""
    alone = replace(workload, sequences=1, shared_prefix_tokens=0)
    found = _each(replace(demand, streams=demand.pooled, pooled=()), alone, share)
    texts = [_SEQUENCES.sub("", text) for text in (found.formula, *(d.formula for d in found.definitions))]
    symbols = {name: value for name, value in found.symbols.items() if name != "B"}
    definitions = tuple(
        d._replace(formula=text) for d, text in zip(found.definitions, texts[1:], strict=True)
    )
    return replace(found, formula=texts[0], symbols=symbols, definitions=definitions)


def _is_ring(stream: StreamDemand) -> bool:
    return stream.role is Role.COMPRESSOR and stream.counted.axis is Axis.SEQUENCE and stream.factor == 1


def packed_bits(stream: StreamDemand) -> int | None:
    """Return the bits of an element of a quantised cache with scales over groups, None for other formats."""
    return _GROUPED.get(stream.dtype)


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


def _attention(demand: GroupDemand, scope: Scope) -> GroupFormula:
    key, value = demand.streams
    rows, symbols, definitions = row_count(key, scope)
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
        values: Symbols = {**symbols, "D": key.width, "R": _vector_bytes(key)}
        return GroupFormula(f"L × 2 × H_kv × R × {rows}", values, defined)
    defined = (
        Definition("R_k", vector_bytes_form(key, "D_k")),
        Definition("R_v", vector_bytes_form(value, "D_v")),
        *definitions,
    )
    values = {**symbols, "D_k": key.width, "D_v": value.width}
    values |= {"R_k": _vector_bytes(key), "R_v": _vector_bytes(value)}
    return GroupFormula(f"L × H_kv × (R_k + R_v) × {rows}", values, defined)


_WIDTH_SYMBOLS = {
    Role.LATENT: "r",
    Role.ROPE: "d_rope",
    Role.RECORD: "d_nope",
    Role.INDEX: "d_idx",
    Role.KEY: "D_k",
    Role.VALUE: "D_v",
}


def _row_form(demand: GroupDemand, scope: Scope) -> GroupFormula:
    """Latents, records and index keys (L x row x rows), with the compressor's ring beside them."""
    growing = [s for s in demand.streams if not _is_ring(s)]
    fixed = [s for s in demand.streams if _is_ring(s)]
    if len({s.role for s in growing}) < len(growing) or any(s.columns != 1 for s in growing):
        return generic_form(demand, scope)
    symbols: Symbols = {"L": demand.group.num_layers}
    definitions: list[Definition] = []
    parts: list[str] = []
    if growing:
        row, row_symbols, row_definitions = _row_text(growing)
        rows, more, more_definitions = row_count(growing[0], scope)
        size = row_symbols.pop("b", None)
        parts.append(f"{row} × {rows}" + (" × b" if size is not None else ""))
        symbols |= {**row_symbols, **more, **({} if size is None else {"b": size})}
        definitions += [*row_definitions, *more_definitions]
    if fixed:
        element = {element_bytes(s) for s in fixed}
        if len(fixed) > 1 or None in element:
            return generic_form(demand, scope)
        ring = fixed[0]
        parts.append("S × b_S × B")
        symbols |= {"S": ring.vectors * ring.width, "n_ring": ring.vectors, "d_ring": ring.width}
        symbols |= {"b_S": json_number(element.pop() or Fraction(0)), "B": scope.workload.sequences}
        definitions.append(Definition("S", "n_ring × d_ring"))
    text = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
    return GroupFormula(f"L × {text}", symbols, tuple(definitions))


def _row_text(streams: Sequence[StreamDemand]) -> tuple[str, Symbols, list[Definition]]:
    """Return the elements of a row with b apart, or R with its definition where scales are packed in."""
    text, symbols = _row_elements(streams)
    sizes = {element_bytes(s) for s in streams}
    if len(sizes) == 1 and None not in sizes:
        symbols["b"] = json_number(sizes.pop() or Fraction(0))
        return text, symbols, []
    parts: list[str] = []
    for stream in streams:
        form = vector_bytes_form(stream, _WIDTH_SYMBOLS.get(stream.role, "d"))
        heads = f"H_{_WIDTH_SYMBOLS.get(stream.role, 'd')}"
        parts.append(form if stream.vectors == 1 else f"{heads} × ({form})")
    symbols["R"] = sum(s.row_bytes // s.factor for s in streams)
    return "R", symbols, [Definition("R", " + ".join(parts))]


def _state(demand: GroupDemand, scope: Scope) -> GroupFormula:
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
        return generic_form(demand, scope)
    symbols: Symbols = {"L": demand.group.num_layers, "B": scope.workload.sequences}
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


def _quantized(demand: GroupDemand, scope: Scope) -> GroupFormula | None:
    """Rows packed in few bits, and the newest tokens still in 16; None where there is more to it."""
    packed = [s for s in demand.streams if packed_bits(s) and s.counted == Counted() and s.factor == 1]
    plain = [s for s in demand.streams if not packed_bits(s) and s.factor == 1 and s.counted.step_tokens == 1]
    steps = {s.counted.step_tokens for s in demand.streams} - {1}
    if not packed or [s.role for s in packed] != [s.role for s in plain] or len(steps) != 1:
        return None
    if len({s.dtype for s in plain}) > 1:
        return None
    size, load = element_bytes(plain[0]) or Fraction(0), scope.workload
    tokens, prompt, residual = load.context_tokens, plain[0].counted.from_tokens, steps.pop()
    tail = max(0, tokens - prompt) % residual
    text, symbols = _row_elements(packed)
    symbols = {"L": demand.group.num_layers, **symbols, "T": tokens, "B": load.sequences}
    symbols |= {"n_q": tokens - tail, "b_q": json_number(element_bytes(packed[0]) or Fraction(0))}
    symbols |= {"n_t": tail, "b": json_number(size), "T_p": prompt, "T_res": residual}
    later = "max(0, T - T_p)"
    definitions = (
        Definition("n_q", "T - n_t"),
        Definition("n_t", f"{later} - T_res × floor({later} / T_res)"),
        Definition("b_q", f"{packed_bits(packed[0])} / 8 + (2 + 2) / {GROUP_ELEMENTS}"),
    )
    elements = sum(s.vectors * s.width for s in packed)
    row = (tokens - tail) * (element_bytes(packed[0]) or 0) + tail * size
    if load.sequences * elements * row != sum(s.row_bytes * scope.total(s.counted) for s in demand.streams):
        return None
    return GroupFormula(f"L × {text} × B × (n_q × b_q + n_t × b)", symbols, definitions)


def _row_elements(streams: Sequence[StreamDemand]) -> tuple[str, Symbols]:
    """Return the elements of a row: heads and widths of K and V, or the widths of other rows."""
    if [s.role for s in streams] == [Role.KEY, Role.VALUE] and streams[0].vectors == streams[1].vectors:
        key, value = streams
        head: Symbols = {"H_kv": key.vectors}
        if key.width == value.width:
            return "2 × H_kv × D", head | {"D": key.width}
        return "H_kv × (D_k + D_v)", head | {"D_k": key.width, "D_v": value.width}
    symbols: Symbols = {}
    names: list[str] = []
    for stream in streams:
        name = _WIDTH_SYMBOLS.get(stream.role, "d")
        symbols[name] = stream.width
        if stream.vectors != 1:
            symbols["H_" + name] = stream.vectors
        names.append(name if stream.vectors == 1 else f"H_{name} × {name}")
    return (names[0] if len(names) == 1 else f"({' + '.join(names)})"), symbols


def _vector_bytes(stream: StreamDemand) -> int:
    return stream.row_bytes // stream.factor // stream.vectors


__all__ = ["Definition", "GroupFormula", "Number", "Share", "element_bytes", "group_formula", "packed_bits"]
