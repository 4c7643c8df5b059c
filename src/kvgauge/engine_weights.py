"""From which compute capability on an engine's version runs quantised weights: ``data/engine_weights.json``.

The engines ask this of each method before they load (``get_min_capability``), and stop below it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kvgauge.data import read_data
from kvgauge.engines.releases import is_before
from kvgauge.engines.setup import Card
from kvgauge.errors import FeatureUnsupportedError

Capability = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Rule:
    """One row: ``least`` is (first release, least capability from it on), oldest first."""

    engine: str
    schemes: frozenset[str]
    least: tuple[tuple[str, Capability], ...]


@lru_cache(maxsize=1)
def _rules() -> tuple[_Rule, ...]:
    def least(row: Mapping[str, list[int]]) -> tuple[tuple[str, Capability], ...]:
        return tuple((release, (number[0], number[1])) for release, number in row.items())

    rows = json.loads(read_data("engine_weights.json"))
    return tuple(_Rule(row["engine"], frozenset(row["schemes"]), least(row["least"])) for row in rows)


def least_capability(engine: str, version: str | None, scheme: str) -> Capability | None:
    """Return the least compute capability for weights in a scheme; None where no rule says so.

    >>> least_capability("vllm", "0.33.0", "modelopt nvfp4"), least_capability("sglang", "0.5.10", "nvfp4")
    ((7, 5), (10, 0))
    """
    for rule in _rules():
        if rule.engine == engine and scheme in rule.schemes:
            held = [number for release, number in rule.least if not is_before(engine, version, release)]
            return held[-1] if held else None
    return None


def refuse_weights(engine: str, version: str | None, card: Card | None, scheme: str) -> None:
    """Refuse weights that an engine's version does not run on a card.

    Args:
        card: None, or without a capability, is refused nothing.

    Raises:
        FeatureUnsupportedError: names the least capability; the hint says whether a later release runs them.
    """
    if card is None or card.capability is None:
        return
    least = least_capability(engine, version, scheme)
    if least is None or card.capability >= least:
        return
    later = next(
        (
            release
            for rule in _rules()
            if rule.engine == engine and scheme in rule.schemes
            for release, number in rule.least
            if number <= card.capability
        ),
        "",
    )
    own, needed = ("{}.{}".format(*number) for number in (card.capability, least))
    raise FeatureUnsupportedError(
        f"{engine} {version} runs {scheme} weights from compute capability {needed} on; "
        f"{card.name or 'the card'} has {own}",
        hint=f"{later} and later run them there" if later else "other weights, or another card",
        field="gpu",
    )


__all__ = ["least_capability", "refuse_weights"]
