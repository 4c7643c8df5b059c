"""``learn quantised`` as text."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from kvgauge.render.numbers import ratio_text
from kvgauge.render.size_facts import tokens_text
from kvgauge.render.view import Grid, View, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.lab.quantised.answer import QuantisedAnswer, SampleRows
    from kvgauge.lab.quantised.errors import FormatRow

_COLUMNS = (
    "quantised_format", "quantised_scale", "column_bytes", "quantised_ratio", "quantised_keys",
    "quantised_values", "quantised_both",
)  # fmt: skip
_NARROW = ("quantised_format", "quantised_ratio", "quantised_keys", "quantised_values")
_TEXT = frozenset({"quantised_format", "quantised_scale"})


def draw_quantised(answer: QuantisedAnswer, view: View) -> str:
    """Return a table for each sample."""
    parts: list[RenderableType] = []
    for sample in answer.samples:
        parts += [plain(_title(sample, answer, view), "bold"), _formats(sample, view), plain("")]
    return view.draw(*parts, plain(view.texts("quantised_legend")))


def _title(sample: SampleRows, answer: QuantisedAnswer, view: View) -> str:
    texts = view.texts
    about = texts(
        f"quantised_sample.{sample.name}",
        outliers=answer.shape.num_outliers,
        factor=f"{answer.shape.outlier_factor:g}",
    )
    return texts(
        "quantised_title",
        about=about,
        tokens=tokens_text(sample.num_tokens, view),
        heads=_heads(sample, view),
        width=sample.head_dim,
        keys=f"{sample.key_spread:.1f}",
        values=f"{sample.value_spread:.1f}",
    )


def _heads(sample: SampleRows, view: View) -> str:
    layers = sample.num_layers
    if layers == 1:
        return str(sample.num_kv_heads)
    return view.texts("quantised_layers", layers=layers, heads=sample.num_kv_heads)


def _formats(sample: SampleRows, view: View) -> Grid:
    names = _NARROW if view.is_narrow else _COLUMNS
    right = tuple(n for n, name in enumerate(names) if name not in _TEXT)
    grid = table(*(view.texts(name) for name in names), right=right)
    for row in sample.rows:
        cells = _cells(row, view)
        grid.add_texts(*(cells[name] for name in names))
    return grid


def _cells(row: FormatRow, view: View) -> dict[str, str]:
    return {
        "quantised_format": row.name,
        "quantised_scale": view.texts(f"scaling.{row.scaling}"),
        "column_bytes": view.size(row.counted_bytes),
        "quantised_ratio": ratio_text(Fraction(row.bf16_ratio)),
        "quantised_keys": _percent(row.output_error_keys),
        "quantised_values": _percent(row.output_error_values),
        "quantised_both": _percent(row.output_error_both),
    }


def _percent(error: float) -> str:
    return f"{100 * error:.2f} %" if error else "0"
