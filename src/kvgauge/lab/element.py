"""Bytes of one element that is held on its own, without scales."""

from __future__ import annotations

from kvgauge.dtypes import canonical_dtype, row_bytes
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import Role


def plain_element(dtype: str) -> tuple[str, int]:
    """Return the canonical name of a dtype and the bytes of one of its elements.

    Raises:
        KvgaugeError: no engine uses this word, or its elements have no whole bytes of their own.

    >>> plain_element("half")
    ('f16', 2)
    """
    name = canonical_dtype(dtype)
    size, rest = divmod(row_bytes(name, Role.KEY, 1, 64), 64)
    if rest or not size:
        raise FeatureUnsupportedError(
            f"activations are not held in {name}", hint="fp32, bf16, fp16 or fp8", field="dtype"
        )
    return name, size
