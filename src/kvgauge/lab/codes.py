"""Number formats by their bits: bfloat16, the 8-bit floats of OCP (E4M3, E5M2) and the 4-bit one (E2M1).

NumPy has none of them. Rounding is to nearest, ties to the even code, as hardware does; what is too large
becomes the largest finite value (saturation, as cache kernels ask for). Sources: OCP 8-bit Floating Point
Specification (OFP8) 1.0, OCP Microscaling Formats (MX) 1.0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def to_bf16(values: Floats) -> NDArray[np.uint16]:
    """Return the upper 16 bits of float32 values, rounded to nearest even; NaN stays NaN.

    >>> hex(int(to_bf16(np.array([1.0], np.float32))[0]))
    '0x3f80'
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    quiet = ((bits >> 16) | 0x40).astype(np.uint16)
    return np.where(np.isnan(values), quiet, rounded)


def from_bf16(codes: NDArray[np.uint16]) -> Floats:
    """Return the float32 values of bfloat16 codes: the bits moved up, nothing computed."""
    return (codes.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True, slots=True)
class MiniFloat:
    """A float of at most 8 bits: sign, exponent, mantissa, with subnormals.

    Args:
        num_finite: non-negative codes that are finite; those above are infinity or NaN.
        nan: the code of NaN, None where the format has none (NaN is then refused by ``encode``).
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    num_finite: int
    nan: int | None
    values: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        codes = np.arange(self.num_finite)
        exponent, mantissa = codes >> self.mantissa_bits, codes & ((1 << self.mantissa_bits) - 1)
        bias = (1 << (self.exponent_bits - 1)) - 1
        is_normal = exponent > 0
        fraction = mantissa / (1 << self.mantissa_bits) + is_normal
        object.__setattr__(self, "values", np.ldexp(fraction, np.maximum(exponent, 1) - bias))

    @property
    def bits(self) -> int:
        """Bits of a code, sign included."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def largest(self) -> float:
        """The largest finite value."""
        return float(self.values[-1])

    def encode(self, numbers: Floats) -> Bytes:
        """Return the nearest codes, ties to even, saturating; one code a byte, shape kept.

        Raises:
            ValueError: a NaN in a format that has none.
        """
        numbers = np.asarray(numbers, np.float64)
        is_nan = np.isnan(numbers)
        if self.nan is None and is_nan.any():
            raise ValueError(f"{self.name} has no NaN")
        size = np.where(is_nan, 0.0, np.abs(numbers))
        between = (self.values[:-1] + self.values[1:]) / 2  # exact: both are short binary fractions
        code = np.searchsorted(between, size, side="left")
        is_tie = (code < len(between)) & (size == between[np.minimum(code, len(between) - 1)])
        code = code + (is_tie & (code % 2 == 1))
        if self.nan is not None:
            code = np.where(is_nan, self.nan, code)
        sign = np.signbit(numbers).astype(np.uint8) << (self.bits - 1)
        return (code.astype(np.uint8) | sign).astype(np.uint8)

    def decode(self, codes: Bytes) -> Floats:
        """Return the values of codes, shape kept; codes beyond the finite ones are infinity or NaN."""
        top = 1 << (self.bits - 1)
        table = np.full(top, np.nan)
        table[: self.num_finite] = self.values
        if self.nan is not None and self.num_finite < self.nan - 1:
            table[self.num_finite] = np.inf
        size = table[codes & (top - 1)]
        return np.asarray(np.where(codes & top, -size, size), np.float32)


#: One byte, no infinity: the largest is 448, code 0x7F is NaN.
E4M3 = MiniFloat("e4m3", 4, 3, 0x7F, 0x7F)
#: One byte as IEEE would have it: the largest is 57,344, code 0x7C infinity.
E5M2 = MiniFloat("e5m2", 5, 2, 0x7C, 0x7E)
#: Half a byte: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
E2M1 = MiniFloat("e2m1", 2, 1, 8, None)


def pack_pairs(codes: Bytes) -> Bytes:
    """Return two 4-bit codes a byte along the last axis, the first in the low half; its length is even."""
    return (codes[..., 0::2] | (codes[..., 1::2] << 4)).astype(np.uint8)


def unpack_pairs(packed: Bytes) -> Bytes:
    """Return the 4-bit codes of ``pack_pairs``, one a byte."""
    both = np.stack((packed & 15, packed >> 4), axis=-1)
    return both.reshape(*packed.shape[:-1], 2 * packed.shape[-1])
