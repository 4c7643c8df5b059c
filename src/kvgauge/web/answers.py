"""Ask the library: one function a question, each returns the object of the JSON contract."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from kvgauge import keywords as known
from kvgauge.comparison import Unfound, compare
from kvgauge.derivation import explain
from kvgauge.errors import InvalidRequestError, KvgaugeError
from kvgauge.fitting import fit
from kvgauge.inventory import engines_answer, gpus_answer, models_answer
from kvgauge.keywords import FINDING, Kinds
from kvgauge.models import Model
from kvgauge.render.answer_json import fit_json, size_json, verify_json
from kvgauge.sizing import size
from kvgauge.verification.verifying import verify
from kvgauge.web.asking import Speech
from kvgauge.web.launch_lines import read_command
from kvgauge.web.library import Library, Wanted
from kvgauge.web.pools import Pools
from kvgauge.web.searching import KEYWORDS as SEARCH
from kvgauge.web.searching import answer_search
from kvgauge.web.settings import WebSettings

Json = dict[str, object]
Keywords = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Desk:
    """What answers need: settings, threads and the models that were read."""

    settings: WebSettings
    pools: Pools
    library: Library

    @classmethod
    def of(cls, settings: WebSettings) -> Desk:
        """Return the desk of a new server."""
        pools = Pools()
        return cls(settings, pools, Library(settings, pools))

    async def quick(self, work: Callable[[], Json]) -> Json:
        """Answer about models that are at hand."""
        return await self.pools.quick.run(work, self.settings.limits.answer_s)

    async def slow(self, work: Callable[[], Json]) -> Json:
        """Answer what takes longer."""
        return await self.pools.slow.run(work, self.settings.limits.answer_s)

    async def model(self, keywords: Keywords, model: object) -> Model:
        """Return a model that a request names, found as its keywords say; see ``without_finding``."""
        return await self.library.find(self._wanted(keywords, model))

    async def models(self, keywords: Keywords) -> list[Model | Unfound]:
        """Return the models of a comparison, those that can't be had with their error."""
        found: list[Model | Unfound] = []
        for model in keywords["models"]:
            wanted = self._wanted(keywords, model)
            try:
                found.append(await self.library.find(wanted))
            except KvgaugeError as error:
                found.append(Unfound(wanted.shown, error))
        return found

    def _wanted(self, keywords: Keywords, model: object) -> Wanted:
        if not isinstance(model, str | Mapping) or not model:
            raise InvalidRequestError(
                "MODEL is missing", hint="give the name of a model, or its config", field="model"
            )
        return Wanted(
            model,
            keywords.get("overrides"),
            keywords.get("revision"),
            bool(keywords.get("refresh")),
            bool(keywords.get("offline")) or self.settings.offline,
            not keywords.get("no_weights"),
        )


def without_finding(keywords: Keywords) -> Keywords:
    """Return the keywords that remain once the model is found."""
    return {name: value for name, value in keywords.items() if name not in (*FINDING, "model", "models")}


async def answer_size(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``size``."""
    model = await desk.model(keywords, keywords.get("model"))
    load = without_finding(keywords)
    return await desk.quick(lambda: size_json(size(model, **load), speech.texts))


async def answer_explain(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``explain``."""
    model = await desk.model(keywords, keywords.get("model"))
    load = without_finding(keywords)
    return await desk.quick(lambda: explain(size(model, **load), lang=speech.lang).to_dict())


async def answer_fit(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``fit``."""
    model = await desk.model(keywords, keywords.get("model"))
    load = without_finding(keywords)
    return await desk.quick(lambda: fit_json(fit(model, **load), speech.texts, speech.units))


async def answer_compare(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``compare``; a model that can't be sized is a row of its own."""
    del speech
    most = desk.settings.limits.num_models
    if len(keywords["models"]) > most:
        raise InvalidRequestError(
            f"there are more than {most} models to compare", hint="leave some out", field="models"
        )
    models = await desk.models(keywords)
    load = without_finding(keywords)
    return await desk.quick(lambda: compare(models, **load).to_dict())


async def answer_verify(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``verify`` for the text of a log."""
    log = keywords.pop("log", None)
    if not log:
        raise InvalidRequestError("LOG is missing", hint="give the text of an engine's log", field="log")
    stream = io.BytesIO(log if isinstance(log, bytes) else str(log).encode("utf-8", "replace"))
    options = without_finding(keywords)
    if keywords.get("model") is not None:
        options["model"] = await desk.model(keywords, keywords["model"])
    return await desk.slow(
        lambda: verify_json(verify(stream, local_files=False, offline=True, **options), speech.texts)
    )


async def answer_models(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``models``."""
    del speech
    return await desk.slow(partial(models_answer, keywords.get("filter", "")))


async def answer_gpus(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``gpus``."""
    del speech
    return await desk.quick(partial(gpus_answer, keywords.get("filter", "")))


async def answer_engines(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer ``engines``."""
    del keywords, speech
    return await desk.quick(engines_answer)


async def answer_command(desk: Desk, keywords: Keywords, speech: Speech) -> Json:
    """Answer what a launch line says."""
    del speech
    return await desk.quick(partial(read_command, keywords.get("command", "")))


@dataclass(frozen=True, slots=True)
class Question:
    """One address of the API.

    Args:
        name: the name of its schema.
        keywords: what a request may hold.
        at: its last part, where it is not the name.
        required: keywords that must stand.
        by_query: whether GET asks it too.
    """

    name: str
    keywords: Mapping[str, Kinds]
    answer: Callable[[Desk, Keywords, Speech], Awaitable[Json]]
    required: tuple[str, ...] = ()
    by_query: bool = True
    by_body: bool = True
    at: str = ""

    @property
    def path(self) -> str:
        """Its address."""
        return f"{PREFIX}/{self.at or self.name}"


PREFIX = "/api/v1"
_FILTER: Mapping[str, Kinds] = {"filter": (str,)}

QUESTIONS = (
    Question("size", known.SIZE, answer_size, ("model",)),
    Question("explain", known.SIZE, answer_explain, ("model",)),
    Question("compare", known.COMPARE, answer_compare, ("models",)),
    Question("fit", known.FIT, answer_fit, ("model",)),
    Question("verify", {"log": (str,), **known.VERIFY}, answer_verify, ("log",), by_query=False),
    Question("models", _FILTER, answer_models, by_body=False),
    Question("gpus", _FILTER, answer_gpus, by_body=False),
    Question("engines", {}, answer_engines, by_body=False),
    Question("search", SEARCH, answer_search, by_body=False),
    Question("command", {"command": (str,)}, answer_command, ("command",), at="parse-command"),
)
