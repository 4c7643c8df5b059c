"""Formats that several quantisers share. Sources: compressed-tensors 0.20, vLLM 0.33, ModelOpt, AutoGPTQ."""

from __future__ import annotations

from kvgauge.weight_formats import Tile, WeightFormat

SCALAR = 4  #: bytes of an fp32 number


def fp8_tensor(*, input_scale: bool, scale_bytes: int = SCALAR) -> WeightFormat:
    """One scale a tensor, and one for its inputs where activations are static."""
    return WeightFormat("fp8", 8, per_tensor_bytes=scale_bytes * (1 + input_scale))


def fp8_channel(scale_bits: int = 32, *, input_scale: bool = False) -> WeightFormat:
    """One scale an output."""
    return WeightFormat("fp8", 8, (Tile(1, 0, scale_bits),), per_tensor_bytes=SCALAR * input_scale)


def fp8_blocks(rows: int, columns: int, scale_bits: int = 32) -> WeightFormat:
    """One scale a block, blocks at the edges whole.

    >>> fp8_blocks(128, 128).stored_bytes((576, 7168))  # 5 x 56 scales of 4 bytes
    4129888
    """
    return WeightFormat("fp8", 8, (Tile(rows, columns, scale_bits),))


def mxfp8() -> WeightFormat:
    """e8m0 scales of 32 values."""
    return WeightFormat("mxfp8", 8, (Tile(1, 32, 8),))


def nvfp4(group_size: int = 16, *, input_scale: bool) -> WeightFormat:
    """fp8 scales of 16 values, an fp32 scale a tensor, and one for its inputs."""
    return WeightFormat("nvfp4", 4, (Tile(1, group_size, 8),), per_tensor_bytes=SCALAR * (1 + input_scale))


def mxfp4(group_size: int = 32) -> WeightFormat:
    """e8m0 scales of 32 values.

    >>> mxfp4().stored_bytes((5760, 2880))
    8812800
    """
    return WeightFormat("mxfp4", 4, (Tile(1, group_size, 8),))


def gptq(bits: int, group_size: int, *, index: bool = True) -> WeightFormat:
    """int32 words along the inputs, fp16 scales and packed zero points of each group, ``g_idx``."""
    group = max(group_size, 0)
    tiles = (Tile(1, group, 16), Tile(1, group, bits, word_bits=32))
    return WeightFormat(f"int{bits}", bits, tiles, word_bits=32, per_input_bytes=4 * index)


def awq(bits: int, group_size: int) -> WeightFormat:
    """int32 words along the outputs, fp16 scales and packed zero points of each group.

    >>> awq(4, 128).stored_bytes((4096, 4096))
    8716288
    """
    group = max(group_size, 0)
    tiles = (Tile(1, group, 16), Tile(1, group, bits, word_bits=32))
    return WeightFormat(f"int{bits}", bits, tiles, word_bits=32, packed_dim=-2)
