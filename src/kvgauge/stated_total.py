"""A stated total beside a config: the config's parts where both agree, and what is left as one of its own."""

from __future__ import annotations

from dataclasses import replace

from kvgauge.architecture import Note
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weight_formats import plain
from kvgauge.weights import Part, TensorFamily

#: A total agrees with the config's when it exceeds it by no more than this part: buffers, headers.
_TOLERANCE = 1000
_REPLACED = frozenset({"weights_index_total", "weights_bin_total"})


def with_parts(total: StoredWeights, config: StoredWeights) -> StoredWeights | None:
    """Return the config's weights as the files must hold them, or None where their total says otherwise.

    Args:
        total: one family, whose bytes are all that the files hold.
        config: the same model from its config; a tied head may be in the files all the same.
    """
    families = config.families
    rest = total.file_bytes - config.file_bytes
    twice = [_held_twice(stored) for stored in families]
    copies = sum(stored.file_bytes for stored in twice if stored.is_duplicate)
    if copies and 0 <= rest - copies <= total.file_bytes // _TOLERANCE:
        families, rest = tuple(twice), rest - copies
    if not 0 <= rest <= total.file_bytes // _TOLERANCE:
        return None
    if rest:
        other = TensorFamily("*", (rest,), Part.OTHER)
        families = (*families, StoredFamily(other, plain("uint8"), logical=0))
    files = next((dict(note.values)["files"] for note in total.notes if note.code in _REPLACED), "")
    text = f"the total that {files} states agrees with the config's shapes"
    kept = tuple(note for note in total.notes if note.code not in _REPLACED)
    notes = (*kept, Note("weights_total_agrees", "info", text, (("files", files),)))
    return replace(config, families=families, source="index", notes=notes)


def _held_twice(stored: StoredFamily) -> StoredFamily:
    """Return a tied family as a file holds it that stores its values a second time."""
    return replace(stored, is_duplicate=True) if stored.family.tied_to else stored
