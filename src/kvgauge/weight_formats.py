"""Weight formats: how a matrix becomes integer bytes.

A format is facts, no code: bits of a value, tiles that share a number (scale, zero point), words that values
are packed into, what a tensor carries besides. A matrix is ``(outputs, inputs)``, as checkpoints store it;
leading dimensions repeat it. The rules that choose a format for a tensor are the readers'.
"""

from __future__ import annotations

from math import prod

from kvgauge.errors import FeatureUnsupportedError
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class Tile:
    """Values that share one number.

    Args:
        rows: outputs of a tile; 0 means all of them.
        columns: inputs of a tile; 0 means all of them.
        bits: bits of the number.
        word_bits: numbers of neighbouring outputs are packed into words of so many bits; 0: they are not.
        flat: tiles of ``columns`` values run over the whole tensor, whatever its rows.
        whole_only: inputs that fill no tile have no number.
    """

    rows: int
    columns: int
    bits: int
    word_bits: int = 0
    flat: bool = False
    whole_only: bool = False

    def stored_bytes(self, rows: int, columns: int) -> int:
        """Return the bytes of the numbers of one matrix."""
        if self.flat:
            return _bytes(-(-rows * columns // (self.columns or rows * columns)) * self.bits)
        down = -(-rows // self.rows) if self.rows else 1
        across = -(-columns // self.columns) if self.columns else 1
        if self.whole_only and self.columns:
            across = columns // self.columns
        if self.word_bits:
            return across * _packed_bytes(down, self.bits, self.word_bits)
        return _bytes(down * across * self.bits)


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """One way to store a tensor.

    Args:
        name: the word shown: ``bf16``, ``fp8``, ``int4``, ``nvfp4``, ``q4_k``.
        value_bits: bits of a value.
        tiles: numbers beside the values.
        word_bits: values are packed into words of so many bits along ``packed_dim``; 0: into bytes, over
            the whole tensor.
        packed_dim: -1 packs along the inputs, -2 along the outputs.
        per_input_bytes: bytes kept for each input (GPTQ ``g_idx``).
        per_tensor_bytes: bytes of whatever a tensor has once (global scales, look-up tables).
        row_block: ggml: values in a block of a row; a row must hold whole blocks.
        row_block_bytes: bytes of such a block.
    """

    name: str
    value_bits: int = 16
    tiles: tuple[Tile, ...] = ()
    word_bits: int = 0
    packed_dim: int = -1
    per_input_bytes: int = 0
    per_tensor_bytes: int = 0
    row_block: int = 0
    row_block_bytes: int = 0

    def stored_bytes(self, shape: tuple[int, ...]) -> int:
        """Return the bytes of one tensor of ``shape``.

        Raises:
            FeatureUnsupportedError: its rows hold no whole number of the format's blocks.

        >>> int4 = WeightFormat("int4", 4, (Tile(1, 128, 16),), word_bits=32)
        >>> int4.stored_bytes((12288, 4096))  # 12288 x 4096 / 2, and 12288 x 32 scales of 2 bytes
        25952256
        """
        rows, columns = _matrix(shape)
        copies = prod(shape[:-2])
        if self.row_block:
            if columns % self.row_block:
                raise FeatureUnsupportedError(
                    f"{self.name} packs {self.row_block} values a block, a row of {columns} can't be packed",
                    hint="use a type whose block divides the row: q8_0 (32), f16 (1)",
                    field="weights",
                )
            return copies * rows * (columns // self.row_block) * self.row_block_bytes
        return copies * (
            self._value_bytes(rows, columns)
            + sum(tile.stored_bytes(rows, columns) for tile in self.tiles)
            + self.per_input_bytes * columns
            + self.per_tensor_bytes
        )

    def _value_bytes(self, rows: int, columns: int) -> int:
        if not self.word_bits:
            return _bytes(rows * columns * self.value_bits)
        if self.packed_dim == -1:
            return rows * _packed_bytes(columns, self.value_bits, self.word_bits)
        return columns * _packed_bytes(rows, self.value_bits, self.word_bits)


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (outputs, inputs); a vector is one row."""
    if len(shape) < 2:
        return 1, prod(shape)
    return shape[-2], shape[-1]


def _bytes(bits: int) -> int:
    return -(-bits // 8)


def _packed_bytes(count: int, bits: int, word_bits: int) -> int:
    """Return the bytes of ``count`` values in whole words, values lying across words where they must."""
    return -(-count * bits // word_bits) * word_bits // 8


_PLAIN_BITS = {
    "f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16,
    "fp8_e4m3": 8, "fp8_e5m2": 8, "e8m0": 8, "int8": 8, "uint8": 8, "bool": 8, "fp6": 6, "fp4": 4,
}  # fmt: skip


def plain(dtype: str) -> WeightFormat:
    """Return the format of unquantised values of a canonical dtype.

    >>> plain("bf16").stored_bytes((4096,))
    8192
    """
    return WeightFormat(dtype, _PLAIN_BITS[dtype])
