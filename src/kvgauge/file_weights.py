"""Weights from the files beside a config: by their tensors, else by a total that somebody states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from kvgauge.architecture import Note
from kvgauge.checkpoint_weights import stored_from_checkpoint
from kvgauge.sources.weight_files import FoundWeights
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weight_formats import plain
from kvgauge.weights import ModelWeights, Part, TensorFamily

_MAX_SHOWN = 3


class FileWeights(NamedTuple):
    """What files say of the weights; ``stored`` is None where they say nothing, and the notes why."""

    stored: StoredWeights | None
    notes: tuple[Note, ...] = ()


def weights_from_files(
    found: FoundWeights,
    weights: ModelWeights | None = None,
    num_layers: int = 0,
    model_dtype: str = "bf16",
    num_kv_heads: int = 0,
) -> FileWeights:
    """Return the weights that files hold, and what to say about them.

    Args:
        found: what the sources found.
        weights: tensor families of the config, where the model type is known.
        num_layers: decoder layers as the config counts them; 0: not known.
        model_dtype: the config's dtype.
        num_kv_heads: heads that a cut keeps whole, where the families don't say; 0: not known.

    Notes of the result are in ``notes``; those of ``stored`` are among them.
    """
    notes = _notes(found)
    if found.checkpoint is not None:
        stored = stored_from_checkpoint(found.checkpoint, weights, num_layers, model_dtype, num_kv_heads)
        return FileWeights(replace(stored, notes=(*stored.notes, *notes)), (*stored.notes, *notes))
    if found.total_bytes is None:
        return FileWeights(None, notes)
    return FileWeights(_total(found, found.total_bytes, weights, notes), notes)


def _total(
    found: FoundWeights, total_bytes: int, weights: ModelWeights | None, notes: tuple[Note, ...]
) -> StoredWeights:
    """Return weights of which only the bytes of all tensors together are known."""
    parameters = 0 if weights is None else weights.num_parameters
    family = TensorFamily(found.files[0] if found.files else "*", (total_bytes,), Part.OTHER)
    return StoredWeights(
        (StoredFamily(family, plain("uint8"), logical=parameters),),
        (),
        "index",
        parameters,
        None if weights is None else weights.num_active_parameters,
        "",
        (*(weights.notes if weights is not None else ()), *notes),
    )


def _notes(found: FoundWeights) -> tuple[Note, ...]:
    notes = [
        *_total_notes(found),
        *_file_notes("weights_duplicate_files", found.duplicates),
        *_file_notes("weights_files_not_counted", found.beside),
    ]
    if found.failure:
        text = f"the headers of the weight files can't be read: {found.failure}"
        notes.append(Note("weights_headers_unread", "warning", text, (("why", found.failure),)))
    return tuple(notes)


def _total_notes(found: FoundWeights) -> list[Note]:
    """Say where a total comes from, and which files it does without."""
    notes = []
    files = _some(found.files)
    if found.missing:
        missing = _some(found.missing)
        text = f"weight files are missing: {missing}"
        notes.append(Note("weights_files_missing", "warning", text, (("files", missing),)))
    if found.kind == "index" and found.total_bytes is not None:
        text = f"weights are the total that {files} states, not split by part"
        notes.append(Note("weights_index_total", "info", text, (("files", files),)))
    if found.kind == "bin" and found.total_bytes is not None:
        text = f"weights are at most the total of {files}; pickles are never opened, parts are not known"
        notes.append(Note("weights_bin_total", "info", text, (("files", files),)))
    return notes


def _file_notes(code: str, files: Sequence[str]) -> list[Note]:
    if not files:
        return []
    shown = _some(files)
    if code == "weights_duplicate_files":
        text = f"{shown}: the same weights again, counted once"
        return [Note("weights_duplicate_files", "info", text, (("files", shown),))]
    text = f"{shown}: beside the weights that are read, not counted"
    return [Note("weights_files_not_counted", "info", text, (("files", shown),))]


def _some(files: Sequence[str]) -> str:
    more = f" (+{len(files) - _MAX_SHOWN})" if len(files) > _MAX_SHOWN else ""
    return ", ".join(name[:80] for name in files[:_MAX_SHOWN]) + more
