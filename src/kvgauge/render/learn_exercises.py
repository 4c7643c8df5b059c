"""``learn exercises`` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.render.view import labelled, plain

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.lab.exercises import Exercise, ExercisesAnswer
    from kvgauge.render.view import View


def draw_exercises(answer: ExercisesAnswer, view: View) -> str:
    """Return the questions, or what is to be said of an answer."""
    lang, texts = view.texts.lang, view.texts
    if len(answer.asked) > 1:
        rows = [(one.id, one.question[lang]) for one in answer.asked]
        return view.draw(labelled(rows), "", plain(texts("exercises_how")))
    (one,) = answer.asked
    parts: list[RenderableType] = [plain(one.question[lang], "bold")]
    if answer.is_right is None:
        return view.draw(*parts, plain(texts("exercise_how", id=one.id)))
    said = texts("exercise_right" if answer.is_right else "exercise_wrong", value=_shown(one, view))
    return view.draw(*parts, plain(said), plain(texts("exercise_why", why=one.why[lang])))


def _shown(one: Exercise, view: View) -> str:
    exact = f"{one.solution:,}"
    return f"{exact} B = {view.size(one.solution)}" if one.unit == "bytes" else exact
