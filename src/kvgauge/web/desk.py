"""Where answers are made: settings, threads and the models that were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kvgauge.comparison import Unfound
from kvgauge.errors import InvalidRequestError, KvgaugeError
from kvgauge.models import Model
from kvgauge.web.failures import without_paths
from kvgauge.web.guard import is_loopback
from kvgauge.web.library import Library, Wanted
from kvgauge.web.pools import Pool, Pools
from kvgauge.web.settings import WebSettings
from kvgauge.web.shelf import Shelf
from kvgauge.web.telling import Told

if TYPE_CHECKING:
    from kvgauge.web.learning import Lesson

Keywords = dict[str, Any]

#: Models of no more layers than the largest published ones are sized at once: a thread would cost more.
FEW_LAYERS = 130
#: Models of more layers are answered among the slow: no published one has as many.
MANY_LAYERS = 300
#: Topics of learn that were run, and the bytes of their answers as JSON.
_NUM_LESSONS, _LESSON_BYTES = 64, 16 << 20


@dataclass(frozen=True, slots=True)
class Desk:
    """What answers need.

    Args:
        lessons: what topics of learn have answered.
    """

    settings: WebSettings
    pools: Pools
    library: Library
    lessons: Shelf[Lesson] = field(default_factory=lambda: Shelf(_NUM_LESSONS, _LESSON_BYTES))

    @classmethod
    def of(cls, settings: WebSettings) -> Desk:
        """Return the desk of a new server."""
        pools = Pools()
        return cls(settings, pools, Library(settings, pools))

    async def quick(self, work: Callable[[], Told]) -> Told:
        """Answer from what is at hand."""
        return await self._run(self.pools.quick, work)

    async def slow(self, work: Callable[[], Told]) -> Told:
        """Answer what takes longer."""
        return await self._run(self.pools.slow, work)

    async def about(self, models: list[Model | Unfound], work: Callable[[], Told]) -> Told:
        """Answer about models that were read, where they are not outsized at once."""
        layers = (model.architecture.num_layers for model in models if isinstance(model, Model))
        is_many = sum(layers) > MANY_LAYERS * max(1, len(models))
        return await self._run(self.pools.slow if is_many else self.pools.quick, work)

    async def size(self, model: Model, work: Callable[[], Told]) -> Told:
        """Answer the size of a model that was read, which takes a few milliseconds: at once."""
        if model.architecture.num_layers <= FEW_LAYERS:
            return work()
        return await self.about([model], work)

    async def _run(self, pool: Pool, work: Callable[[], Told]) -> Told:
        return await pool.run(work, self.settings.limits.answer_s)

    async def model(self, keywords: Keywords, model: object) -> Model:
        """Return a model that a request names, found as its keywords say."""
        return await self._find(self._wanted(keywords, model))

    async def models(self, keywords: Keywords) -> list[Model | Unfound]:
        """Return the models of a comparison, those that can't be had with their error."""
        found: list[Model | Unfound] = []
        for model in keywords["models"]:
            wanted = self._wanted(keywords, model)
            try:
                found.append(await self._find(wanted))
            except KvgaugeError as error:
                error.message, error.hint = without_paths(error.message), without_paths(error.hint)
                found.append(Unfound(wanted.shown, error))
        return found

    async def _find(self, wanted: Wanted) -> Model:
        """Return a model that is not so large that an answer about it would hold a thread for minutes.

        Raises:
            InvalidRequestError: it is.
        """
        found = await self.library.find(wanted)
        layers, most = found.architecture.num_layers, self.settings.limits.num_layers
        if layers > most:
            raise InvalidRequestError(
                f"the model has {layers} layers, more than is answered here",
                hint=f"up to {most}; the commands take more",
                field="model",
            )
        return found

    def check_gpu(self, keywords: Keywords) -> bool:
        """Whether this machine's own devices are asked for, which takes its tools some time.

        Raises:
            InvalidRequestError: and the server is open to others.
        """
        is_own = str(keywords.get("gpu") or "").strip().lower() == "local"
        if is_own and not is_loopback(self.settings.host):
            raise InvalidRequestError(
                "the devices of this machine are told to itself alone",
                hint="name the card: --gpu H100",
                field="gpu",
            )
        return is_own

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
