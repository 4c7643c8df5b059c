"""Quantised checkpoints of a model that the catalogue knows: the same layers in fewer bytes."""

from __future__ import annotations

from kvgauge.errors import KvgaugeError
from kvgauge.models import Model, load
from kvgauge.sources.catalogue import quantised_names


def smaller_checkpoints(model: Model, below_bytes: int) -> tuple[Model, ...]:
    """Return published checkpoints whose layers keep what the model's do, of fewer bytes, largest first.

    Args:
        below_bytes: of the weights that they are to be smaller than.

    >>> model = load("Qwen/Qwen3-8B")
    >>> [found.raw.id for found in smaller_checkpoints(model, model.weighed.stored.num_bytes)][:2]
    ['RedHatAI/Qwen3-8B-FP8-dynamic', 'Qwen/Qwen3-8B-FP8']
    """
    found: list[tuple[int, str, Model]] = []
    for name in quantised_names(model.raw.id):
        other = _same_layers(name, model)
        size = None if other is None else _stored_bytes(other)
        if other is not None and size is not None and size < below_bytes:
            found.append((size, name, other))
    return tuple(other for *_, other in sorted(found, key=lambda row: row[:2], reverse=True))


def _same_layers(name: str, model: Model) -> Model | None:
    """Return the model of a name where its layers keep what those of another do."""
    try:
        found = load(name, offline=True, local_files=False)
    except KvgaugeError:
        return None
    return found if found.architecture.layers == model.architecture.layers else None


def _stored_bytes(model: Model) -> int | None:
    try:
        stored = model.weighed.stored
    except KvgaugeError:
        return None
    return None if stored is None else stored.num_bytes


__all__ = ["smaller_checkpoints"]
