"""Nemotron-NAS (DeciLM): one feed-forward width a block, as a multiple of the hidden size."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.errors import InvalidFieldError
from kvgauge.readers.hf.config import ConfigView

#: Wider than any multiple that a model has.
MAX_FACTOR = 1024
#: Widths are rounded up to this (``find_multiple`` in the checkpoints' ``modeling_decilm.py``).
_GRAIN = 256


def block_ffn(view: ConfigView, index: int) -> float:
    """Return the width of a block's MLP as a multiple, 0 where the block has none.

    Raises:
        MissingFieldError: the config does not say. InvalidFieldError: no multiple, or a linear map instead.
    """
    blocks = view.items("block_configs") or ()
    block = blocks[index] if index < len(blocks) else None
    ffn = block.get("ffn") if isinstance(block, Mapping) else None
    factor = ffn.get("ffn_mult") if isinstance(ffn, Mapping) else None
    if not isinstance(ffn, Mapping) or (factor is None and not ffn.get("no_op")):
        raise view.missing(f"block_configs[{index}].ffn", "gives the width of the MLP")
    where = view.path + "block_configs"
    if ffn.get("replace_with_linear"):
        raise InvalidFieldError("an MLP replaced by a linear map is not known", field=where)
    if ffn.get("no_op"):
        return 0
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 <= factor <= MAX_FACTOR:
        raise InvalidFieldError("ffn_mult must be a positive number", field=where)
    return factor


def block_widths(view: ConfigView, count: int, hidden: int) -> list[int]:
    """Return the width of every block's MLP, two thirds of the multiple for a gated one.

    Raises:
        MissingFieldError, InvalidFieldError: as ``block_ffn``.

    >>> from kvgauge.readers.hf.config import ReadLog
    >>> blocks = [{"ffn": {"ffn_mult": 5.25}}, {"ffn": {"no_op": True}}]
    >>> block_widths(ConfigView({"block_configs": blocks}, ReadLog()), 2, 8192)
    [28672, 0]
    """
    widths = (int(2 * block_ffn(view, index) * hidden / 3) for index in range(count))
    return [-(-width // _GRAIN) * _GRAIN for width in widths]


__all__ = ["MAX_FACTOR", "block_ffn", "block_widths"]
