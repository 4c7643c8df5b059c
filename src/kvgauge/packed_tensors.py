"""Packed tensors of a checkpoint: how many parameters they stand for, and which way they lie.

A matrix that is quantised is several tensors under one module name; their shapes tell the bits of a value
where the dtype does not. Layouts: AutoGPTQ and AutoAWQ ``qweight`` (inputs first, int32 words),
compressed-tensors ``weight_packed`` (int32 words, or two NVFP4 values a byte), ModelOpt NVFP4 and MXFP4 (two
values a byte, a float scale for 16 or 32 values), bitsandbytes 4 bit (flat bytes), MLX (uint32 words).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

#: Integer dtypes that words of packed values have.
WORDS = frozenset({"I32", "U32"})
BYTES = frozenset({"U8", "I8"})
#: Dtypes whose elements are parameters, one each.
FLOATS = frozenset(
    {
        "F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0", "F6_E2M3",
        "F6_E3M2", "F4", "C64",
    }
)  # fmt: skip
_FLOAT_SCALES = frozenset({"F8_E4M3", "F8_E8M0", "F8_E5M2"})
_BITS = (2, 3, 4, 5, 6, 8)
#: Two values a byte: bytes of a row that share a scale, of groups of 16 and 32.
_BYTES_A_SCALE = (8, 16)
_SCALES = ("weight_scale", "weight_scale_inv", "scale", "scales", "scale_inv")


@dataclass(frozen=True, slots=True)
class Raw:
    """A tensor's dtype word of the format and its shape."""

    dtype: str
    shape: tuple[int, ...]


#: Suffix -> tensor, of one matrix, in the order of suffixes.
Matrix = tuple[tuple[str, Raw], ...]


def is_transposed(matrix: Mapping[str, Raw]) -> bool:
    """Whether a matrix lies inputs first: the ``qweight`` of GPTQ and AWQ, and what goes with it."""
    return "qweight" in matrix


@lru_cache(maxsize=4096)
def num_elements(matrix: Matrix, suffix: str, inputs: int = 0) -> int | None:
    """Return the parameters that a tensor of values stands for, or None where its shapes don't tell.

    Args:
        matrix: all tensors of the module.
        suffix: the one that holds the values.
        inputs: inputs of the matrix where they are known, else 0.

    >>> zeros, scales = ("qzeros", Raw("I32", (32, 512))), ("scales", Raw("F16", (32, 4096)))
    >>> num_elements((("qweight", Raw("I32", (512, 4096))), zeros, scales), "qweight")  # eight to a word
    16777216
    """
    tensors = dict(matrix)
    raw = tensors[suffix]
    count = prod(raw.shape)
    if suffix == "bias" or raw.dtype in FLOATS:
        return count
    if raw.dtype not in WORDS | BYTES or (not suffix and len(matrix) == 1):
        return None
    if raw.dtype in WORDS:
        bits = _word_bits(tensors, suffix, raw, inputs)
        return None if bits is None else count * 32 // bits
    if suffix == "W_q":
        return None
    return 2 * count if _is_two_a_byte(tensors, suffix, raw) else count


def _word_bits(tensors: Mapping[str, Raw], suffix: str, raw: Raw, inputs: int) -> int | None:
    """Return the bits of a value that 32-bit words hold."""
    if not all(raw.shape) or len(raw.shape) < 2:
        return None
    length = raw.shape[0] if suffix == "qweight" else raw.shape[-1]
    found = _from_zeros(tensors, suffix) or _from_awq(tensors, suffix, raw)
    for name in ("g_idx", "weight_g_idx"):
        if not found and name in tensors:
            found = _ratio(32 * length, prod(tensors[name].shape))
    return found or _ratio(32 * length, inputs)


def _from_zeros(tensors: Mapping[str, Raw], suffix: str) -> int | None:
    """Zero points are packed as values are; there is one for each scale."""
    zeros, scales = ("qzeros", "scales") if suffix == "qweight" else ("weight_zero_point", "weight_scale")
    if zeros not in tensors or scales not in tensors or tensors[zeros].dtype not in WORDS:
        return None
    return _ratio(32 * prod(tensors[zeros].shape), prod(tensors[scales].shape))


def _from_awq(tensors: Mapping[str, Raw], suffix: str, raw: Raw) -> int | None:
    """AWQ packs along the outputs, which its scales list one by one."""
    scales = tensors.get("scales")
    if suffix != "qweight" or scales is None or not scales.shape or scales.shape[-1] == raw.shape[-1]:
        return None
    return _ratio(32 * raw.shape[-1], scales.shape[-1])


def _ratio(bits: int, values: int) -> int | None:
    return bits // values if values and bits % values == 0 and bits // values in _BITS else None


def _is_two_a_byte(tensors: Mapping[str, Raw], suffix: str, raw: Raw) -> bool:
    if suffix in ("weight_packed", "packed", "blocks") or "weight.absmax" in tensors:
        return raw.dtype == "U8"
    scale = next((tensors[name] for name in _SCALES if name in tensors), None)
    if scale is None or scale.dtype not in _FLOAT_SCALES | BYTES or len(scale.shape) != len(raw.shape):
        return False
    if not raw.shape or not scale.shape[-1]:
        return False
    return raw.shape[-1] / scale.shape[-1] in _BYTES_A_SCALE
