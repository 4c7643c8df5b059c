"""What a card lacks for a load: ``data/capability_rules.json`` against its compute capability."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kvgauge.architecture import Note
from kvgauge.data import read_data

if TYPE_CHECKING:
    from kvgauge.fit_asking import Posed

_TEXTS: Mapping[str, str] = MappingProxyType({
    "card_lacks_bf16": (
        "{card} has no bf16 (compute capability below {least}): add --dtype half, {engine} runs no bf16 on it"
    ),
    "card_lacks_fp8": (
        "{card} has no fp8 arithmetic (compute capability below {least}): an fp8 cache is converted by the "
        "kernels, and not every backend does"
    ),
})  # fmt: skip


def _runs_bf16(posed: Posed) -> bool:
    told = getattr(posed.asked, "settings", None)
    dtype = getattr(told, "dtype", None) or posed.search.prepared.architecture.model_dtype
    return bool(dtype == "bf16")


_NEEDS: Mapping[str, Callable[[Posed], bool]] = MappingProxyType(
    {
        "bf16": _runs_bf16,
        "fp8_cache": lambda posed: (posed.asked.dtypes.k or "").startswith("fp8"),
    }
)


@lru_cache(maxsize=1)
def _rules() -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(read_data("capability_rules.json")))


def card_notes(posed: Posed) -> Iterator[Note]:
    """Say what the card of a question lacks for it; nothing where its capability is not known."""
    card, engine = posed.search.prepared.setup.card, posed.search.prepared.request.engine
    if card is None or card.capability is None or not card.name:
        return
    for rule in _rules():
        is_asked = engine in rule["engines"] and _NEEDS[rule["needs"]](posed)
        if is_asked and card.capability < tuple(rule["least"]):
            values = {"card": card.name, "least": "{}.{}".format(*rule["least"]), "engine": engine}
            code = rule["code"]
            yield Note(code, "warning", _TEXTS[code].format(**values), tuple(values.items()))


__all__ = ["card_notes"]
