"""What ``kvgauge learn`` runs, over HTTP: one address a topic, from the table of topics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from kvgauge.cli.learn import Answer, answer_topic, drawn_topic, list_topics, topic_json
from kvgauge.cli.topics import COMMANDS, TOPICS, Topic
from kvgauge.errors import InvalidRequestError
from kvgauge.keywords import Kinds
from kvgauge.lab.extra import require
from kvgauge.units import parse_tokens
from kvgauge.web.answers import Question
from kvgauge.web.telling import as_json, told

if TYPE_CHECKING:
    from kvgauge.web.asking import Speech
    from kvgauge.web.desk import Desk
    from kvgauge.web.telling import Told

#: Options whose value names something on the machine.
_OF_THE_MACHINE = frozenset({"FOLDER", "FILE"})
#: Options that run a folder of the machine.
_RUNS_FOLDERS = frozenset({"measure"})
#: Topic -> option -> the most that is run here; the command itself takes more, and then takes long.
_MOST: Mapping[str, Mapping[str, int]] = {
    "quantised": {"tokens": 512, "head_dim": 128},
    "paged": {"pool": 64 << 10, "requests": 300},
}
#: Columns of what is drawn as text.
_WIDTH = 96
#: Longest text that is walked through a model.
_MAX_TEXT = 2000


_KINDS: Mapping[str, Kinds] = {"count": (int,), "flag": (bool,)}
_AS_TEXT: Kinds = (str, int, float)


def keywords_of(topic: Topic) -> Mapping[str, Kinds]:
    """Return what a request for a topic may hold.

    >>> keywords_of(TOPICS["activations"])["model"]
    (<class 'str'>, <class 'dict'>)
    """
    found: dict[str, Kinds] = {}
    if topic.keyword == "model":
        found["model"] = (str, dict)
    elif topic.keyword:
        found[topic.keyword] = (str,)
    for row in topic.options:
        if row.metavar not in _OF_THE_MACHINE and row.name not in _RUNS_FOLDERS:
            found[row.name] = _KINDS.get(row.kind, _AS_TEXT)
    return {**found, "drawn": (bool,)}


class Lesson(NamedTuple):
    """What a topic answered, and the model that it was about, if any."""

    model: object
    answer: Answer


def _as_told(topic: Topic, name: str, value: object) -> object:
    """Return a value as the command's option has it: numbers of an option that takes text are text."""
    is_text = any(row.name == name and row.kind not in _KINDS for row in topic.options)
    return str(value) if is_text else value


async def answer_lesson(name: str, desk: Desk, keywords: dict[str, Any], speech: Speech) -> Told:
    """Run a topic; with ``drawn`` its drawing for a terminal stands in the answer as well.

    What was run stays on a shelf: some topics take seconds, and another language runs nothing anew.
    """
    command = f"learn {name}"
    topic = COMMANDS[command]
    require(command, topic.needs)
    draws = keywords.pop("drawn", False)
    asked = {key: _as_told(topic, key, value) for key, value in keywords.items()}
    if len(str(asked.get("text") or "")) > _MAX_TEXT:
        raise InvalidRequestError(
            f"text is longer than {_MAX_TEXT} characters", hint="give a shorter one", field="text"
        )
    _check_most(name, asked)
    if asked.get("model") is not None and topic.keyword == "model":
        asked["model"] = await desk.model({"no_weights": True}, asked["model"])
    elif topic.is_required:
        raise InvalidRequestError(
            f"{topic.keyword.upper()} is missing", hint=topic.example, field=topic.keyword
        )

    key, model = name + as_json(keywords).decode(), asked.get("model")
    kept = desk.lessons.get(key)

    def work() -> Told:
        known = None if kept is None or kept.model is not model else kept.answer
        answer = known or answer_topic(topic, asked)
        found = topic_json(answer, speech.texts)
        if draws:
            found["drawn"] = drawn_topic(topic, answer, speech.texts, speech.units, _WIDTH)
        answered = told(found)
        desk.lessons.put(key, Lesson(model, answer), len(answered.body))
        return answered

    return await desk.slow(work)


def _check_most(name: str, asked: Mapping[str, object]) -> None:
    """Refuse what would hold a thread for long.

    Raises:
        InvalidRequestError: a number is larger than is run here.
    """
    for option, most in _MOST.get(name, {}).items():
        value = asked.get(option)
        count = parse_tokens(value, what=option) if isinstance(value, int | str) else 0
        if count > most:
            raise InvalidRequestError(
                f"{option} {count} is more than is run here",
                hint=f"up to {most}; 'kvgauge learn {name}' takes more",
                field=option,
            )


async def answer_topics(desk: Desk, keywords: dict[str, Any], speech: Speech) -> Told:
    """Answer what topics there are."""
    del desk, keywords
    return told(list_topics(speech.texts))


LEARNING = (
    Question("learn", {}, answer_topics, by_body=False),
    *(
        Question(
            f"learn_{name}",
            keywords_of(topic),
            partial(answer_lesson, name),
            (topic.keyword,) if topic.is_required else (),
            at=f"learn/{name}",
        )
        for name, topic in TOPICS.items()
    ),
)
