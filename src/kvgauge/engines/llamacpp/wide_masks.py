"""Working buffers of builds whose masks are fp32 inputs: llama.cpp until mid-2025, and ik_llama.cpp.

The host holds such a mask and the embedded rows; a device gets both and, with flash attention, makes an fp16
mask beside. In ik_llama.cpp logits find the freed masks' room, with the last rows of hidden states twice on a
device. Held against start-up logs in public threads: the host's rule is exact in all of one device whose
layers all lie there, the logits' in all where they are the largest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.engines.llamacpp.compute import Estimate, Moment, Term, formula, value

#: Architectures that turn the hidden rows into logits without a second copy of them, as logs show.
_ROWS_ONCE = frozenset({"gemma", "gemma2", "gemma3", "gemma3n", "gemma4"})
#: Of sums that logs were met by to the printed digit, and of others.
_MET, _ABOUT = (0.97, 1.06), (0.7, 1.4)

_LOGITS: Term = (4, ("o", "V"))
_INPUTS = Moment(((4, ("ub", "C")), (4, ("ub", "W")), (4, ("ub", "d"))))
_CAST_MASKS = Moment(((6, ("ub", "C")), (6, ("ub", "W")), (8, ("ub", "d")), (8, ("ub", "h", "k"))))
_EXPANDED = Moment(((4, ("ub", "C", "h")), (4, ("ub", "C")), (8, ("ub", "h", "km")), (8, ("ub", "d"))))


def host_inputs(of: Mapping[str, int]) -> Estimate:
    """Return the pinned buffer beside a device: masks in fp32, and embedded rows."""
    return _estimate(_INPUTS, of, _MET)


def expanded_blocks(of: Mapping[str, int]) -> Estimate:
    """Return what attention over heads of K and V needs that were latents, without flash attention."""
    return _estimate(_EXPANDED, of, _ABOUT)


def fork_buffer(
    body: Estimate | None,
    of: Mapping[str, int],
    architecture: str,
    *,
    plain: bool,
    logits: bool,
    device: bool,
) -> Estimate | None:
    """Return a buffer of ik_llama.cpp.

    Args:
        body: what the blocks need, logits apart.
        plain: without flash attention.
        logits: the output layer lies there.
    """
    found = [] if body is None else [body]
    if not plain:
        found.append(_estimate(_CAST_MASKS, of, _MET))
    if logits:
        rows = 8 if device and architecture not in _ROWS_ONCE else 4
        found.append(_estimate(Moment((_LOGITS, (rows, ("o", "d")))), of, _MET))
    if not found:
        return None
    largest = max(found, key=lambda each: each.bytes)
    return replace(largest, low=max(each.low for each in found), high=max(each.high for each in found))


def _estimate(moment: Moment, of: Mapping[str, int], about: tuple[float, float]) -> Estimate:
    size = round(value(moment, of))
    return Estimate(size, round(size * about[0]), round(size * about[1]), formula(moment))


__all__ = ["expanded_blocks", "fork_buffer", "host_inputs"]
