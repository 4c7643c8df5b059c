"""``learn``: a list of the topics, or one of them run."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from kvgauge.cli.options import OUTPUT
from kvgauge.cli.output import Settings, make_view, write, write_json, write_notes
from kvgauge.cli.topics import COMMANDS, TOPICS, Topic
from kvgauge.errors import InvalidRequestError
from kvgauge.lab.extra import require

if TYPE_CHECKING:
    from kvgauge.architecture import Note
    from kvgauge.render.messages import Texts
    from kvgauge.units import Units

_OUTPUT_NAMES = frozenset(row.name for row in OUTPUT) - {"offline"}


class Answer(Protocol):
    """What a topic answers."""

    @property
    def notes(self) -> tuple[Note, ...]: ...  # noqa: D102

    def to_dict(self) -> dict[str, object]: ...  # noqa: D102


def run_learn(settings: Settings, values: dict[str, Any]) -> int:
    """List the topics.

    Raises:
        InvalidRequestError: a word was given that is no topic.
    """
    asked = values["topic"]
    if asked:
        near = difflib.get_close_matches(asked, TOPICS, n=1, cutoff=0.6)
        hint = f"did you mean {near[0]}?" if near else f"one of: {', '.join(TOPICS)}"
        raise InvalidRequestError(f"there is no topic {asked}", hint=hint, field="topic")
    texts = settings.texts
    if settings.json:
        write_json(list_topics(texts))
        return 0
    from kvgauge.render.view import labelled  # noqa: PLC0415 - JSON draws nothing

    view = make_view(settings, units="gib", color=values["color"] or "auto")
    commands = [
        (f"  kvgauge learn {name} {topic.argument}", texts(f"help.verb.learn {name}"))
        for name, topic in TOPICS.items()
    ]
    write(texts("learn_about") + "\n\n" + view.draw(labelled(commands)))
    return 0


def list_topics(texts: Texts) -> dict[str, object]:
    """Return the ``kvgauge.learn/1`` object."""
    rows = [
        {"name": name, "argument": topic.argument, "summary": texts(f"help.verb.learn {name}")}
        for name, topic in TOPICS.items()
    ]
    return {"schema": "kvgauge.learn/1", "topics": rows}


def answer_topic(topic: Topic, asked: dict[str, Any]) -> Answer:
    """Run a topic."""
    answer: Answer = _function(f"kvgauge.lab.{topic.answer}")(**asked)
    return answer


def topic_json(answer: Answer, texts: Texts) -> dict[str, object]:
    """Return the answer of a topic as JSON in a language."""
    said = [{**note.to_dict(), "message": texts.note(note)} for note in answer.notes]
    return {**answer.to_dict(), "notes": said}


def drawn_topic(topic: Topic, answer: Answer, texts: Texts, units: Units, width: int) -> str:
    """Return an answer as text of so many columns, without colour."""
    from kvgauge.render.view import View  # noqa: PLC0415

    view = View(texts, units, width, color=False)
    return str(_function(f"kvgauge.render.{topic.draw}")(answer, view))


def run_topic(command: str, settings: Settings, values: dict[str, Any]) -> int:
    """Run a topic and show its answer."""
    topic = COMMANDS[command]
    require(command, topic.needs)
    asked = {name: value for name, value in values.items() if name not in _OUTPUT_NAMES and _is_given(value)}
    answer = answer_topic(topic, asked)
    if settings.json:
        write_json(topic_json(answer, settings.texts))
        return 0
    view = make_view(settings, units=values["units"] or "gib", color=values["color"] or "auto")
    write(_function(f"kvgauge.render.{topic.draw}")(answer, view))
    write_notes(answer.notes, settings.texts, units=view.units)
    return 0


def _is_given(value: object) -> bool:
    return value is not None and value is not False and value != ()


def _function(place: str) -> Any:  # noqa: ANN401 - each topic takes keywords of its own
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
