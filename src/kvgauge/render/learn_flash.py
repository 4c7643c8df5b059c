"""``learn flash`` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.dtypes import display_dtype
from kvgauge.render.clean import clean
from kvgauge.render.numbers import share_text
from kvgauge.render.view import Grid, View, plain, table
from kvgauge.units import GB, format_bytes

if TYPE_CHECKING:
    from kvgauge.lab.flash.answer import FlashAnswer, TileRun

_RUN_COLUMNS = (
    "flash_tile", "flash_read", "flash_written", "flash_peak", "flash_causal", "flash_formula",
    "lab_difference",
)  # fmt: skip
_NARROW = ("flash_tile", "flash_read", "flash_written", "flash_peak")


def draw_flash(answer: FlashAnswer, view: View) -> str:
    """Return what was run and counted, then a layer of the model in both units."""
    texts, shape = view.texts, answer.run_shape
    run = texts("flash_run_title", tokens=shape.num_keys, width=shape.head_dim)
    return view.draw(
        plain(run, "bold"),
        _runs(answer, view),
        plain(texts("flash_run_legend")),
        plain(""),
        plain(_layer_title(answer, view), "bold"),
        _layer(answer, view),
        plain(_left_out(answer, view)),
    )


def _runs(answer: FlashAnswer, view: View) -> Grid:
    names = _NARROW if view.is_narrow else _RUN_COLUMNS
    grid = table(*(view.texts(name) for name in names), right=tuple(range(1, len(names))))
    causal = {run.tile: run for run in answer.runs if run.causal}
    for run in answer.runs:
        if not run.causal:
            cells = _run_cells(run, causal[run.tile], view)
            grid.add_texts(*(cells[name] for name in names))
    return grid


def _run_cells(run: TileRun, causal: TileRun, view: View) -> dict[str, str]:
    is_equal = run.counted == run.formula and causal.counted == causal.formula
    tile = run.tile
    return {
        "flash_tile": f"{tile.query_rows}×{tile.key_rows}" if tile else view.texts("flash_no_tile"),
        "flash_read": f"{run.counted.read_elements:,}",
        "flash_written": f"{run.counted.written_elements:,}",
        "flash_peak": f"{run.counted.peak_elements:,}" if tile else "",
        "flash_causal": f"{causal.counted.moved_elements:,}",
        "flash_formula": view.texts("lab_yes" if is_equal else "lab_no"),
        "lab_difference": f"{max(run.difference, causal.difference):.0e}" if tile else "",
    }


def _layer_title(answer: FlashAnswer, view: View) -> str:
    return view.texts(
        "flash_layer_title",
        model=clean(answer.model.raw.id),
        layers=answer.num_layers,
        heads=answer.num_heads,
        width=answer.head_dim,
        tokens=view.texts("tokens", tokens=f"{answer.tokens:,}"),
        dtype=display_dtype(answer.dtype),
    )


def _layer(answer: FlashAnswer, view: View) -> Grid:
    """The same bytes in both units, so that neither is taken for the other."""
    grid = table(view.texts("flash_what"), "GiB", "GB", right=(1, 2))
    layer = answer.layer
    tile = f"{answer.tile.query_rows}×{answer.tile.key_rows}"
    half = layer.score_passes_bytes // 2
    rows = (
        ("flash_head_scores", layer.head_score_bytes),
        ("flash_all_scores", layer.score_matrix_bytes),
        ("flash_score_passes", half),
        ("flash_weight_passes", half),
        ("flash_all_passes", layer.score_passes_bytes),
        ("flash_plain_moved", layer.plain_bytes),
        ("flash_tiled_moved", layer.tiled_bytes),
        ("flash_tiled_causal", layer.tiled_causal_bytes),
        ("flash_decode_passes", layer.decode_passes_bytes),
        ("flash_decode_moved", layer.decode_plain_bytes),
        ("flash_load_passes", answer.load_passes_bytes),
        ("flash_load_tiled", answer.load_tiled_bytes),
        ("flash_cache", answer.cache_bytes),
    )
    words = {"tile": tile, "layers": f"{answer.num_layers:,}", "sequences": f"{answer.sequences:,}"}
    for key, size_bytes in rows:
        grid.add_texts(view.texts(key, **words), format_bytes(size_bytes, "gib"), _decimal(size_bytes))
    return grid


def _decimal(size_bytes: int) -> str:
    """A decimal place more than usual, as the figures that are quoted have it."""
    return f"{size_bytes / GB:,.1f} GB" if size_bytes >= GB else format_bytes(size_bytes, "gb")


def _left_out(answer: FlashAnswer, view: View) -> str:
    return view.texts(
        "flash_left_out",
        seen=share_text(answer.layer.seen_fraction),
        peak=f"{answer.layer.peak_elements:,}",
        rows=answer.tile.query_rows,
    )
