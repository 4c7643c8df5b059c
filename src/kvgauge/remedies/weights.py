"""Changes of the weights: a quantised checkpoint that is published, or a scheme to quantise to oneself."""

from __future__ import annotations

from collections.abc import Iterator

from kvgauge.fit_asking import Posed
from kvgauge.published_weights import smaller_checkpoints
from kvgauge.remedies.changes import Change

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
    for model in smaller_checkpoints(question.model, posed.weighed.total_bytes):
        name = model.raw.id
        yield Change("published_quantisation", {"model": name, "weights": None}, name)


def quantised(posed: Posed) -> Iterator[Change]:
    """Price the weights in a scheme that the checkpoint does not have, least lossy first."""
    if posed.question.no_weights or posed.weighed is None:
        return
    reads_gguf = posed.search.prepared.engine.reads_gguf
    for scheme in _GGML_SCHEMES if reads_gguf else _SCHEMES:
        yield Change("own_quantisation", {"weights": scheme}, " ".join(("--weights", scheme)))


__all__ = ["published", "quantised"]
