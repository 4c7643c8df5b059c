"""Which of vLLM's two model runners serves a model: they sample, and count memory, each in its own way.

The second runner ("V2" in vLLM's words) took over model by model from 0.22 on and serves everything from
0.29 on. Until then it makes no guess of its graphs, so that none comes off the pool; it samples with fewer
copies of the logits, and keeps a count of every word for every sequence (``v1/worker/gpu/sample``). The
table is ``data/vllm_runners.json``, read from the wheels of each release.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from kvgauge.architecture import ModelArchitecture
from kvgauge.data import read_data
from kvgauge.engines.vllm.versions import Version, parse_version
from kvgauge.layers import STATE_KINDS
from kvgauge.overhead_drivers import NEWEST, Running

#: From here on the second runner profiles its graphs too.
SECOND_GUESSES_GRAPHS = parse_version("0.29.0")
#: From here on what torch keeps counts as consumed, and "peak activation" is what passes, the guess of the
#: graphs in it (``vllm/utils/mem_utils.py``).
COUNTS_CONSUMED = parse_version("0.27.0")


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_data("vllm_runners.json"))
    return found


def is_second_runner(
    architecture: ModelArchitecture, running: Running, *, experts: bool, quantised: bool
) -> bool:
    """Return whether vLLM serves a model with its second runner by default.

    Args:
        experts: tokens are routed to experts.
        quantised: the checkpoint is.

    >>> import kvgauge
    >>> qwen = kvgauge.load("Qwen/Qwen3-8B").architecture
    >>> [is_second_runner(qwen, Running("vllm", version, 8192, 256, 32768), experts=False, quantised=False)
    ...     for version in ("0.21.0", "0.22.0", "0.33.0")]
    [False, True, True]
    """
    if running.engine != "vllm":
        return False
    table, version = _table(), version_of(running)
    if running.drafter in table["needs_second"] and version >= parse_version(table["needs_second_since"]):
        return True
    row = [row for row in table["rows"] if version >= parse_version(row["since"])][-1]
    if row["which"] == "none" or running.drafter not in table["drafters"]:
        return False
    is_listed = architecture.architecture in row.get("architectures", ())
    with_states = any(group.kind in STATE_KINDS for group in architecture.groups)
    return {
        "all": True,
        "listed": is_listed,
        "plain": is_listed and not experts and not quantised,
        "dense": is_listed or not (experts or with_states or architecture.encoder_only),
    }[row["which"]]


def version_of(running: Running) -> Version:
    """Return the version that the rules of vLLM go by; None counts as the newest."""
    return parse_version(running.version or NEWEST)


__all__ = ["COUNTS_CONSUMED", "SECOND_GUESSES_GRAPHS", "is_second_runner", "version_of"]
