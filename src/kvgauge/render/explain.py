"""``explain`` as text: each step with its formula, the numbers put in, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding

from kvgauge.render.clean import clean
from kvgauge.render.view import View, labelled, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.derivation import Explanation, Step


def draw_explanation(explanation: Explanation, view: View) -> str:
    """Return all steps, one below the other."""
    parts: list[RenderableType] = []
    for number, step in enumerate(explanation.steps, 1):
        parts += _step(number, step, view)
    return view.draw(*parts[:-1])


def _step(number: int, step: Step, view: View) -> list[RenderableType]:
    figure = "" if step.value_bytes is None else f"  {view.size(step.value_bytes)}"
    parts: list[RenderableType] = [plain(f"{number}. {clean(step.title)}{figure}", "bold")]
    lines = [clean(line) for line in step.text.splitlines()] if step.text else []
    if step.formula and step.formula not in step.text:
        lines.insert(0, clean(step.formula))
    parts += [Padding(plain(line), (0, 0, 0, 3)) for line in lines]
    if step.symbols:
        values = [(clean(name), f"{value:,}") for name, value in step.symbols.items()]
        parts.append(Padding(labelled(values), (0, 0, 0, 3)))
    if step.config_path:
        paths = step.config_path if isinstance(step.config_path, str) else ", ".join(step.config_path)
        parts.append(Padding(plain(view.texts("explain_config", path=clean(paths)), "dim"), (0, 0, 0, 3)))
    if step.source:
        source = view.texts("explain_source", source=clean(step.source))
        parts.append(Padding(plain(source, "dim"), (0, 0, 0, 3)))
    return [*parts, ""]
