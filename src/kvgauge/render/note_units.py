"""Notes with their sizes in the units of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.units import format_bytes

if TYPE_CHECKING:
    from kvgauge.architecture import Note
    from kvgauge.units import Units


def in_units(note: Note, units: Units) -> Note:
    """Return a note with its sizes in other units."""
    shown = {format_bytes(size): format_bytes(size, units) for size in note.sizes}
    for before, after in shown.items():
        values = tuple((name, after if value == before else value) for name, value in note.values)
        note = note._replace(message=note.message.replace(before, after), values=values)
    return note
