"""Which engine runs on which card: ``data/engine_cards.json`` against maker, kind and architecture."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from kvgauge.architecture import Note
from kvgauge.data import read_data
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.values import dataclass

#: Engines in the order in which they are taken where none is named.
_BY_DEFAULT = ("vllm", "llama.cpp", "sglang", "tensorrt-llm")


@dataclass(frozen=True, slots=True)
class Make:
    """What a card is, as far as it is known; what is not known is refused by no rule.

    Args:
        vendor: its maker; empty where only the memory is known.
        kind: of device, as in the catalogue.
        capability: compute capability; None for other makers' cards.
        architecture: as in the catalogue; empty where it is not known.
    """

    vendor: str = ""
    kind: str = ""
    capability: tuple[int, int] | None = None
    architecture: str = ""


@dataclass(frozen=True, slots=True)
class _Rule:
    """One row: cards that some engines do not run on, or run on through other code.

    Args:
        vendors: makers outside which they do not; empty: any.
        of_vendor, architectures: of this maker's cards they run on these alone.
        since: the version from which the rule holds; empty: all.
        through: the code by which they run on cards of ``of_vendor``.
        is_default: whether they are taken there where no engine is named.
    """

    engines: frozenset[str]
    vendors: frozenset[str]
    without_kinds: frozenset[str]
    least: tuple[int, int]
    of_vendor: str
    architectures: frozenset[str]
    since: tuple[int, ...]
    through: str
    is_default: bool

    def bars(self, engine: str, make: Make, version: str | None) -> bool:
        """Whether the rule says that the engine does not run on such a card."""
        if engine not in self.engines or (version is not None and _numbers(version) < self.since):
            return False
        is_foreign = bool(self.vendors and make.vendor) and make.vendor not in self.vendors
        is_old = make.capability is not None and make.capability < self.least
        is_other = bool(self.architectures and make.architecture) and (
            make.vendor == self.of_vendor and make.architecture not in self.architectures
        )
        return is_foreign or is_old or is_other or make.kind in self.without_kinds

    def carries(self, engine: str, make: Make) -> bool:
        """Whether the engine runs on such a card through other code."""
        return bool(self.through) and engine in self.engines and make.vendor == self.of_vendor


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d{1,9}", version[:40])[:3])


@lru_cache(maxsize=1)
def _rules() -> tuple[_Rule, ...]:
    return tuple(
        _Rule(
            frozenset(row["engines"]),
            frozenset(row.get("vendors", ())),
            frozenset(row.get("without_kinds", ())),
            tuple(row.get("least_capability", (0, 0))),
            row.get("of_vendor", ""),
            frozenset(row.get("architectures", ())),
            _numbers(row.get("since", "")),
            row.get("through", ""),
            row.get("is_default", True),
        )
        for row in json.loads(read_data("engine_cards.json"))
    )


def runs_on(engine: str, make: Make, version: str | None = None) -> bool:
    """Return whether an engine runs on a card, as far as is known.

    Args:
        version: None is the newest.

    >>> runs_on("tensorrt-llm", Make("AMD", "datacenter")), runs_on("vllm", Make("AMD", "datacenter"))
    (False, True)
    """
    return not any(rule.bars(engine, make, version) for rule in _rules())


def default_engine_on(makes: Iterable[Make]) -> str:
    """Return the engine that is taken on some cards where none is named.

    The first that runs on all of them, its own code before code of others; where none does, on the first.

    >>> default_engine_on([]), default_engine_on([Make("Apple", "unified")])
    ('vllm', 'llama.cpp')
    """
    cards = tuple(makes)
    for some in (cards, cards[:1]):
        running = [name for name in _BY_DEFAULT if all(runs_on(name, make) for make in some)]
        wanted = (name for name in running if not any(_is_second(name, make) for make in some))
        found = next(wanted, None) or next(iter(running), None)
        if found is not None:
            return found
    return _BY_DEFAULT[0]


def _is_second(engine: str, make: Make) -> bool:
    return any(rule.carries(engine, make) and not rule.is_default for rule in _rules())


def refuse_foreign(engine: str, version: str | None, name: str, make: Make) -> None:
    """Refuse a card that an engine does not run on.

    Raises:
        FeatureUnsupportedError: names both, and the engines that do.
    """
    if runs_on(engine, make, version):
        return
    others = sorted(other for other in _BY_DEFAULT if runs_on(other, make))
    hint = f"of the engines known here, these do: {', '.join(others)}"
    if others and runs_on(engine, make, "0"):
        hint = f"earlier versions of {engine} do, and of the engines known here these: {', '.join(others)}"
    if not others:
        hint = "no engine known here does; 'kvgauge plan' says how many hold the weights"
    raise FeatureUnsupportedError(f"{engine} does not run on {name}", hint=hint, field="gpu")


def foreign_code_notes(engine: str, name: str, make: Make) -> Iterator[Note]:
    """Say where an engine runs on a card through code whose rules of memory are others."""
    for rule in _rules():
        if rule.carries(engine, make):
            text = f"{engine} runs on {name} through {rule.through}, whose rules of memory may be others"
            values = (("engine", engine), ("name", name), ("through", rule.through))
            yield Note("engine_through", "warning", text, values)


__all__ = ["Make", "default_engine_on", "foreign_code_notes", "refuse_foreign", "runs_on"]
