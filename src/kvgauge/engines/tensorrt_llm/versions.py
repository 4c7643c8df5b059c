"""How TensorRT-LLM's rules changed: the TensorRT backend up to 0.x, the PyTorch backend from 1.0 on.

Sources: ``_torch/pyexecutor/resource_manager.py`` of the main branch of 2026, start-up logs of 0.x and 1.x.
No plan of the engine's own code was at hand, so all of it is read or seen, none executed.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from kvgauge.engines.versions import too_old
from kvgauge.engines.vllm.versions import Version
from kvgauge.engines.vllm.versions import parse_version as parse_number
from kvgauge.errors import InvalidRequestError
from kvgauge.values import dataclass

OLDEST = "0.8.0"
NEWEST = "1.4.0"


@dataclass(frozen=True, slots=True)
class TrtllmRules:
    """The rules of one version.

    Args:
        tokens_per_block: of a block where none are told.
        fraction: share of the free memory where none is told.
        max_batch, max_num_tokens: defaults of the server.
    """

    version: str
    tokens_per_block: int = 32
    fraction: str = "0.9"
    max_batch: int = 2048
    max_num_tokens: int = 8192


#: From -> what changed there, newest first: the fields as they were before that version.
_BEFORE: tuple[tuple[str, dict[str, object]], ...] = (("1.0.0", {"tokens_per_block": 64}),)


def parse_version(text: str) -> Version:
    """Read a version, builds included: ``1.2.1``, ``1.0.0rc3``, ``0.13.0.dev2024082000``.

    Raises:
        InvalidRequestError: not a version.

    >>> parse_version("1.0.0rc3") < parse_version("1.0.0")
    True
    """
    head, dev, _ = text.partition(".dev")
    try:
        return parse_number(f"{head}.dev0" if dev else head)
    except InvalidRequestError:
        raise InvalidRequestError(
            f"{text!r} is not a version of tensorrt-llm",
            hint=f"for example tensorrt-llm@{NEWEST}",
            field="engine",
        ) from None


@lru_cache(maxsize=64)
def rules_for(version: str | None) -> TrtllmRules:
    """Return the rules of a version; None is the newest known, whose rules newer ones get too.

    Raises:
        InvalidRequestError: not a version.
        FeatureUnsupportedError: older than what is known.

    >>> rules_for("0.20.0").tokens_per_block, rules_for("1.2.1").tokens_per_block
    (64, 32)
    """
    asked = parse_version(version or NEWEST)
    if asked < parse_version(OLDEST + ".dev0"):
        raise too_old("tensorrt-llm", version, OLDEST)
    rules = TrtllmRules(version or NEWEST)
    for since, before in _BEFORE:
        if asked < parse_version(since + ".dev0"):
            rules = replace(rules, **before)  # type: ignore[arg-type]
    return rules


def known_versions() -> tuple[str, ...]:
    """Return the first version of each set of rules, oldest first, for listings."""
    return (OLDEST, *(since for since, _ in reversed(_BEFORE)))
