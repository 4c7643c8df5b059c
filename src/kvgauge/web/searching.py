"""Complete the name of a model: the catalogue at once, the hub where it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kvgauge.errors import InvalidRequestError, KvgaugeError
from kvgauge.web.telling import Told, told

if TYPE_CHECKING:
    from kvgauge.keywords import Kinds
    from kvgauge.web.asking import Speech
    from kvgauge.web.desk import Desk

KEYWORDS: Mapping[str, Kinds] = {"q": (str,), "limit": (int,), "hub": (bool,)}
DEFAULT_LIMIT, MAX_LIMIT = 20, 50
_MAX_QUERY = 200


async def answer_search(desk: Desk, keywords: dict[str, Any], speech: Speech) -> Told:
    """Return names that hold every word; those of the hub come after those of the catalogue."""
    asked = str(keywords.get("q") or "")[:_MAX_QUERY]
    limit = keywords.get("limit", DEFAULT_LIMIT)
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequestError(
            f"limit is to be 1 to {MAX_LIMIT}", hint=f"{DEFAULT_LIMIT} where it is left out", field="limit"
        )
    found = in_catalogue(asked)
    rows = [{"id": name, "source": "catalogue"} for name in found[:limit]]
    failure: KvgaugeError | None = None
    state = "not_asked"
    if keywords.get("hub") and asked.strip():
        state = "offline" if desk.settings.offline else "asked"
        if state == "asked" and len(rows) < limit:
            known = {row["id"].lower() for row in rows}
            try:
                names = await _on_hub(desk, asked, limit)
            except KvgaugeError as error:
                state, failure, names = "failed", error, []
            rows += [{"id": name, "source": "hub"} for name in names if name.lower() not in known]
    answer: dict[str, object] = {
        "schema": "kvgauge.search/1",
        "query": asked,
        "models": rows[:limit],
        "more": len(found) > limit,
        "hub": state,
        "failure": speech.texts.error(failure.message) if failure is not None else None,
    }
    return told(answer)


def in_catalogue(asked: str) -> list[str]:
    """Return the names of the catalogue that hold every word, those that begin with the first one first.

    >>> in_catalogue("qwen3 8b")[0]
    'Qwen/Qwen3-8B'
    """
    from kvgauge.sources.catalogue import model_names  # noqa: PLC0415 - with the first request

    words = _plain(asked).replace("-", " ").split()
    found = [name for name in model_names() if all(word in _plain(name) for word in words)]

    def rank(name: str) -> tuple[bool, int, str]:
        tail = _plain(name).rpartition("/")[2]
        return not (words and tail.startswith(words[0])), len(name), name.lower()

    return sorted(found, key=rank) if words else found


def _plain(text: str) -> str:
    return text.lower().replace("_", "-").replace(" ", "-")


async def _on_hub(desk: Desk, asked: str, limit: int) -> list[str]:
    from kvgauge.errors import NetworkError  # noqa: PLC0415
    from kvgauge.sources.hub_search import search_hub  # noqa: PLC0415 - few ask for it

    try:
        return await desk.pools.hub.run(lambda: search_hub(asked, limit), desk.settings.limits.hub_s)
    except TimeoutError:
        raise NetworkError("the hub has not answered in time", hint="try again", field="q") from None
