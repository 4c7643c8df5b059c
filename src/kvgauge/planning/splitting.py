"""Other ways to divide the load of a plan than over equal ranks: ``plan --split``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvgauge.planning.asking import AXES
from kvgauge.splits import KINDS, SplitAnswer, splits
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.models import Model
    from kvgauge.planning.result import PlanOption

#: Splits that take cards of their own where none is named.
_ON_RACKS = frozenset({"attention-ffn", "sram"})
#: Keywords of a plan that ``size`` does not have.
_OF_FIT = frozenset({"utilization", "reserve"})


@dataclass(frozen=True, slots=True)
class SplitWish:
    """What is asked of other ways to divide the load.

    Args:
        kinds: words of ``kvgauge.splits.KINDS``, joined by commas, or ``all``.
        gpu: as the plan was asked; None: the cards of its first option.
        prompt: tokens that are prefilled; None: the whole context.
    """

    kinds: str
    gpu: str | None = None
    sram: str | None = None
    host_memory: int | str | None = None
    network: str | None = None
    prompt: int | str | None = None

    @property
    def chosen(self) -> tuple[str, ...]:
        """The kinds, one by one."""
        return KINDS if self.kinds == "all" else tuple(word.strip() for word in self.kinds.split(","))


def plan_splits(
    model: Model,
    wish: SplitWish,
    told: Mapping[str, Any],
    ranks: Mapping[str, int | None],
    best: PlanOption | None,
) -> SplitAnswer:
    """Return the splits of a plan's load, on the cards, in the ranks and formats of its first option.

    ``all`` leaves a shared prefix out where there is none.

    Args:
        told: keywords of the load, as ``fit`` takes them.
        ranks: those that were asked for; the first option's go before them.

    Raises:
        KvgaugeError: a split can't be answered for this model, load or card.
    """
    kinds = wish.chosen
    if wish.kinds == "all" and not told.get("shared_prefix"):
        kinds = tuple(kind for kind in kinds if kind != "prefix")
    options: dict[str, Any] = {key: value for key, value in told.items() if key not in _OF_FIT}
    options |= {axis: count for axis, count in ranks.items() if count is not None}
    bought = None
    if best is not None:
        spread = best.parallelism
        counts = (spread.tensor, spread.pipeline, spread.data, spread.expert, spread.context)
        options |= dict(zip(AXES, counts, strict=True))
        bought = best.device.words.get("gpu")
    named = {"sram": wish.sram, "host_memory": wish.host_memory, "network": wish.network}
    asked: dict[str, Any] = {**named, "prompt": wish.prompt, **options}
    on_gpus = [kind for kind in kinds if kind not in _ON_RACKS]
    on_racks = [kind for kind in kinds if kind in _ON_RACKS]
    gpu = wish.gpu if wish.gpu is not None and "," not in wish.gpu and wish.gpu != "all" else None
    asked_here = {**asked, **_formats(best)}
    first = splits(model if best is None else best.fit.model, on_gpus, gpu=gpu or bought, **asked_here)
    alone = {**asked, **dict.fromkeys(AXES)}  # attention is not cut over ranks
    second = splits(model, on_racks, gpu=gpu, **alone)
    return replace(second, sized=first.sized, splits=(*first.splits, *second.splits))


def _formats(best: PlanOption | None) -> Mapping[str, str]:
    """Return what an option takes instead of the checkpoint's own, as keywords of ``size``."""
    if best is None:
        return {}
    changed = {"kv_dtype": best.formats.kv, "weights": best.formats.weights}
    return {key: word for key, word in changed.items() if word is not None}
