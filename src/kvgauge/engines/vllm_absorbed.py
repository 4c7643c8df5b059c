"""Copies of a latent attention's projections that vLLM's first engine kept, absorbed into one another.

Source: ``attention/backends/mla/utils.py`` of 0.7.3 (``process_weights_after_loading``): beside the tensors
of the checkpoint W_Q_UK and W_UV_O in the weights' own width, and the rotary rows of queries in 16 bits.
Held against two logs, of 0.7.1 and 0.7.3 (within 0.3 and 0.1 %).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvgauge.engines.vllm.versions import parse_version
from kvgauge.sharding import RankTensor
from kvgauge.weights import Part

_SINCE, _UNTIL = parse_version("0.7.1.dev0"), parse_version("0.8.0.dev0")
_FROM_LATENT, _TO_LATENT, _OUT = "kv_b_proj.weight", "kv_a_proj_with_mqa.weight", "o_proj.weight"
_QUERIES = ("q_b_proj.weight", "q_proj.weight")
_ROTARY_BYTES = 2


def absorbs(version: str | None) -> bool:
    """Return whether a version keeps absorbed copies.

    >>> absorbs("0.7.3"), absorbs("0.8.0"), absorbs(None)
    (True, False, False)
    """
    return version is not None and _SINCE <= parse_version(version) < _UNTIL


def absorbed_sizes(tensors: Iterable[RankTensor]) -> Iterator[int]:
    """Yield the bytes of each absorbed copy of a rank, layer by layer; none for models without latents."""
    own = (tensor for tensor in tensors if tensor.layers and tensor.family.part is not Part.MTP)
    last = {_last(tensor): tensor for tensor in own}
    queries = next((last[name] for name in _QUERIES if name in last), None)
    if queries is None or not {_FROM_LATENT, _TO_LATENT, _OUT} <= last.keys():
        return
    up, down, out = last[_FROM_LATENT], last[_TO_LATENT], last[_OUT]
    latent = up.shape[1]
    rotary = down.shape[0] - latent
    plain = up.shape[0] - out.shape[1]
    heads = (queries.shape[0] - plain) // rotary if rotary > 0 else 0
    each = 1 if out.form.value_bits == 8 else 2
    for _ in up.layers:
        yield queries.shape[1] * heads * latent * each
        yield heads * latent * out.shape[0] * each
        yield queries.shape[1] * heads * rotary * _ROTARY_BYTES


def _last(tensor: RankTensor) -> str:
    return ".".join(tensor.family.name.rsplit(".", 2)[-2:])
