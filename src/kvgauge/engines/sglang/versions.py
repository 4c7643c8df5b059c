"""How SGLang's rules changed from version to version.

Sources: the wheels 0.4.3 to 0.5.23, compared with one another; 0.5.23 against its own plans, older ones
against start-up logs. "From X" is the first of these wheels that has a rule, so a change may lie a little
earlier: 0.4.3, 0.4.6, 0.4.7, 0.4.8, 0.4.9, 0.5.1, 0.5.2, 0.5.3, 0.5.4, 0.5.6, 0.5.7, 0.5.8, 0.5.9, 0.5.10,
0.5.12, 0.5.14, 0.5.18, 0.5.20, 0.5.21, 0.5.22, 0.5.23.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Literal

from kvgauge.engines.versions import too_old
from kvgauge.engines.vllm.versions import Version
from kvgauge.engines.vllm.versions import parse_version as parse_number
from kvgauge.errors import InvalidRequestError
from kvgauge.values import dataclass

Fraction = Literal["ranks", "ranks_and_memory", "classes", "reserve"]
WindowPools = Literal["none", "tokens", "bytes"]
StateSlots = Literal["none", "given", "padded_by_draft", "plain", "joint", "padded"]

OLDEST = "0.4.3"
NEWEST = "0.5.23"


@dataclass(frozen=True, slots=True)
class Tier:
    """Defaults of cards with less memory than ``below_mib``; decode batches below and from four ranks on."""

    below_mib: float
    chunk: int
    batch: int
    batch_wide: int


_REST = (
    Tier(60 * 1024, 4096, 32, 160),
    Tier(90 * 1024, 8192, 256, 512),
    Tier(160 * 1024, 8192, 256, 512),
    Tier(float("inf"), 16384, 512, 512),
)
_SMALL = Tier(20 * 1024, 2048, 8, 8)
_TIERS = (_SMALL, Tier(35 * 1024, 4096, 48, 160), *_REST)
_TIERS_24 = (_SMALL, Tier(35 * 1024, 2048, 24, 80), *_REST)
_TIERS_16 = (_SMALL, Tier(35 * 1024, 2048, 16, 80), *_REST)
_TIERS_048 = (
    Tier(35 * 1024, 2048, 8, 80),
    Tier(160 * 1024, 8192, 160, 160),
    Tier(float("inf"), 16384, 160, 160),
)
_TIERS_043 = (Tier(25_000, 2048, 8, 80), Tier(float("inf"), 8192, 160, 160))


@dataclass(frozen=True, slots=True)
class SglangRules:
    """The rules of one version.

    Args:
        tiers: defaults by memory of the card.
        fraction: where ``mem_fraction_static`` comes from: ranks alone; ranks and memory; a reserve by class
            of card; or a reserve that is added up from chunk, graphs and ranks.
        prefill_graphs: prefill graphs enter the reserve.
        draft_reserve_gib: reserve for drafting, of a draft model of its own and of others.
        flat_multimodal: share of the fraction that multimodal models keep, whatever their tower; 0 by tower.
        told_multimodal: a fraction that is told is lowered by it too.
        multimodal_reserve: caches of image features are held back when the pool is sized.
        checkpoint_kv: ``auto`` asks the checkpoint's quantisation.
        index_budgeted: keys of a sparse index count when the pool is sized, and are printed with it.
        sparse_priced: fp8 rows of a sparse latent are budgeted with their scales; before, as plain rows.
        sparse_raw: plain fp8 rows are what Blackwell's default backend reads.
        index_shared: layers that reuse another layer's index own no keys.
        own_value_width: V rows have their own width; before, they were priced as wide as K.
        window_pools: layers with a window lie in a pool of their own: never; solved in tokens of equal size;
            or in the bytes of each kind.
        window_architectures: index into the table of architectures with two pools.
        state_slots: how slots of recurrent state follow from the budget.
        slot_extra: with radix cache, slots that tracking adds to the three of a running request; 0 where not.
        spare_request: the printed limit of requests is one more than the estimate.
        draft_headroom: drafting raised the printed tokens above what the bytes gave.
    """

    version: str
    tiers: tuple[Tier, ...] = _TIERS
    fraction: Fraction = "reserve"
    prefill_graphs: bool = True
    draft_reserve_gib: tuple[int, int] = (0, 0)
    flat_multimodal: float = 0.0
    told_multimodal: bool = False
    multimodal_reserve: bool = True
    checkpoint_kv: bool = True
    index_budgeted: bool = True
    sparse_priced: bool = True
    sparse_raw: bool = True
    index_shared: bool = True
    own_value_width: bool = True
    window_pools: WindowPools = "bytes"
    window_architectures: int = 4
    state_slots: StateSlots = "padded"
    slot_extra: int = 2
    spare_request: bool = False
    draft_headroom: bool = False


#: From -> what changed there, newest first: the fields as they were before that version.
_BEFORE: tuple[tuple[str, dict[str, object]], ...] = (
    ("0.5.20", {"tiers": _TIERS_24}),
    ("0.5.18", {"index_shared": False, "sparse_priced": False, "state_slots": "joint",
                "window_architectures": 3}),
    ("0.5.14", {"multimodal_reserve": False, "state_slots": "plain", "draft_reserve_gib": (6, 4)}),
    ("0.5.12", {"window_pools": "tokens", "window_architectures": 2}),
    ("0.5.10", {"prefill_graphs": False, "sparse_raw": False, "draft_reserve_gib": (6, 2)}),
    ("0.5.9", {"window_architectures": 1}),
    ("0.5.8", {"window_pools": "none", "state_slots": "padded_by_draft"}),
    ("0.5.7", {"slot_extra": 0, "own_value_width": False}),
    ("0.5.6", {"tiers": _TIERS_16, "draft_headroom": True}),
    ("0.5.4", {"index_budgeted": False, "state_slots": "given"}),
    ("0.5.3", {"fraction": "classes", "tiers": _TIERS_048, "checkpoint_kv": False,
               "draft_reserve_gib": (2, 2)}),
    ("0.5.1", {"flat_multimodal": 0.9, "state_slots": "none"}),
    ("0.4.8", {"fraction": "ranks_and_memory", "tiers": _TIERS_043, "draft_reserve_gib": (0, 0)}),
    ("0.4.7", {"spare_request": True}),
    ("0.4.6", {"fraction": "ranks", "flat_multimodal": 0.95, "told_multimodal": True}),
)  # fmt: skip


def parse_version(text: str) -> Version:
    """Read a version, builds included: ``0.5.23``, ``v0.4.6.post4``.

    Raises:
        InvalidRequestError: not a version.

    >>> parse_version("0.4.6.post4") < parse_version("0.5.2")
    True
    """
    try:
        return parse_number(text)
    except InvalidRequestError:
        raise InvalidRequestError(
            f"{text!r} is not a version of sglang", hint=f"for example sglang@{NEWEST}", field="engine"
        ) from None


@lru_cache(maxsize=64)
def rules_for(version: str | None) -> SglangRules:
    """Return the rules of a version; None is the newest known, whose rules newer ones get too.

    Raises:
        InvalidRequestError: not a version.
        FeatureUnsupportedError: older than what is known.

    >>> rules_for("0.4.6.post4").fraction, rules_for("0.5.23").fraction
    ('ranks_and_memory', 'reserve')
    """
    asked = parse_version(version or NEWEST)
    if asked < parse_version(OLDEST):
        raise too_old("sglang", version, OLDEST)
    rules = SglangRules(version or NEWEST)
    for since, before in _BEFORE:
        if asked < parse_version(since + ".dev0"):
            rules = replace(rules, **before)  # type: ignore[arg-type]
    return rules


def known_versions() -> tuple[str, ...]:
    """Return the first version of each set of rules, oldest first, for listings."""
    return (OLDEST, *(since for since, _ in reversed(_BEFORE)))
