"""``explain`` as text: each step with its formula, the numbers put in, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.padding import Padding

from kvgauge.arithmetic import number_text, with_numbers
from kvgauge.render.clean import clean
from kvgauge.render.view import View, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.derivation import Explanation, Step

_INDENT = 3
#: Symbols stand in a table where their meaning has this much room, else one below the other.
_MEANING_CELLS = 16


def draw_explanation(explanation: Explanation, view: View) -> str:
    """Return why the model needs what it needs, then the steps, one below the other."""
    steps = explanation.in_units(view.units).steps
    parts: list[RenderableType] = []
    for step in steps:
        if step.id == "why":
            parts += [plain(clean(step.title), "bold"), _indented(plain(clean(step.text))), ""]
    source = ""
    shown = [step for step in steps if step.id != "why" and not step.is_repeat]
    for number, step in enumerate(shown, 1):
        is_known = step.is_sum or (step.source == source and not step.id.startswith("group."))
        parts += _step(number, step, view, with_source=not is_known)
        source = source if is_known else step.source
    return view.draw(*parts[:-1])


def _step(number: int, step: Step, view: View, *, with_source: bool) -> list[RenderableType]:
    title = plain(f"{number}. {clean(step.title)}  {view.size(step.value_bytes)}", "bold")
    body: list[RenderableType] = [plain(clean(step.text))] if step.text else []
    if len(step.symbols) > 1:
        body = [plain(step.formula), plain(f"= {step.with_numbers}"), *body]
    body += [*_symbols(step, view), *_definitions(step), *_fields(step, view)]
    if with_source:
        body.append(plain(view.texts("explain_source", source=clean(step.source)), "dim"))
    return [title, *(_indented(part) for part in body), ""]


def _indented(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, _INDENT))


def _symbols(step: Step, view: View) -> list[RenderableType]:
    """Each symbol with its value, what it means, and the config field it was read from."""
    rows = [
        (clean(name), symbol_value(name, value), symbol_meaning(name, step, view))
        for name, value in step.symbols.items()
        if name not in step.told
    ]
    if not rows:
        return []
    columns = (max((cell_len(row[place]) for row in rows), default=0) + 2 for place in (0, 1))
    if view.width - _INDENT - sum(columns) < _MEANING_CELLS:
        lines = (
            view.texts("explain_join").join(word for word in (f"{n} = {v}", m) if word) for n, v, m in rows
        )
        return [plain(line) for line in lines]
    grid = table("", "", "", right=(1,))
    grid.show_header = False
    for row in rows:
        grid.add_texts(*row)
    return [grid]


def symbol_value(name: str, value: float) -> str:
    """Bytes of a group or a sequence have a unit; other symbols are numbers of what they mean."""
    return f"{number_text(value)} B" if name.startswith(("G_", "M")) else number_text(value)


def symbol_meaning(name: str, step: Step, view: View) -> str:
    """Return what a symbol means and where its value comes from."""
    texts, path = view.texts, step.symbol_paths.get(name)
    origin = texts("explain_config", path=clean(path)) if path else ""
    return texts("explain_join").join(
        word for word in (clean(step.symbol_meanings.get(name, "")), origin) if word
    )


def _fields(step: Step, view: View) -> list[RenderableType]:
    """The config fields behind a step whose symbols are none of them, in one line."""
    if step.symbol_paths or not step.fields:
        return []
    numbers = {p: v for p, v in step.fields.items() if isinstance(v, int) and not isinstance(v, bool)}
    text = ", ".join(f"{clean(path)} = {value:,}" for path, value in numbers.items())
    return [plain(view.texts("explain_fields", fields=text), "dim")] if numbers else []


def _definitions(step: Step) -> list[RenderableType]:
    """How computed symbols follow from others."""
    lines: list[RenderableType] = []
    for symbol, formula in step.definitions:
        if symbol in step.told:
            continue
        numbers = with_numbers(formula, step.symbols)
        value = number_text(step.symbols[symbol])
        lines.append(plain(" = ".join(dict.fromkeys((symbol, formula, numbers, value)))))
    return lines
