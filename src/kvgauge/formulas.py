"""Formulas of layer groups in the article's symbols, each with the numbers that fill it.

A formula evaluates to the group's bytes: a test puts the symbols in and compares. ``×`` multiplies, ``min``, ``floor``
and ``ceil`` mean what they say.

Symbols: L layers, H_kv KV heads, D head width, T tokens, B sequences, b bytes an element, W window, m tokens a
compressed row, r latent width, d_rope rope width, R bytes a row, S state elements, C channels, K kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from kvgauge.engines.base import GroupDemand, StreamDemand
from kvgauge.layers import Axis, Mechanism, Role
from kvgauge.units import json_number
from kvgauge.workload import Workload

Number = int | float


@dataclass(frozen=True, slots=True)
class GroupFormula:
    """A formula and the values of its symbols."""

    formula: str
    symbols: Mapping[str, Number]

    def to_dict(self) -> dict[str, object]:
        """Return the two JSON fields."""
        return {"formula": self.formula, "symbols": dict(self.symbols)}


def group_formula(demand: GroupDemand, workload: Workload) -> GroupFormula:
    """Return the formula of one group under a load."""
    builder = _BUILDERS.get(demand.group.mechanism, _generic)
    if not demand.streams:
        return GroupFormula("0", {})
    if any(s.factor != 1 for s in demand.streams):
        return _generic(demand, workload)
    return builder(demand, workload)


def element_bytes(stream: StreamDemand) -> Fraction:
    """Return the mean bytes of an element, scales included."""
    return Fraction(stream.row_bytes, stream.vectors * stream.width * stream.columns)


def _rows(stream: StreamDemand, workload: Workload) -> tuple[str, dict[str, Number]]:
    """Return the factor that counts rows over all sequences, and its symbols."""
    counted = stream.counted
    if counted.axis is Axis.SEQUENCE:
        return "B", {"B": workload.sequences}
    if workload.shared_prefix_tokens and counted.axis is Axis.DECODER:
        shared = counted.shared_rows(workload.context_tokens, workload.shared_prefix_tokens)
        rows = counted.rows(workload.context_tokens)
        total = workload.sequences * rows - (workload.sequences - 1) * shared
        return "N", {"N": total}
    name = {Axis.DECODER: "T", Axis.ENCODER: "T_enc", Axis.IMAGE: "T_img"}[counted.axis]
    symbols: dict[str, Number] = {name: workload.tokens_on(counted.axis), "B": workload.sequences}
    text = name
    if counted.to_tokens is not None:
        text, symbols["W"] = f"min({text}, W)", counted.to_tokens
    if counted.step_tokens != 1:
        text, symbols["m"] = f"{counted.rounding.value}({text} / m)", counted.step_tokens
    return f"{text} × B", symbols


def _attention(demand: GroupDemand, workload: Workload) -> GroupFormula:
    key, value = demand.streams
    rows, symbols = _rows(key, workload)
    head: dict[str, Number] = {"L": demand.group.num_layers, "H_kv": key.vectors}
    size_k, size_v = element_bytes(key), element_bytes(value)
    if key.vectors != value.vectors or (size_k != size_v and key.dtype == value.dtype):
        return _generic(demand, workload)
    if size_k == size_v and key.width == value.width:
        return GroupFormula(
            f"L × 2 × H_kv × D × {rows} × b", {**head, "D": key.width, **symbols, "b": json_number(size_k)}
        )
    if size_k == size_v:
        widths: dict[str, Number] = {"D_k": key.width, "D_v": value.width}
        return GroupFormula(
            f"L × H_kv × (D_k + D_v) × {rows} × b", {**head, **widths, **symbols, "b": json_number(size_k)}
        )
    widths = {"D_k": key.width, "b_k": json_number(size_k), "D_v": value.width, "b_v": json_number(size_v)}
    return GroupFormula(f"L × H_kv × (D_k × b_k + D_v × b_v) × {rows}", {**head, **widths, **symbols})


def _latent(demand: GroupDemand, workload: Workload) -> GroupFormula:
    sizes = {element_bytes(s) for s in demand.streams}
    if len(sizes) != 1 or any(s.role not in (Role.LATENT, Role.ROPE) for s in demand.streams):
        return _row_form(demand, workload)
    rows, symbols = _rows(demand.streams[0], workload)
    widths: dict[str, Number] = {"r": demand.streams[0].width}
    text = "r"
    if len(demand.streams) > 1:
        text, widths["d_rope"] = "(r + d_rope)", demand.streams[1].width
    values = {"L": demand.group.num_layers, **widths, **symbols, "b": json_number(sizes.pop())}
    return GroupFormula(f"L × {text} × {rows} × b", values)


def _row_form(demand: GroupDemand, workload: Workload) -> GroupFormula:
    """L x (rows x R + fixed): for packed rows whose bytes are not width x b."""
    growing = [s for s in demand.streams if s.counted.axis is not Axis.SEQUENCE]
    fixed = [s for s in demand.streams if s.counted.axis is Axis.SEQUENCE]
    symbols: dict[str, Number] = {"L": demand.group.num_layers}
    if len({s.counted for s in growing}) > 1:
        return _generic(demand, workload)
    parts: list[str] = []
    if growing:
        rows, more = _rows(growing[0], workload)
        parts.append(f"R × {rows}")
        symbols |= {"R": sum(s.row_bytes for s in growing), **more}
    if fixed:
        parts.append("S × b_S × B")
        sizes = {element_bytes(s) for s in fixed}
        if len(sizes) > 1:
            return _generic(demand, workload)
        elements = sum(s.vectors * s.width * s.columns for s in fixed)
        symbols |= {"S": elements, "b_S": json_number(sizes.pop()), "B": workload.sequences}
    text = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
    return GroupFormula(f"L × {text}", symbols)


def _state(demand: GroupDemand, workload: Workload) -> GroupFormula:
    states = [s for s in demand.streams if s.role is Role.RECURRENT]
    convs = [s for s in demand.streams if s.role is Role.CONV]
    symbols: dict[str, Number] = {"L": demand.group.num_layers, "B": workload.sequences}
    parts: list[str] = []
    if states:
        symbols |= {
            "S": sum(s.vectors * s.width for s in states),
            "b_S": json_number(element_bytes(states[0])),
        }
        parts.append("S × b_S")
    if convs:
        columns = convs[0].columns
        channels = sum(s.vectors * s.width for s in convs)
        kept = next((s.columns for s in demand.group.streams if s.role is Role.CONV), columns)
        if demand.group.mechanism is Mechanism.RWKV:
            text = "C"
        elif columns == kept:
            text, symbols["K"] = "C × (K - 1)", columns + 1
        else:
            text, symbols["K"] = "C × K", columns
        symbols |= {"C": channels, "b_C": json_number(element_bytes(convs[0]))}
        parts.append(f"{text} × b_C")
    text = parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"
    return GroupFormula(f"L × B × {text}", symbols)


def _generic(demand: GroupDemand, workload: Workload) -> GroupFormula:
    """L x B x R, with R the bytes of one layer and sequence (or L x N where a prefix is shared)."""
    one = demand.sequence_bytes(workload)
    if workload.shared_prefix_tokens:
        total = workload.sequences * one - (workload.sequences - 1) * demand.shared_bytes(workload)
        return GroupFormula("L × R", {"L": demand.group.num_layers, "R": total})
    return GroupFormula("L × B × R", {"L": demand.group.num_layers, "B": workload.sequences, "R": one})


_STATE_MECHANISMS = (
    Mechanism.GATED_DELTA_NET,
    Mechanism.KIMI_DELTA,
    Mechanism.LIGHTNING,
    Mechanism.MAMBA1,
    Mechanism.MAMBA2,
    Mechanism.SHORT_CONVOLUTION,
    Mechanism.INKLING_CONVOLUTIONS,
    Mechanism.RG_LRU,
    Mechanism.RWKV,
    Mechanism.GATED_LINEAR,
)

_BUILDERS: Mapping[Mechanism, Callable[[GroupDemand, Workload], GroupFormula]] = {
    Mechanism.ATTENTION: _attention,
    Mechanism.CROSS_ATTENTION: _attention,
    Mechanism.LATENT_ATTENTION: _latent,
    Mechanism.SPARSE_INDEX: _row_form,
    Mechanism.BLOCK_INDEX: _row_form,
    Mechanism.COMPRESSED_ATTENTION: _row_form,
    **dict.fromkeys(_STATE_MECHANISMS, _state),
}
