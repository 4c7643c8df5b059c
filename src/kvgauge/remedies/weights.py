"""Changes of the weights: a quantised checkpoint that is published, or a scheme to quantise to oneself."""

from __future__ import annotations

from collections.abc import Iterator

from kvgauge.fit_asking import Posed
from kvgauge.models import Model
from kvgauge.published_weights import smaller_checkpoints
from kvgauge.remedies.changes import Change, tried
from kvgauge.units import MAX_SIZE_BYTES
from kvgauge.weight_answer import LOADED_AT_LEAST

#: Schemes by engine, least lossy first; engines that are not named take the first.
_SCHEMES = ("fp8", "int4")
_GGML_SCHEMES = ("q8_0", "q6_k", "q5_k_m", "q4_k_m", "q3_k_m", "iq2_xxs")


def published(posed: Posed) -> Iterator[Change]:
    """Take a quantised checkpoint of the same model that the catalogue knows, largest first."""
    question = posed.question
    if (
        question.no_weights
        or posed.weighed is None
        or question.model.raw.overrides
        or posed.search.prepared.engine.reads_gguf
    ):
        return
    smaller, has_room = posed.weighed.total_bytes, False
    for model in smaller_checkpoints(question.model, min(smaller, _room_bytes(posed))):
        has_room = True
        yield _taken(model)
    if has_room:
        return
    for model in smaller_checkpoints(question.model, smaller, least_first=True):
        change = _taken(model)
        if tried(posed, change) is not None:  # none fits: the smallest that the engine takes lacks least
            yield change
            return


def _taken(model: Model) -> Change:
    name = model.raw.id
    return Change("published_quantisation", {"model": name, "weights": None}, name)


def _room_bytes(posed: Posed) -> int:
    """Return the bytes of weights, of the whole model, from which on they can't fit the GPUs, however cut."""
    search = posed.search
    if search.cards is None:
        return MAX_SIZE_BYTES
    prepared, count = search.prepared, search.prepared.request.parallelism.num_gpus
    on_host = prepared.engine.host_weight_bytes(posed.question.engine_args)
    return int(count * (search.cards.memory.high_bytes + on_host) / LOADED_AT_LEAST)


def quantised(posed: Posed) -> Iterator[Change]:
    """Price the weights in a scheme that the checkpoint does not have, least lossy first."""
    if posed.question.no_weights or posed.weighed is None:
        return
    reads_gguf = posed.search.prepared.engine.reads_gguf
    for scheme in _GGML_SCHEMES if reads_gguf else _SCHEMES:
        yield Change("own_quantisation", {"weights": scheme}, " ".join(("--weights", scheme)))


__all__ = ["published", "quantised"]
