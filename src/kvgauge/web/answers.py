"""Ask the library: one function a question, each returns what the command of its name answers."""

from __future__ import annotations

import io
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from kvgauge import keywords as known
from kvgauge.comparison import compare
from kvgauge.derivation import explain
from kvgauge.errors import InvalidRequestError, KvgaugeError
from kvgauge.fitting import fit
from kvgauge.inventory import engines_answer, gpus_answer, models_answer
from kvgauge.keywords import FINDING, Kinds
from kvgauge.planning.plan import plan
from kvgauge.sizing import size
from kvgauge.verification.verifying import verify
from kvgauge.web.asking import Speech
from kvgauge.web.desk import Desk, Keywords
from kvgauge.web.launch_lines import read_command
from kvgauge.web.searching import KEYWORDS as SEARCH
from kvgauge.web.searching import answer_search
from kvgauge.web.telling import (
    Told,
    tell_comparison,
    tell_explanation,
    tell_fit,
    tell_plan,
    tell_size,
    tell_verified,
    told,
)


def without_finding(keywords: Keywords) -> Keywords:
    """Return the keywords that remain once the model is found."""
    return {name: value for name, value in keywords.items() if name not in (*FINDING, "model", "models")}


async def answer_size(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``size``."""
    model = await desk.model(keywords, keywords.get("model"))
    load = without_finding(keywords)
    return await desk.size(model, lambda: tell_size(size(model, **load), speech))


async def answer_explain(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``explain``."""
    model = await desk.model(keywords, keywords.get("model"))
    load = without_finding(keywords)
    return await desk.about(
        [model], lambda: tell_explanation(explain(size(model, **load), lang=speech.lang), speech)
    )


async def answer_fit(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``fit``."""
    model = await desk.model(keywords, keywords.get("model"))
    load = without_finding(keywords)

    def work() -> Told:
        return tell_fit(fit(model, **load), speech)

    return await desk.slow(work) if desk.check_gpu(keywords) else await desk.about([model], work)


async def answer_plan(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``plan``, a search over all devices."""
    model = await desk.model(keywords, keywords.get("model"))
    desk.check_gpu(keywords)
    load = without_finding(keywords)
    return await desk.slow(lambda: tell_plan(plan(model, **load), speech))


async def answer_compare(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``compare``; a model that can't be sized is a row of its own."""
    most = desk.settings.limits.num_models
    if len(keywords["models"]) > most:
        raise InvalidRequestError(
            f"there are more than {most} models to compare", hint="leave some out", field="models"
        )
    models = await desk.models(keywords)
    load = without_finding(keywords)
    return await desk.about(models, lambda: tell_comparison(compare(models, **load), speech))


class TimedLog(io.BytesIO):
    """A log that is read for a time: a thread does not go on with one that nobody waits for any more."""

    def __init__(self, data: bytes, seconds: float) -> None:
        super().__init__(data)
        self._until = time.monotonic() + seconds

    def readline(self, size: int | None = -1) -> bytes:
        """Return a line.

        Raises:
            TimeoutError: the time is over.
        """
        if time.monotonic() > self._until:
            raise TimeoutError
        return super().readline(size)


async def answer_verify(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``verify`` for the text of a log."""
    log = keywords.pop("log", None)
    if not log:
        raise InvalidRequestError("LOG is missing", hint="give the text of an engine's log", field="log")
    data = log if isinstance(log, bytes) else str(log).encode("utf-8", "replace")
    desk.check_gpu(keywords)
    options = without_finding(keywords)
    if keywords.get("model") is not None:
        options["model"] = await desk.model(keywords, keywords["model"])

    def work() -> Told:
        stream = TimedLog(data, desk.settings.limits.answer_s)
        return tell_verified(verify(stream, local_files=False, offline=True, **options), speech)

    return await desk.slow(work)


async def answer_models(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``models``."""
    del speech
    return await desk.slow(lambda: told(models_answer(keywords.get("filter", ""))))


async def answer_gpus(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``gpus``."""
    del speech
    return await desk.quick(lambda: told(gpus_answer(keywords.get("filter", ""))))


async def answer_engines(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer ``engines``."""
    del keywords, speech
    return await desk.quick(lambda: told(engines_answer()))


async def answer_command(desk: Desk, keywords: Keywords, speech: Speech) -> Told:
    """Answer what a launch line says."""
    del speech
    return await desk.quick(lambda: told(read_command(keywords.get("command", ""))))


#: What a server answers to itself when it starts: afterwards everything is imported and read.
_FIRST = {"model": "Qwen/Qwen3-8B", "context": 4096}


async def warm(desk: Desk) -> None:
    """Answer the usual questions once, so that the first person does not wait for imports."""
    try:
        await answer_size(desk, {**_FIRST}, Speech())
        await answer_size(desk, {**_FIRST, "engine": "vllm"}, Speech())
        await answer_explain(desk, {**_FIRST}, Speech())
        await answer_fit(desk, {**_FIRST, "gpu": "H100"}, Speech())
    except KvgaugeError:
        return  # whoever asks will be told


@dataclass(frozen=True, slots=True)
class Question:
    """One address of the API.

    Args:
        name: the name of its schema.
        keywords: what a request may hold.
        at: its last part, where it is not the name.
        required: keywords that must stand.
        by_query, by_body: whether GET asks it, and POST.
        as_text: whether it is told as Markdown too.
        at_once: whether it is answered before anybody could leave.
    """

    name: str
    keywords: Mapping[str, Kinds]
    answer: Callable[[Desk, Keywords, Speech], Awaitable[Told]]
    required: tuple[str, ...] = ()
    by_query: bool = True
    by_body: bool = True
    as_text: bool = False
    at_once: bool = False
    at: str = ""

    @property
    def path(self) -> str:
        """Its address."""
        return f"{PREFIX}/{self.at or self.name}"


PREFIX = "/api/v1"
_FILTER: Mapping[str, Kinds] = {"filter": (str,)}

QUESTIONS = (
    Question("size", known.SIZE, answer_size, ("model",), as_text=True, at_once=True),
    Question("explain", known.SIZE, answer_explain, ("model",), as_text=True),
    Question("compare", known.COMPARE, answer_compare, ("models",), as_text=True),
    Question("fit", known.FIT, answer_fit, ("model",), as_text=True),
    Question("plan", known.PLAN, answer_plan, ("model",), as_text=True),
    Question(
        "verify", {"log": (str,), **known.VERIFY}, answer_verify, ("log",), by_query=False, as_text=True
    ),
    Question("models", _FILTER, answer_models, by_body=False),
    Question("gpus", _FILTER, answer_gpus, by_body=False),
    Question("engines", {}, answer_engines, by_body=False),
    Question("search", SEARCH, answer_search, by_body=False),
    Question("command", {"command": (str,)}, answer_command, ("command",), at="parse-command"),
)
