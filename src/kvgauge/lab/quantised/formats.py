"""Cache formats as codes and scales: encode K or V, decode them, count the bytes of both arrays.

A format says how an element is coded and which elements share a scale. Arrays are (tokens, heads, width).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvgauge.lab.codes import (
    E2M1,
    E4M3,
    E5M2,
    Floats,
    MiniFloat,
    from_bf16,
    pack_pairs,
    to_bf16,
    unpack_pairs,
)

Codes = NDArray[Any]

_BLOCK = 16  # elements that share a scale in NVFP4


class Scaling(StrEnum):
    """Which elements share a scale."""

    NONE = "none"
    TENSOR = "tensor"  # one scale for all; a constant of the layer, kept with its weights
    TOKEN_HEAD = "token_head"  # noqa: S105 - one fp32 scale for each token and head, kept in the cache
    BLOCK16 = "block16"  # one e4m3 scale for 16 elements, kept in the cache, over one constant of the tensor


@dataclass(frozen=True, slots=True)
class Quantised:
    """One stored array.

    Args:
        codes: as they lie in the cache.
        scales: those that lie in the cache; None where there are none.
        constant: the scale of the whole tensor, kept outside.
    """

    codes: Codes
    scales: Codes | None
    constant: float

    @property
    def num_bytes(self) -> int:
        """Bytes in the cache: codes and scales."""
        return self.codes.nbytes + (0 if self.scales is None else self.scales.nbytes)


@dataclass(frozen=True, slots=True)
class Coding:
    """How one element, already scaled, becomes a code.

    Args:
        largest: what the largest element of a group is scaled to; 0 where nothing is scaled.
        multiple: widths must be a multiple of this.
    """

    bits: int
    largest: float
    encode: Callable[[Floats], Codes]
    decode: Callable[[Codes], Floats]
    multiple: int = 1


def _mini(kind: MiniFloat) -> Coding:
    return Coding(kind.bits, kind.largest, kind.encode, kind.decode)


def _int8(values: Floats) -> Codes:
    return np.clip(np.rint(values), -127, 127).astype(np.int8)


def _int4(values: Floats) -> Codes:
    codes = np.clip(np.rint(values), -7, 7).astype(np.int8)
    return pack_pairs((codes & 15).astype(np.uint8))


def _from_int4(packed: Codes) -> Floats:
    codes = unpack_pairs(packed).astype(np.int8)
    return np.where(codes > 7, codes - 16, codes).astype(np.float32)


_FLOAT32 = Coding(32, 0, lambda v: v.astype(np.float32), lambda c: c.astype(np.float32))
_FLOAT16 = Coding(16, 0, lambda v: v.astype(np.float16), lambda c: c.astype(np.float32))
_BFLOAT16 = Coding(16, 0, to_bf16, from_bf16)
_INT8 = Coding(8, 127, _int8, lambda c: c.astype(np.float32))
_INT4 = Coding(4, 7, _int4, _from_int4, multiple=2)
_FP4 = Coding(
    4, E2M1.largest, lambda v: pack_pairs(E2M1.encode(v)), lambda c: E2M1.decode(unpack_pairs(c)), multiple=2
)


@dataclass(frozen=True, slots=True)
class CacheFormat:
    """A named way to store K or V.

    Args:
        core_dtype: the core's name of the format; None where no engine that the core knows stores it.
    """

    name: str
    coding: Coding
    scaling: Scaling
    core_dtype: str | None

    @property
    def multiple(self) -> int:
        """What the width of a head must be a multiple of."""
        return _BLOCK if self.scaling is Scaling.BLOCK16 else self.coding.multiple

    def encode(self, values: Floats) -> Quantised:
        """Return codes and scales of (tokens, heads, width)."""
        if self.scaling is Scaling.BLOCK16:
            return self._encode_blocks(values)
        if self.scaling is Scaling.TOKEN_HEAD:
            scales = _scales(np.abs(values).max(axis=-1, keepdims=True), self.coding.largest)
            return Quantised(self.coding.encode(values / scales), scales, 1.0)
        constant = 1.0
        if self.scaling is Scaling.TENSOR:
            constant = _constant(np.abs(values), self.coding.largest)
        return Quantised(self.coding.encode(values / np.float32(constant)), None, constant)

    def decode(self, stored: Quantised) -> Floats:
        """Return the values that the codes stand for."""
        values = self.coding.decode(stored.codes)
        if stored.scales is None:
            return values * np.float32(stored.constant)
        if self.scaling is Scaling.TOKEN_HEAD:
            return values * stored.scales
        scales = E4M3.decode(stored.scales) * np.float32(stored.constant)
        return (values.reshape(*scales.shape, _BLOCK) * scales[..., None]).reshape(values.shape)

    def _encode_blocks(self, values: Floats) -> Quantised:
        """NVFP4: the constant brings block scales into e4m3's range, block scales elements into e2m1's."""
        blocks = values.reshape(*values.shape[:-1], values.shape[-1] // _BLOCK, _BLOCK)
        wanted = np.abs(blocks).max(axis=-1) / self.coding.largest
        constant = _constant(wanted, E4M3.largest)
        scales = E4M3.encode(wanted / np.float32(constant))
        divisors = E4M3.decode(scales) * np.float32(constant)
        divisors = np.where(divisors == 0, np.inf, divisors)  # a block below the smallest scale becomes zeros
        scaled = (blocks / divisors[..., None]).reshape(values.shape).astype(np.float32)
        return Quantised(self.coding.encode(scaled), scales, constant)


def _constant(sizes: Floats, code: float) -> float:
    """One scale for all of an array."""
    return float(_scales(sizes.max(initial=0, keepdims=True), code).item())


def _scales(largest: Floats, code: float) -> Floats:
    """What to divide by so that ``largest`` becomes the largest code; 1 where all is zero."""
    return np.asarray(np.where(largest > 0, largest / np.float32(code), 1.0), np.float32)


#: Formats by name. A core name means that the core's table must give the very bytes that are counted here.
FORMATS: tuple[CacheFormat, ...] = (
    CacheFormat("f32", _FLOAT32, Scaling.NONE, "f32"),
    CacheFormat("bf16", _BFLOAT16, Scaling.NONE, "bf16"),
    CacheFormat("f16", _FLOAT16, Scaling.NONE, "f16"),
    CacheFormat("fp8_e4m3_unscaled", _mini(E4M3), Scaling.NONE, "fp8_e4m3"),
    CacheFormat("fp8_e4m3", _mini(E4M3), Scaling.TENSOR, "fp8_e4m3"),
    CacheFormat("fp8_e5m2", _mini(E5M2), Scaling.TENSOR, "fp8_e5m2"),
    CacheFormat("fp8_per_token_head", _mini(E4M3), Scaling.TOKEN_HEAD, "fp8_per_token_head"),
    CacheFormat("int8", _INT8, Scaling.TENSOR, "int8"),
    CacheFormat("int8_per_token_head", _INT8, Scaling.TOKEN_HEAD, "int8_per_token_head"),
    CacheFormat("int4", _INT4, Scaling.TENSOR, None),
    CacheFormat("int4_per_token_head", _INT4, Scaling.TOKEN_HEAD, "int4_per_token_head"),
    CacheFormat("nvfp4", _FP4, Scaling.BLOCK16, "nvfp4"),
)
