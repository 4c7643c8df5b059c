"""Where an option and an engine's own flag say two things, the flag wins, and a note says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.dtypes import canonical_dtype
from kvgauge.errors import KvgaugeError
from kvgauge.units import parse_tokens

if TYPE_CHECKING:
    from kvgauge.preparing import Options

#: Options that a flag for K and V together stands for.
_KV_PARTS = ("k_dtype", "v_dtype")


def flags_first(options: Options, told: Mapping[str, object]) -> tuple[Options, tuple[Note, ...]]:
    """Return the options with what the flags say in their place, and what was overruled.

    Args:
        told: name of an option -> what the flags say, as ``Engine.told`` returns it.
    """
    notes: list[Note] = []
    changes = dict(told)
    if "kv_dtype" in told:
        changes |= dict.fromkeys(_KV_PARTS)
    for name, value in told.items():
        for own in (name, *(_KV_PARTS if name == "kv_dtype" else ())):
            given = getattr(options, own)
            if given is not None and not _same(given, value):
                notes.append(_overruled(own, given, value))
    return replace(options, **changes), tuple(notes)  # type: ignore[arg-type]


def _same(given: object, told: object) -> bool:
    if isinstance(told, str) and isinstance(given, str):
        return _canonical(given) == _canonical(told)
    if isinstance(told, int) and isinstance(given, str):
        try:
            return parse_tokens(given) == told
        except KvgaugeError:
            return False
    return given == told


def _canonical(word: str) -> str:
    try:
        return canonical_dtype(word)
    except KvgaugeError:
        return word.strip().lower()


def _overruled(name: str, given: object, told: object) -> Note:
    option = f"--{name.replace('_', '-')}"
    text = f"the engine's flags go before {option} {given}: {told}"
    values = (("option", option), ("given", str(given)), ("told", str(told)))
    return Note("engine_flag_wins", "info", text, values)
