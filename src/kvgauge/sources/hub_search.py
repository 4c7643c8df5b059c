"""Names on the hub that a few words find, the most used first. For completion; nothing is read or kept."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from kvgauge.errors import OfflineError
from kvgauge.sources.hub import connect
from kvgauge.sources.hub_cache import keeps_offline
from kvgauge.sources.names import HubName
from kvgauge.sources.refusals import busy

_MAX_BYTES = 1 << 20
_WITHIN_S = 8.0
MAX_NAMES = 50


def search_hub(words: str, limit: int = 20) -> list[str]:
    """Return up to ``limit`` names of models on the hub.

    Raises:
        OfflineError: the network is not to be used. NetworkError: the hub does not answer.
    """
    why = keeps_offline(offline=False)
    if why:
        raise OfflineError(f"the hub is not asked: {why} keeps off the network", field="q")
    site = connect(HubName("")).site
    asked = {"search": words[:100], "limit": str(min(limit, MAX_NAMES)), "sort": "downloads"}
    url = f"{site.endpoint}/api/models?{urlencode(asked)}"
    answer = site.ask(url, max_bytes=_MAX_BYTES, within_s=_WITHIN_S)
    if answer.status != 200:
        raise busy(site, answer) or site.failure(f"the search answers {answer.status}")
    try:
        rows = json.loads(answer.body)
    except (ValueError, RecursionError):
        rows = None
    if not isinstance(rows, list):
        raise site.failure("it does not answer as a hub does (no list of models)")
    names = (row.get("id") for row in rows if isinstance(row, dict))
    return [name for name in names if isinstance(name, str) and HubName(name).is_valid][:limit]
