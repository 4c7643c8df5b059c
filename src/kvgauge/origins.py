"""Where the value of a symbol comes from: a config field, an option, a default, the design or the engine."""

from __future__ import annotations

from typing import NamedTuple

from kvgauge.dtypes import display_dtype
from kvgauge.engines.base import GroupDemand, StreamDemand
from kvgauge.formulas import Number, packed_bits
from kvgauge.layers import Role
from kvgauge.steps import OPTIONS, Facts

_DTYPE_OPTIONS = {"b": "--kv-dtype", "b_k": "--k-dtype", "b_v": "--v-dtype", "b_S": "--state-dtype"}
_BESIDE = frozenset({Role.RECURRENT, Role.CONV, Role.COMPRESSOR})
_FIXED_BY_DESIGN = frozenset({Role.INDEX, Role.COMPRESSOR})


class Origin(NamedTuple):
    """A dotted path or an option, or else the phrase that says why, and the dtype that it is about."""

    path: str | None = None
    phrase: str | None = None
    dtype: str = ""


def origin_of(name: str, value: Number, demand: GroupDemand, facts: Facts) -> Origin:
    """Return where a symbol of a group's formula comes from; an empty origin where it is computed."""
    if name in OPTIONS:
        return Origin(OPTIONS[name])
    if name in ("n_max", "T_p"):
        return _reserved(value, demand, facts)
    if name in ("b", "b_k", "b_v", "b_S", "b_C"):
        streams = [s for s in demand.streams if _is_about(name, s)]
        return _dtype_origin(name, streams[0], demand, facts) if streams else Origin()
    return Origin(facts.fields.path_of(name, value, demand.group))


def _reserved(value: Number, demand: GroupDemand, facts: Facts) -> Origin:
    """Return what states the rows that are allocated ahead: a window, the engine's words, or the context."""
    if value == demand.group.window_tokens:
        return Origin(facts.fields.path_of("W", value, demand.group))
    words = ("max_cache_len=", "prompt=")
    told = any(word in facts.result.request.engine_args for word in words)
    return Origin("--engine-args" if told else "--context")


def _is_about(name: str, stream: StreamDemand) -> bool:
    roles = {
        "b_k": {Role.KEY},
        "b_v": {Role.VALUE},
        "b_S": {Role.RECURRENT, Role.COMPRESSOR},
        "b_C": {Role.CONV},
    }
    if name in roles:
        return stream.role in roles[name]
    return stream.role not in _BESIDE and not packed_bits(stream)


def _dtype_origin(name: str, stream: StreamDemand, demand: GroupDemand, facts: Facts) -> Origin:
    architecture, request = facts.result.model.architecture, facts.result.request
    asked = request.dtypes
    word = {Role.RECURRENT: asked.state, Role.INDEX: asked.index, Role.VALUE: asked.v}.get(
        stream.role, asked.k
    )
    if stream.role not in (Role.CONV, Role.COMPRESSOR) and word == stream.dtype:
        return Origin("--index-dtype" if stream.role is Role.INDEX else _DTYPE_OPTIONS[name])
    shown = display_dtype(stream.dtype)
    declared = {s.declared_dtype for s in demand.group.streams if s.role is stream.role}
    if stream.dtype in declared:
        path = facts.fields.path_of("b_S", None, demand.group) if stream.role is Role.RECURRENT else None
        return Origin(path) if path else Origin(phrase="by_design", dtype=shown)
    if stream.role is Role.RECURRENT and stream.dtype == "f32":
        return Origin(phrase="by_option_default", dtype=shown)
    if (
        stream.role not in _BESIDE
        and request.engine == "theory"
        and architecture.prescribed_kv_dtype == stream.dtype
    ):
        return Origin(architecture.prescribed_by)
    if stream.dtype != architecture.model_dtype:
        return Origin(phrase="by_engine", dtype=shown)
    path = facts.fields.dtype_path
    return Origin(path) if path else Origin(phrase="by_option_default", dtype=shown)
