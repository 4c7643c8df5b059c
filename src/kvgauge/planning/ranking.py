"""Options in their order, and why each stands where it does; what is next cheaper, and why that fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.planning.cases import Case, Formats
from kvgauge.planning.search import Found, Machine, closest
from kvgauge.units import format_bytes
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.planning.asking import Asked
    from kvgauge.workload import Parallelism


@dataclass(frozen=True)
class Ranked:
    """An option with its place.

    Args:
        reasons: why it stands there, then why the next cheaper machine fails.
    """

    case: Case
    reasons: tuple[Note, ...]

    @property
    def machine(self) -> Machine:
        """So many of the device."""
        return Machine(self.case.device, self.case.count)


def order_of(case: Case) -> tuple[object, ...]:
    """Return the place of an option: weights of its own, price, GPUs, formats, stages, headroom."""
    return (
        case.formats.weights_order,
        *Machine(case.device, case.count).order,
        case.formats.num_changes,
        case.layout.pipeline,
        -case.multiple,
        _parts(case.layout),
    )


def _parts(layout: Parallelism) -> tuple[int, ...]:
    return layout.data, layout.context, layout.expert, layout.tensor


def kind_of(layout: Parallelism) -> tuple[bool, ...]:
    """Return what tells layouts apart for a reader: which kinds of parallelism there are, not how much."""
    ranks = (layout.pipeline, layout.data, layout.context)
    return tuple(count > 1 for count in ranks)


def shown_cases(fitting: list[Case], *, several: bool) -> list[Case]:
    """Return options in order: of a machine the best layout, or of one device the best of each kind.

    Args:
        several: more than one device was looked at.
    """
    seen: set[object] = set()
    kept = []
    for case in sorted(fitting, key=order_of):
        key = (case.device.name, case.count, case.formats, None if several else kind_of(case.layout))
        if key not in seen:
            seen.add(key)
            kept.append(case)
    return kept


def rank(cases: list[Case], found: Found, asked: Asked) -> tuple[Ranked, ...]:
    """Return options with their reasons."""
    ranked = []
    for place, case in enumerate(cases):
        notes = [*_place(case, cases[place - 1] if place else None), *_changes(case)]
        cheaper = _cheaper(case, found, asked.of(case.formats), is_first=not place)
        ranked.append(Ranked(case, (*notes, *cheaper)))
    return tuple(ranked)


def _place(case: Case, before: Case | None) -> Iterator[Note]:
    machine = Machine(case.device, case.count)
    if before is None:
        yield _first(machine)
        return
    other = Machine(before.device, before.count)
    if case.formats.weights_order > before.formats.weights_order:
        yield Note("plan_other_weights", "info", "stands after those with the checkpoint's own weights")
    elif machine.cost != other.cost:
        yield _dearer(machine, other)
    else:
        mine, theirs = (f"{one.multiple:.1f}" for one in (case, before))
        text = f"costs the same and holds this load {mine} times, the option before it {theirs} times"
        yield Note("plan_less_room", "info", text, (("multiple", mine), ("other", theirs)))


def _first(machine: Machine) -> Note:
    if machine.cost[0] == 2:
        return Note("plan_fewest", "info", "the fewest GPUs that hold the load; no price is known")
    return Note("plan_cheapest", "info", "the cheapest that holds the load")


def _dearer(machine: Machine, other: Machine) -> Note:
    if machine.cost[0] != other.cost[0] or machine.cost[0] == 2:
        count = str(machine.count)
        text = f"number of GPUs: {count}; its price can't be compared with those before it"
        return Note("plan_no_common_price", "info", text, (("count", count),))
    price = cost_text(machine)
    return Note("plan_dearer", "info", f"next by price: {price}", (("price", price),))


def _changes(case: Case) -> Iterator[Note]:
    formats = case.formats
    if formats.kv is not None:
        word = formats.kv
        text = f"its cache is in {word}, which the checkpoint does not ask for"
        yield Note("plan_changes_cache", "info", text, (("dtype", word),))
    if formats.checkpoint is not None:
        text = f"its weights are another published checkpoint: {formats.checkpoint}"
        yield Note("plan_changes_checkpoint", "info", text, (("name", formats.checkpoint),))
    if formats.weights is not None:
        word = formats.weights
        text = f"its weights are in {word}, which this checkpoint does not offer"
        yield Note("plan_changes_weights", "warning", text, (("scheme", word),))


def cost_text(machine: Machine) -> str:
    """Return what a machine costs, empty where nothing is known.

    >>> from types import SimpleNamespace as S
    >>> cost_text(Machine(S(hourly=S(usd=2.5), purchase=None), 4))
    '$10/h'
    """
    unit, amount = machine.cost
    if unit == 2:
        return ""
    digits = f"{amount:,.2f}".rstrip("0").rstrip(".")
    return f"${digits}/h" if unit == 0 else f"${digits}"


def _cheaper(case: Case, found: Found, asked: Asked, *, is_first: bool) -> Iterator[Note]:
    """Say why the next cheaper machine fails that was to store the load the same way."""
    here = Machine(case.device, case.count)
    failing = [
        machine
        for machine, formats in found.failing
        if formats == case.formats and machine.cost[0] == here.cost[0] and machine.cost < here.cost
    ]
    if not failing and is_first:
        yield Note("plan_nothing_cheaper", "info", "nothing cheaper was looked at")
        return
    if not failing:
        yield Note("plan_cheaper_do", "info", "nothing cheaper fails")
        return
    next_one = max(failing, key=lambda machine: machine.order)
    why = closest(asked.evaluator, asked.space, next_one, case.formats)
    if why is None:
        text = f"next cheaper: no layout that was asked for has the GPUs of {machine_text(next_one)}"
        yield Note("plan_cheaper_no_layout", "info", text, (("machine", machine_text(next_one)),))
        return
    yield failure_note(why)


def machine_text(machine: Machine) -> str:
    """Return a machine with its price: ``4 x H100 SXM5 80GB ($18/h)``."""
    price = cost_text(machine)
    name = f"{machine.count} x {machine.device.name or 'GPU'}"
    return f"{name} ({price})" if price else name


def layout_text(layout: Parallelism) -> str:
    """Return a layout as options are written, what is 1 left out.

    >>> from kvgauge.workload import Parallelism
    >>> layout_text(Parallelism(2, data=4, expert=8)), layout_text(Parallelism())
    ('TP2 DP4 EP8', 'TP1')
    """
    pairs = (
        ("TP", layout.tensor), ("PP", layout.pipeline), ("DP", layout.data), ("EP", layout.expert),
        ("DCP", layout.context),
    )  # fmt: skip
    return " ".join(f"{word}{count}" for word, count in pairs if count > 1) or "TP1"


#: Failure -> code and words of what a machine lacks; of the others it is the load that does not fit.
_LACKS: Mapping[str | None, tuple[str, str]] = MappingProxyType(
    {
        "weights": ("plan_cheaper_weights", "is {lack} short on each GPU before any cache"),
        "tight": ("plan_cheaper_tight", "fits as a rule, and is {lack} short on each GPU at worst"),
        "margin": ("plan_cheaper_margin", "fits, {lack} short on each GPU of the margin to keep"),
        "overdrawn": ("plan_cheaper_overdrawn", "would take {lack} more than the GPU has"),
    }
)
_SHORT = ("plan_cheaper_short", "is {lack} short on each GPU")


def failure_note(case: Case) -> Note:
    """Return why a machine is no option, at the layout that lacks least."""
    machine = machine_text(Machine(case.device, case.count))
    how, failure = layout_text(case.layout), case.failure
    lack = max(0, case.lack_bytes)
    shown = (("machine", machine), ("layout", how), ("lack", format_bytes(lack)))
    start = f"next cheaper: {machine}"
    if failure == "refused" and case.refusal is not None:
        text = f"{start} is refused with {how}: {case.refusal.message}"
        why = (("machine", machine), ("layout", how), ("why", case.refusal.message))
        return Note("plan_cheaper_refused", "info", text, why)
    if failure == "flag":
        text = f"{start} would do, but the engine's flags allow less than the load"
        return Note("plan_cheaper_flag", "info", text, (("machine", machine),))
    code, words = _LACKS.get(failure, _SHORT)
    text = f"{start} with {how} {words.format(lack=format_bytes(lack))}"
    return Note(code, "info", text, shown, (lack,))


__all__ = [
    "Formats",
    "Ranked",
    "cost_text",
    "failure_note",
    "kind_of",
    "layout_text",
    "machine_text",
    "order_of",
    "rank",
    "shown_cases",
]  # fmt: skip
