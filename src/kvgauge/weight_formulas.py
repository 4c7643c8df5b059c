"""The arithmetic of a stored tensor, as text; it evaluates to the bytes that ``weight_formats`` counts."""

from __future__ import annotations

from math import prod

from kvgauge.weight_formats import Tile, WeightFormat


def tensor_formula(form: WeightFormat, shape: tuple[int, ...]) -> str:
    """Return the bytes of one tensor as arithmetic, literal numbers in it.

    >>> int4 = WeightFormat("int4", 4, (Tile(1, 128, 16),), word_bits=32)
    >>> tensor_formula(int4, (12288, 4096))
    '12288 × ceil(4096 × 4 / 32) × 4 + 12288 × ceil(4096 / 128) × 2'
    """
    rows, columns = (1, prod(shape)) if len(shape) < 2 else shape[-2:]
    copies = prod(shape[:-2])
    terms = _terms(form, rows, columns)
    if copies == 1:
        return " + ".join(terms)
    return f"{copies} × {terms[0]}" if len(terms) == 1 else f"{copies} × ({' + '.join(terms)})"


def _terms(form: WeightFormat, rows: int, columns: int) -> list[str]:
    if form.row_block:
        return [f"{rows} × {columns} / {form.row_block} × {form.row_block_bytes}"]
    terms = [_values(form, rows, columns), *(_numbers(tile, rows, columns) for tile in form.tiles)]
    if form.per_input_bytes:
        terms.append(f"{columns} × {form.per_input_bytes}")
    if form.per_tensor_bytes:
        terms.append(f"{form.per_tensor_bytes}")
    return terms


def _values(form: WeightFormat, rows: int, columns: int) -> str:
    if form.word_bits:
        packed, others = (columns, rows) if form.packed_dim == -1 else (rows, columns)
        return f"{others} × {_words(f'{packed}', form.value_bits, form.word_bits)}"
    count = f"{columns}" if rows == 1 else f"{rows} × {columns}"
    return _bytes_of(count, form.value_bits, rows * columns)


def _numbers(tile: Tile, rows: int, columns: int) -> str:
    if tile.flat:
        groups = f"ceil({rows} × {columns} / {tile.columns or rows * columns})"
        return _bytes_of(groups, tile.bits, -(-rows * columns // (tile.columns or rows * columns)))
    down = _groups(rows, tile.rows)
    across = _groups(columns, tile.columns)
    if tile.word_bits:
        return f"{across} × {_words(down, tile.bits, tile.word_bits)}"
    count = (-(-rows // tile.rows) if tile.rows else 1) * (-(-columns // tile.columns) if tile.columns else 1)
    return _bytes_of(f"{down} × {across}", tile.bits, count)


def _groups(count: int, size: int) -> str:
    if not size:
        return "1"
    return f"{count}" if size == 1 else f"ceil({count} / {size})"


def _words(count: str, bits: int, word_bits: int) -> str:
    return f"ceil({count} × {bits} / {word_bits}) × {word_bits // 8}"


def _bytes_of(count: str, bits: int, number: int) -> str:
    if bits % 8 == 0:
        return f"{count} × {bits // 8}"
    return f"{count} × {bits} / 8" if number * bits % 8 == 0 else f"ceil({count} × {bits} / 8)"


__all__ = ["tensor_formula"]
