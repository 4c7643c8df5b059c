"""Answers as titles, lines and tables, to be written in a markup: Markdown or HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.arithmetic import number_text
from kvgauge.render.clean import clean
from kvgauge.render.compare import base_line, comparison_columns, load_line, row_cells
from kvgauge.render.explain import symbol_meaning, symbol_value
from kvgauge.render.inventory import models_table
from kvgauge.render.size_facts import facts, group_table, headline, load_rows, weight_rows
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvgauge.comparison import Comparison
    from kvgauge.derivation import Explanation, Step
    from kvgauge.render.view import View
    from kvgauge.size_result import SizeResult
    from kvgauge.weight_answer import WhatIf

_NUMBER_KEYS = ("column_step", "column_bytes", "column_formula", "column_numbers", "column_source")
_SYMBOL_KEYS = ("column_step", "column_symbol", "column_value", "column_meaning")
_NUMBERS = frozenset(
    {"column_layers", "column_bytes", "column_kept", "column_value", "column_parameters", "column_keeping"}
)


@dataclass(frozen=True)
class TableOf:
    """A table of texts.

    Args:
        right: columns of numbers.
        code: columns of formulas and symbols.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[int] = frozenset()
    code: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Listing:
    """Lines to be run: a command or a script, shown as they are."""

    language: str
    text: str


@dataclass(frozen=True)
class Sheet:
    """An answer: its first line, and what stands below it."""

    title: str
    blocks: tuple[str | TableOf | Listing, ...]


def _table(
    keys: Sequence[str], rows: Sequence[Sequence[str]], view: View, code: Sequence[str] = ()
) -> TableOf:
    right = frozenset(n for n, key in enumerate(keys) if key in _NUMBERS)
    formulas = frozenset(n for n, key in enumerate(keys) if key in code)
    names = tuple(view.texts(key) for key in keys)
    return TableOf(names, tuple(tuple(row) for row in rows), right, formulas)


def size_sheet(result: SizeResult, view: View) -> Sheet:
    """Return the answer of ``size``: facts, layers, load."""
    if result.cache.family == "none" and result.weights is None:
        return Sheet(headline(result, view), ())
    lines = tuple(view.texts("subject", name=label) + value for label, value in facts(result, view))
    keys, rows = group_table(result.cache, view)
    groups = _table(keys, rows, view, code=("column_formula",))
    load = TableOf((view.texts("assumed_title"), ""), tuple(load_rows(result, view)))
    tables = [groups] if result.cache.family != "none" else []
    if result.weights is not None:
        columns = ("column_weights", "column_parameters", "column_stored", "column_bytes")
        tables.append(_table(columns, weight_rows(result.weights, view), view))
    asked = result.weights.what_if if result.weights is not None else None
    return Sheet(headline(result, view), (*lines, *tables, *_what_if(asked, view), load))


def _what_if(asked: WhatIf | None, view: View) -> list[str | TableOf | Listing]:
    """A scheme that was asked for: what it keeps, and the commands that make it."""
    if asked is None:
        return []
    from kvgauge.render.what_if import advice_rows, command_title  # noqa: PLC0415 - few ask

    blocks: list[str | TableOf | Listing] = []
    rows = advice_rows(asked, view)
    if rows:
        keys = ("column_part", "column_parameters", "column_here", "column_keeping", "column_why")
        blocks.append(_table(keys, rows, view))
    for command in asked.commands:
        blocks += [command_title(command, view), Listing(command.language, command.text)]
    return blocks


def comparison_sheet(comparison: Comparison, view: View) -> Sheet:
    """Return the answer of ``compare``: one row a model."""
    load = load_line(comparison, view)
    names = [name for name in comparison_columns(comparison, view) if not (load and name == "context")]
    cells = [row_cells(row, view) for row in comparison.rows]
    right = frozenset(n for n, name in enumerate(names) if name not in ("model", "family"))
    rows = tuple(tuple(row.get(name, "") for name in names) for row in cells)
    table = TableOf(tuple(view.texts(f"column_{name}") for name in names), rows, right)
    base = base_line(comparison, view)
    return Sheet(load, (table, base) if base else (table,))


def explanation_sheet(explanation: Explanation, view: View) -> Sheet:
    """Return the answer of ``explain``: why, every number, and what the symbols are."""
    steps = explanation.in_units(view.units).steps
    shown = [step for step in steps if step.id != "why" and not step.is_repeat]
    numbers = [_number(place, step, view) for place, step in enumerate(shown, 1)]
    symbols = [row for place, step in enumerate(shown, 1) for row in _symbols(place, step, view)]
    why = [clean(step.text) for step in steps if step.id == "why"]
    first = _table(_NUMBER_KEYS, numbers, view, code=("column_formula", "column_numbers"))
    second = _table(_SYMBOL_KEYS, symbols, view, code=("column_symbol",))
    return Sheet(headline(explanation.result, view), (*why, first, second))


def _number(place: int, step: Step, view: View) -> tuple[str, ...]:
    is_alone = len(step.symbols) < 2
    return (
        f"{place}. {clean(step.title)}",
        view.size(step.value_bytes),
        clean(step.formula),
        "" if is_alone else step.with_numbers,
        "" if step.is_sum else clean(step.source),
    )


def _symbols(place: int, step: Step, view: View) -> list[tuple[str, ...]]:
    """The symbols of a step that none before it has told, then how computed ones follow from others."""
    rows: list[tuple[str, ...]] = [
        (f"{place}", clean(name), symbol_value(name, value), symbol_meaning(name, step, view))
        for name, value in step.symbols.items()
        if name not in step.told
    ]
    for symbol, formula in step.definitions:
        if symbol not in step.told:
            rows.append((f"{place}", symbol, number_text(step.symbols[symbol]), f"= {formula}"))
    return rows


def names_sheet(names: Sequence[str], view: View) -> Sheet:
    """Return the answer of ``models`` where it lists names alone."""
    return Sheet("", (TableOf((view.texts("column_id"),), tuple((name,) for name in names)),))


def models_sheet(rows: Sequence[Mapping[str, object]], view: View) -> Sheet:
    """Return the answer of ``models``: one row a name."""
    names, cells = models_table(rows, view)
    right = frozenset(range(2, len(names)))
    return Sheet("", (TableOf(tuple(names), tuple(map(tuple, cells)), right),))
