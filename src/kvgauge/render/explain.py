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
    """Return all steps, one below the other."""
    parts: list[RenderableType] = []
    for number, step in enumerate(explanation.steps, 1):
        parts += _step(number, step, view)
    return view.draw(*parts[:-1])


def _step(number: int, step: Step, view: View) -> list[RenderableType]:
    parts: list[RenderableType] = [
        plain(f"{number}. {clean(step.title)}  {view.size(step.value_bytes)}", "bold")
    ]
    lines = [plain(clean(step.text))]
    if len(step.symbols) > 1:
        lines = [plain(step.formula), plain(f"= {step.with_numbers}"), *lines]
    body: list[RenderableType] = [*lines, *_symbols(step, view), *_definitions(step)]
    if step.source:
        body.append(plain(view.texts("explain_source", source=clean(step.source)), "dim"))
    return [*parts, *(Padding(part, (0, 0, 0, _INDENT)) for part in body), ""]


def _symbols(step: Step, view: View) -> list[RenderableType]:
    """Each symbol with its value, what it means, and the config field it was read from."""
    rows = [
        (clean(name), number_text(value), _meaning(name, step, view)) for name, value in step.symbols.items()
    ]
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


def _meaning(name: str, step: Step, view: View) -> str:
    texts, path = view.texts, step.symbol_paths.get(name)
    origin = texts("explain_config", path=clean(path)) if path else ""
    return texts("explain_join").join(
        word for word in (clean(step.symbol_meanings.get(name, "")), origin) if word
    )


def _definitions(step: Step) -> list[RenderableType]:
    """How computed symbols follow from others."""
    return [
        plain(f"{d.symbol} = {d.formula} = {with_numbers(d.formula, step.symbols)}") for d in step.definitions
    ]
