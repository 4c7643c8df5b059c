"""Weights that a flag keeps in the host's memory: vLLM's and SGLang's ``--cpu-offload-gb``.

Both move parameters of the decoder's blocks, whole and in order, until the bytes are reached
(``maybe_offload_to_cpu`` of vLLM, ``OffloaderV1`` of SGLang); embedding, head and encoders stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.weights import Part

if TYPE_CHECKING:
    from kvgauge.preparing import Prepared
    from kvgauge.weight_answer import WeightAnswer

#: Parts that lie in the decoder's blocks.
_BLOCKS = frozenset({
    Part.ATTENTION, Part.LINEAR_ATTENTION, Part.MAMBA, Part.CONVOLUTION, Part.INDEXER, Part.MLP, Part.EXPERTS,
    Part.SHARED_EXPERTS, Part.ROUTER, Part.NORM,
})  # fmt: skip


def movable_share(weighed: WeightAnswer) -> float:
    """Return which share of a rank's weights lies in the decoder's blocks, 0 to 1."""
    total = sum(row.num_bytes for row in weighed.by_part)
    blocks = sum(row.num_bytes for row in weighed.by_part if row.part in _BLOCKS)
    return blocks / total if total else 0.0


def on_devices(prepared: Prepared, weighed: WeightAnswer, loaded: tuple[int, ...]) -> tuple[int, ...]:
    """Return the bytes of each rank's weights that stay on its device.

    Args:
        loaded: of each rank, all on the device.
    """
    asked = prepared.engine.host_weight_bytes(prepared.request.engine_args)
    if not asked:
        return loaded
    share = movable_share(weighed)
    return tuple(size - min(asked, int(size * share)) for size in loaded)


__all__ = ["movable_share", "on_devices"]
