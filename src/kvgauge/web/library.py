"""Find and read the models that requests name, without waiting for a hub where others wait too."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from kvgauge.errors import KvgaugeError, ModelNotFoundError, NetworkError
from kvgauge.models import Model, load
from kvgauge.web.pools import Pools
from kvgauge.web.settings import WebSettings
from kvgauge.web.shelf import Shelf

#: How the name of a file's header that was sent starts.
SENT = "gguf:"

#: Models that were read, and the bytes of what they were read from.
_NUM_MODELS, _MODEL_BYTES = 256, 32 << 20
_NUM_SENT, _SENT_BYTES = 64, 128 << 20
#: A row of the catalogue or of a hub, roughly.
_ROW_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class Wanted:
    """A model that is asked for.

    Args:
        model: a name, or a parsed config.
        weighs: whether its weights are asked for as well.
    """

    model: str | Mapping[str, object]
    overrides: Mapping[str, object] | None = None
    revision: str | None = None
    refresh: bool = False
    offline: bool = False
    weighs: bool = True

    @property
    def key(self) -> str:
        """What tells it from others."""
        told = [self.model, self.overrides, self.revision, self.offline, self.weighs]
        text = json.dumps(told, sort_keys=True, ensure_ascii=False, allow_nan=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def shown(self) -> str:
        """Its name, for people."""
        if isinstance(self.model, str):
            return self.model
        return str(self.model.get("_name_or_path") or self.model.get("general.name") or "config")

    def read(self) -> Model:
        """Find and read it.

        Raises:
            KvgaugeError: not found, damaged or not understood.
        """
        model = load(
            self.model,
            overrides=self.overrides,
            revision=self.revision,
            refresh=self.refresh,
            offline=self.offline,
            local_files=False,
        )
        if self.weighs:
            _ = model.weighed  # asks a hub where one is needed, here rather than among those at hand
        return model


class Library:
    """The models of one server."""

    def __init__(self, settings: WebSettings, pools: Pools) -> None:
        self._settings, self._pools = settings, pools
        self._read: Shelf[Model] = Shelf(_NUM_MODELS, _MODEL_BYTES)
        self._sent: Shelf[Model] = Shelf(_NUM_SENT, _SENT_BYTES)
        self._asked: dict[str, asyncio.Future[Model]] = {}

    async def find(self, wanted: Wanted) -> Model:
        """Return a model.

        Raises:
            KvgaugeError: not found, damaged or not understood; the hub does not answer in time.
        """
        if isinstance(wanted.model, str) and wanted.model.startswith(SENT):
            return self._of_sent(wanted)
        key = wanted.key
        found = None if wanted.refresh else self._read.get(key)
        if found is not None:
            return found
        if _is_at_hand(wanted):
            found = await self._pools.quick.run(wanted.read, self._settings.limits.answer_s)
        else:
            found = await self._ask(key, wanted)
        self._read.put(key, found, _weight(wanted))
        return found

    def keep_sent(self, name: str, model: Model, num_bytes: int) -> None:
        """Keep a model whose header was sent."""
        self._sent.put(name, model, num_bytes)

    def _of_sent(self, wanted: Wanted) -> Model:
        found = self._sent.get(str(wanted.model))
        if found is None:
            raise ModelNotFoundError(
                f"the header {str(wanted.model)[:80]} is no longer kept here",
                hint="send the file's beginning again",
                field="model",
            )
        return load(found, overrides=wanted.overrides) if wanted.overrides else found

    async def _ask(self, key: str, wanted: Wanted) -> Model:
        """Wait for a hub; those who ask for the same wait for the same answer."""
        asked = self._asked.get(key)
        if asked is None:
            asked = asyncio.ensure_future(self._pools.hub.run(wanted.read, 600.0))
            self._asked[key] = asked
            asked.add_done_callback(lambda _: self._asked.pop(key, None))
            asked.add_done_callback(_seen)
        seconds = self._settings.limits.hub_s
        try:
            return await asyncio.wait_for(asyncio.shield(asked), seconds)
        except TimeoutError:
            raise NetworkError(
                f"the hub has not answered within {seconds:g} s",
                hint="try again: what it has sent is kept",
                field="model",
            ) from None


def _seen(future: asyncio.Future[Model]) -> None:
    """Look at the outcome, so that nobody complains about an error that all who asked have left."""
    if not future.cancelled():
        future.exception()


def _weight(wanted: Wanted) -> int:
    return _ROW_BYTES if isinstance(wanted.model, str) else _ROW_BYTES + len(json.dumps(wanted.model))


def _is_at_hand(wanted: Wanted) -> bool:
    """Whether no hub needs to be asked: a config, or a name of the catalogue."""
    if not isinstance(wanted.model, str):
        return True
    if wanted.refresh or wanted.revision:
        return False
    from kvgauge.sources.catalogue import find_model  # noqa: PLC0415 - with the first request

    return find_model(wanted.model.strip()) is not None


__all__ = ["SENT", "KvgaugeError", "Library", "Wanted"]
