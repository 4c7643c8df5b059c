"""Bytes of the weights of each rank as an engine counts them once they are loaded."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvgauge.preparing import Prepared
    from kvgauge.weight_answer import WeightAnswer


def loaded_weights(prepared: Prepared, weighed: WeightAnswer) -> tuple[int, ...]:
    """Return the bytes of every rank's weights as the engine counts them once loaded."""
    request = prepared.request
    if weighed.elsewhere:
        return weighed.per_rank_bytes
    if weighed.placement:
        sizes = tuple(size for place, size in weighed.placement if place != "host")
        return (*sizes, *(0,) * (max(1, request.parallelism.pipeline) - len(sizes)))
    if request.engine not in ("vllm", "sglang") or not weighed.stored.families:
        return weighed.per_rank_bytes
    from kvgauge.engines import sglang_load, vllm_load  # noqa: PLC0415 - other engines need none
    from kvgauge.readers.hf.rotary import read_rotary  # noqa: PLC0415 - as above

    rotary = read_rotary(prepared.model.raw.config)
    loaded_bytes = partial(vllm_load.loaded_bytes, version=request.engine_version)
    if request.engine == "sglang":
        card = prepared.setup.card
        is_cuda = card is None or card.capability is not None
        loaded_bytes = partial(sglang_load.loaded_bytes, wide_tables=is_cuda)
    kind, spread = prepared.architecture.model_type, request.parallelism
    stages = (
        loaded_bytes(weighed.rank_tensors(stage), rotary, model_type=kind) for stage in range(spread.pipeline)
    )
    return tuple(size for size in stages for _ in range(spread.tensor))


__all__ = ["loaded_weights"]
