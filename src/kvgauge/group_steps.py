"""The step of one layer group: what is stored, in words that follow what is stored and not what could be."""

from __future__ import annotations

from dataclasses import replace

from kvgauge.dtypes import display_dtype
from kvgauge.engines.base import GroupDemand, StreamDemand
from kvgauge.formulas import GROUP_ELEMENTS, GroupFormula, group_formula, packed_bits
from kvgauge.layers import STATE_KINDS, Axis, LayerKind, Mechanism, Role
from kvgauge.origins import Origin, origin_of
from kvgauge.steps import Facts, Step

_ROW_ROLES = frozenset({Role.KEY, Role.VALUE, Role.LATENT, Role.ROPE, Role.RECORD, Role.INDEX})
_WINDOWS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})
#: Names of groups that are the engine's own.
_OWN = frozenset({"unkept", "draft"})


def group_step(number: int, facts: Facts) -> Step:
    """Return the step of the ``number``-th group of the answer."""
    demand, words, fields = facts.cache.demand.groups[number], facts.words, facts.fields
    group = demand.group
    formula = fields.spell_out(group_formula(demand, facts.cache.workload), group)
    paths, meanings = symbol_texts(formula, demand, facts)
    config = [path for path in paths.values() if not path.startswith("--")]
    own = fields.of_group(group)
    return Step(
        f"group.{group.name}",
        group_title(demand, facts),
        words.sentences(_texts(demand, facts)),
        formula.formula,
        formula.symbols,
        facts.cache.group_bytes[number],
        words.source(_source(demand, facts)),
        ", ".join(dict.fromkeys(config or own)) or None,
        paths,
        meanings,
        {**{p: fields.values[p] for p in config if p in fields.values}, **own},
        formula.definitions,
    )


def _source(demand: GroupDemand, facts: Facts) -> str:
    """Return the key of what a group's bytes rest on."""
    if demand.is_engines_own:
        return _own_variant(demand)
    return "cells" if demand.streams and facts.cache.demand.in_cells else demand.group.mechanism.value


def symbol_texts(
    formula: GroupFormula, demand: GroupDemand, facts: Facts
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the paths and the meanings of a formula's symbols."""
    words = facts.words
    paths: dict[str, str] = {}
    meanings: dict[str, str] = {}
    defined = {d.symbol for d in formula.definitions}
    for name, value in formula.symbols.items():
        sense = "blocks" if name == "m" and demand.block_tokens else demand.group.mechanism.value
        meaning = words.symbol(name, sense) or name
        stream = formula.rows.get(name) or _packed_row(name, demand)
        if stream is not None:
            is_pair = name == "R" and stream.role is Role.KEY
            role = words.phrase("pair" if is_pair else stream.role.value, "roles")
            dtype = display_dtype(stream.dtype)
            meaning = words.phrase("row_of", meaning=meaning, role=role, dtype=dtype)
        elif name not in defined:
            origin = (
                Origin() if demand.is_engines_own and name == "L" else origin_of(name, value, demand, facts)
            )
            if origin.path:
                paths[name] = origin.path
            if origin.phrase:
                meaning = words.phrase(origin.phrase, meaning=meaning, dtype=origin.dtype)
        meanings[name] = meaning
    return paths, meanings


def _packed_row(name: str, demand: GroupDemand) -> StreamDemand | None:
    """Return the stream behind the bytes of a row or vector that carries its scales."""
    roles = {"R_k": {Role.KEY}, "R_v": {Role.VALUE}, "R": _ROW_ROLES}.get(name, set())
    return next((s for s in demand.streams if s.role in roles), None)


def group_title(demand: GroupDemand, facts: Facts, num_layers: int | None = None) -> str:
    """Return the shown name of a group, with how many of its layers are meant."""
    words, group = facts.words, demand.group
    layers = group.num_layers if num_layers is None else num_layers
    kind = words.title("kinds", group.kind.value)
    if demand.is_engines_own:
        title = words.title("variants", _own_variant(demand))
    elif demand.streams:
        section, key = _mechanism(demand, facts)
        design = words.title(section, key)
        title = words.phrase("group_title", kind=kind, design=design, layers=layers)
    else:
        title = words.phrase("group_idle", kind=kind, layers=layers)
    return words.phrase("mtp_title", title=title) if group.name.startswith("mtp_") else title


def _texts(demand: GroupDemand, facts: Facts) -> list[str]:
    words, group = facts.words, demand.group
    counted = [s.counted for s in (group.streams if demand.block_tokens else demand.streams)]
    steps = [c.step_tokens for c in counted if c.step_tokens > 1]
    values: dict[str, object] = {"window": group.window_tokens or 0, "step": steps[0] if steps else 1}
    section, key, more = _kind(demand, facts)
    kind = words.text(section, key, **{**values, **more})
    if not demand.streams:
        return [kind]
    if demand.is_engines_own:
        return [kind]
    section, key = _mechanism(demand, facts)
    return [words.text(section, key, **values), kind]


def _mechanism(demand: GroupDemand, facts: Facts) -> tuple[str, str]:
    """Return the section and key of the words for the design of a group, as it is stored."""
    group, roles = demand.group, {s.role for s in demand.streams}
    variant = None
    match group.mechanism:
        case Mechanism.LATENT_ATTENTION if Role.LATENT not in roles:
            variant = "expanded_latent"
        case Mechanism.LATENT_ATTENTION if Role.ROPE not in roles:
            variant = "latent_without_rope"
        case Mechanism.SPARSE_INDEX if not demand.block_tokens and any(
            s.counted.step_tokens > 1 for s in demand.streams
        ):
            variant = "pooled_index"
        case Mechanism.COMPRESSED_ATTENTION:
            variant = _compressed(demand, facts)
    return ("variants", variant) if variant else ("mechanisms", group.mechanism.value)


def _compressed(demand: GroupDemand, facts: Facts) -> str | None:
    group = demand.group
    match group.kind:
        case LayerKind.SLIDING:
            twice = any(s.factor == 2 for s in demand.streams)
            return "record_window_twice" if twice else "record_window"
        case LayerKind.INDEX:
            return "record_index"
        case LayerKind.COMPRESSED:
            indexed = {
                index
                for other in facts.cache.demand.groups
                if other.group.kind is LayerKind.INDEX
                for index in other.group.indices
            }
            return "csa" if set(group.indices) & indexed else "hca"
    return None


def rows_ahead(demand: GroupDemand) -> int | None:
    """Return the rows a layer that are allocated before the first token, None where rows follow tokens."""
    declared = {s.counted.axis for s in demand.group.streams}
    rows = [s for s in demand.streams if s.role in _ROW_ROLES]
    if not rows or Axis.SEQUENCE in {s.counted.axis for s in rows} & declared:
        return None
    return rows[0].factor if all(s.counted.axis is Axis.SEQUENCE for s in rows) else None


def _kind(demand: GroupDemand, facts: Facts) -> tuple[str, str, dict[str, object]]:
    """Return section, key and values of the words for how rows of a group come and go."""
    group, streams = demand.group, demand.streams
    if not streams:
        if group.streams:
            return "variants", "absent", {}
        encoder = group.kind is LayerKind.NONE and facts.cache.architecture.encoder_only
        return ("variants", "encoder", {}) if encoder else ("kinds", group.kind.value, {})
    variant, values = _in_cells(demand) if facts.cache.demand.in_cells else (None, {})
    if variant is None:
        variant, values = _variant(demand)
    return ("variants", variant, values) if variant else ("kinds", _stored_kind(demand).value, {})


def _stored_kind(demand: GroupDemand) -> LayerKind:
    """Return the kind of what is stored: expanded latents are the rows of full attention."""
    expanded = demand.group.kind is LayerKind.LATENT and Role.LATENT not in {s.role for s in demand.streams}
    return LayerKind.FULL if expanded else demand.group.kind


def _own_variant(demand: GroupDemand) -> str:
    """Return the key of the words for bytes that are no layer's, by the name that the engine gives them."""
    name = demand.group.name.partition(".")[0]
    return name if name in _OWN else "padding"


def _variant(demand: GroupDemand) -> tuple[str | None, dict[str, object]]:
    """Return the key and values of the words where an engine holds other rows than the kind says."""
    group, streams = demand.group, demand.streams
    in_blocks = _in_blocks(demand)
    if in_blocks is not None:
        return in_blocks
    kept = streams[0].counted.to_tokens
    ahead = rows_ahead(demand)
    if ahead is not None:
        return "static", {"ahead": ahead}
    bits = next((b for s in streams if (b := packed_bits(s))), None)
    if bits is not None:
        residual = max(s.counted.step_tokens for s in streams)
        return "quantized", {"bits": bits, "block": GROUP_ELEMENTS, "residual": residual}
    if group.kind in _WINDOWS and kept != group.window_tokens:
        return ("window_engine", {"kept": kept}) if kept is not None else ("window_ignored", {})
    rings = [s for s in streams if s.role is Role.COMPRESSOR and s.counted.axis is Axis.SEQUENCE]
    return ("waiting" if group.kind is LayerKind.COMPRESSED and not rings else None), {}


def _in_cells(demand: GroupDemand) -> tuple[str | None, dict[str, object]]:
    """Return key and values of the words where rows lie in cells that are allocated ahead."""
    streams, is_window = demand.streams, demand.group.kind in _WINDOWS
    rows = [s for s in streams if s.counted.axis is Axis.DECODER]
    if demand.group.kind in STATE_KINDS:
        return "state_rows", {"rows": streams[0].factor}
    if not rows:
        return None, {}
    if demand.pooled:
        return ("window_cells_shared" if is_window else "cells_shared"), {"cells": demand.pooled[0].factor}
    kept, step = rows[0].counted.to_tokens, rows[0].counted.step_tokens
    if kept is not None:
        return "window_cells", {"kept": kept}
    is_record = any(s.counted.step_tokens > 1 for s in demand.group.streams)
    return ("record_cells" if is_record else "cells"), {"block": step}


def _in_blocks(demand: GroupDemand) -> tuple[str, dict[str, object]] | None:
    """Return key and values of the words where rows lie in blocks, or bytes between them; else None."""
    group, streams, block = demand.group, demand.streams, demand.block_tokens
    if demand.is_engines_own:
        return _own_variant(demand), {}
    if (
        group.kind in STATE_KINDS
        and streams[0].factor > 1
        and all(s.role is not Role.PADDING for s in streams)
    ):
        return "state_slots", {"pages": streams[0].factor}
    if group.kind in STATE_KINDS and any(s.role is Role.PADDING for s in streams):
        return "state_pages", {"pages": streams[0].factor}
    if block and streams[0].counted.to_tokens is not None:
        return "window_blocks", {"kept": streams[0].counted.to_tokens, "block": block}
    return ("blocks", {"block": block}) if block and group.kind is LayerKind.FULL else None


def with_meanings(step: Step, facts: Facts) -> Step:
    """Return the step with a meaning for every symbol; those that follow from others say so."""
    words = facts.words
    meanings = {name: words.symbol(name) or name for name in step.symbols} | dict(step.symbol_meanings)
    for definition in step.definitions:
        meanings[definition.symbol] = words.phrase("defined", meaning=meanings[definition.symbol])
    return replace(step, symbol_meanings=meanings)
