"""Which engine runs on which card: ``data/engine_cards.json`` against maker, kind and compute capability."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache

from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError


@dataclass(frozen=True, slots=True)
class Make:
    """What a card is, as far as it is known; what is not known is refused by no rule.

    Args:
        vendor: its maker; empty where only the memory is known.
        kind: of device, as in the catalogue.
        capability: compute capability; None for other makers' cards.
    """

    vendor: str = ""
    kind: str = ""
    capability: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Rule:
    engines: frozenset[str]
    vendors: frozenset[str]
    without_kinds: frozenset[str]
    least: tuple[int, int]

    def bars(self, engine: str, make: Make) -> bool:
        """Whether the rule says that the engine does not run on such a card."""
        if engine not in self.engines:
            return False
        is_foreign = bool(self.vendors and make.vendor) and make.vendor not in self.vendors
        is_old = make.capability is not None and make.capability < self.least
        return is_foreign or is_old or make.kind in self.without_kinds


@lru_cache(maxsize=1)
def _rules() -> tuple[_Rule, ...]:
    return tuple(
        _Rule(
            frozenset(row["engines"]),
            frozenset(row.get("vendors", ())),
            frozenset(row.get("without_kinds", ())),
            tuple(row.get("least_capability", (0, 0))),
        )
        for row in json.loads(read_data("engine_cards.json"))
    )


def runs_on(engine: str, make: Make) -> bool:
    """Return whether an engine runs on a card, as far as is known.

    >>> runs_on("tensorrt-llm", Make("AMD", "datacenter")), runs_on("vllm", Make("AMD", "datacenter"))
    (False, True)
    """
    return not any(rule.bars(engine, make) for rule in _rules())


def refuse_foreign(engine: str, name: str, make: Make) -> None:
    """Refuse a card that an engine does not run on.

    Raises:
        FeatureUnsupportedError: names both, and the engines that do.
    """
    if runs_on(engine, make):
        return
    others = [other for other in _engines() if runs_on(other, make)]
    hint = f"of the engines known here, these do: {', '.join(others)}"
    if not others:
        hint = "no engine known here does; 'kvgauge plan' says how many hold the weights"
    raise FeatureUnsupportedError(f"{engine} does not run on {name}", hint=hint, field="gpu")


def _engines() -> tuple[str, ...]:
    return tuple(sorted({name for rule in _rules() for name in rule.engines}))


__all__ = ["Make", "refuse_foreign", "runs_on"]
