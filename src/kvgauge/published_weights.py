"""Quantised checkpoints of a model that the catalogue knows: the same layers in fewer bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kvgauge.models import Model, load
from kvgauge.sources.catalogue import quantised_checkpoints


def smaller_checkpoints(model: Model, below_bytes: int, *, least_first: bool = False) -> Iterator[Model]:
    """Yield published checkpoints whose layers keep what the model's do, of fewer bytes, largest first.

    Args:
        below_bytes: of the weights that they are to be smaller than.
        least_first: the smallest first.

    >>> model = load("Qwen/Qwen3-8B")
    >>> found = smaller_checkpoints(model, model.weighed.stored.num_bytes)
    >>> next(found).raw.id, next(found).raw.id
    ('RedHatAI/Qwen3-8B-FP8-dynamic', 'Qwen/Qwen3-8B-FP8')
    """
    known = quantised_checkpoints(model.raw.id)
    for name, num_bytes in reversed(known) if least_first else known:
        if num_bytes < below_bytes:
            found = published_model(name)
            if found.architecture.layers == model.architecture.layers:
                yield found


@lru_cache(maxsize=16)
def published_model(name: str) -> Model:
    """Return a model of the catalogue or the local caches; several questions ask for the same few.

    Raises:
        KvgaugeError: it is not found there.
    """
    return load(name, offline=True, local_files=False)


__all__ = ["published_model", "smaller_checkpoints"]
