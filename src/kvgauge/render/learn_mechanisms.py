"""``learn mechanisms`` as text."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from kvgauge.render.clean import clean
from kvgauge.render.numbers import change_text
from kvgauge.render.view import Grid, View, plain, table

if TYPE_CHECKING:
    from kvgauge.lab.mechanisms.answer import MechanismsAnswer
    from kvgauge.lab.mechanisms.comparison import MechanismRow, StackRow

_LAYER_COLUMNS = (
    "lab_mechanism", "lab_a_token", "lab_fixed", "lab_counted", "lab_size_says", "lab_contexts_equal",
    "lab_difference",
)  # fmt: skip
_MODEL_COLUMNS = (
    "lab_model", "lab_layers", "lab_counted", "lab_true_cache", "lab_true_state", "lab_to_first",
)  # fmt: skip
_TEXT = frozenset({"lab_mechanism", "lab_model", "lab_layers"})
_WIDE = frozenset({"lab_fixed", "lab_size_says", "lab_difference", "lab_to_first", "lab_counted"})


def draw_mechanisms(answer: MechanismsAnswer, view: View) -> str:
    """Return a table of single layers, and one of models."""
    texts = view.texts
    tokens = answer.mechanisms[0].num_tokens
    latent = next((row for row in answer.mechanisms if row.absorbed_difference is not None), None)
    absorbed = "" if latent is None else texts("lab_absorbed", off=f"{latent.absorbed_difference:.0e}")
    divisors = ", ".join(map(str, sorted({row.divisor for row in answer.models})))
    return view.draw(
        plain(texts("lab_layers_title", tokens=texts("tokens", tokens=f"{tokens:,}")), "bold"),
        _grid(_LAYER_COLUMNS, [_layer_cells(row, view) for row in answer.mechanisms], view),
        plain(texts("lab_layers_legend")),
        plain(absorbed),
        plain(""),
        plain(_models_title(answer, view), "bold"),
        _grid(_MODEL_COLUMNS, [_model_cells(row, view) for row in answer.models], view),
        plain(_agreement(answer.models, view)),
        plain(texts("lab_models_legend", divisors=divisors)),
    )


def _grid(columns: tuple[str, ...], rows: list[dict[str, str]], view: View) -> Grid:
    names = [name for name in columns if not view.is_narrow or name not in _WIDE]
    grid = table(
        *(view.texts(name) for name in names),
        right=tuple(n for n, name in enumerate(names) if name not in _TEXT),
    )
    for cells in rows:
        grid.add_texts(*(cells[name] for name in names))
    return grid


def _layer_cells(row: MechanismRow, view: View) -> dict[str, str]:
    return {
        "lab_mechanism": view.texts(f"lab_word.{row.word}"),
        "lab_a_token": view.size(row.growth_bytes_per_token),
        "lab_fixed": view.size(row.fixed_bytes),
        "lab_counted": view.size(row.held_bytes),
        "lab_size_says": view.size(row.core_bytes),
        "lab_contexts_equal": f"{row.num_contexts_equal}/{row.num_tokens}",
        "lab_difference": f"{row.difference:.0e}",
    }


def _models_title(answer: MechanismsAnswer, view: View) -> str:
    first = answer.models[0]
    return view.texts(
        "lab_models_title",
        tokens=view.texts("tokens", tokens=f"{first.num_tokens:,}"),
        context=view.texts("tokens", tokens=f"{answer.context_tokens:,}"),
    )


def _agreement(rows: tuple[StackRow, ...], view: View) -> str:
    equal, asked = sum(row.num_contexts_equal for row in rows), sum(row.num_tokens for row in rows)
    return view.texts("lab_models_equal", equal=equal, asked=asked)


def _model_cells(row: StackRow, view: View) -> dict[str, str]:
    layers = " + ".join(f"{count} {view.texts(f'lab_word.{word}')}" for word, count in row.layers.items())
    return {
        "lab_model": clean(row.model),
        "lab_layers": layers,
        "lab_counted": view.size(row.held_bytes),
        "lab_true_cache": view.size(row.cache_bytes),
        "lab_true_state": view.size(row.state_bytes) if row.state_bytes else "",
        "lab_to_first": change_text(Fraction(row.cache_ratio) - 1) if row.cache_ratio != 1 else "",
    }
