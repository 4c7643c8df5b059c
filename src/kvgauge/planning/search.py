"""Machines in the order of their price, until enough hold the load: what fits, and what was too little.

A machine is so many of a device. The cheapest are looked at first, so whatever is cheaper than an option
was found too little; a bound from below (all weights and all that must be kept, evenly spread) skips most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from itertools import groupby
from typing import TYPE_CHECKING

from kvgauge.planning.cases import OWN, Case, Evaluator, Formats
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.planning.devices import PlanDevice
    from kvgauge.planning.layouts import Space

Watcher = Callable[[int, int], None]
#: With so many options priced in one unit, those of another are not looked at.
_COMPARABLE = 3


@dataclass(frozen=True, slots=True)
class Machine:
    """So many of a device, in one box or several."""

    device: PlanDevice
    count: int

    @property
    def cost(self) -> tuple[int, float]:
        """What the order follows: dollars an hour, else dollars to buy, else the number of GPUs."""
        device = self.device
        if device.hourly is not None:
            return 0, device.hourly.usd * self.count
        if device.purchase is not None:
            return 1, device.purchase.usd * self.count
        return 2, self.count

    @property
    def order(self) -> tuple[int, float, int]:
        """The place of a machine: by cost, then by the number of GPUs."""
        return (*self.cost, self.count)


@dataclass
class Found:
    """What a search came to.

    Args:
        fitting: options: of each machine that holds the load, all layouts that do.
        failing: machines that were looked at in vain, in their order, with how they were to store the load.
    """

    fitting: list[Case] = field(default_factory=list)
    failing: list[tuple[Machine, Formats]] = field(default_factory=list)

    @property
    def num_machines(self) -> int:
        """Machines that hold the load."""
        return len({(case.device.name, case.count) for case in self.fitting})


def machines_of(devices: Iterable[PlanDevice], ranks: int = 1) -> list[Machine]:
    """Return every machine that is looked at, cheapest first.

    Args:
        ranks: that are given: machines of so many are among them.
    """
    found = [Machine(device, count) for device in devices for count in device.counts(ranks)]
    return sorted(found, key=lambda machine: machine.order)


def search(
    evaluator: Evaluator,
    space: Space,
    machines: list[Machine],
    formats: tuple[Formats, ...],
    *,
    enough: int,
    below: tuple[int, float, int] | None = None,
    watch: Watcher | None = None,
) -> Found:
    """Return the first machines that hold the load; of each device no more than it takes.

    Args:
        machines: in their order.
        formats: ways to store the load, the least changed first; a machine is asked until one fits.
        enough: machines after which the search ends, those of the same order done.
        below: look no further than machines of this order.
        watch: called with (machines done, machines).
    """
    found, settled = Found(), set[str]()
    done, last = 0, 0
    for order, group in groupby(machines, key=lambda machine: machine.order):
        if found.num_machines >= _wanted(enough, order[0], last) or (below is not None and order >= below):
            break
        last = order[0]
        for machine in group:
            done += 1
            name = machine.device.name
            if name not in settled and _look(evaluator, space, machine, formats, found):
                settled.add(name)
        if watch is not None:
            watch(done, len(machines))
    return found


def _wanted(enough: int, unit: int, last: int) -> int:
    """Return how many machines end a search: fewer where the next ones can't be compared by price."""
    return enough if unit == last else min(enough, _COMPARABLE)


def _look(
    evaluator: Evaluator, space: Space, machine: Machine, formats: tuple[Formats, ...], found: Found
) -> bool:
    """Add a machine to what fits or fails; return whether it holds the load in the least changed way."""
    for stored in formats:
        if any(case.device is machine.device and case.formats == stored for case in found.fitting):
            return False  # fewer of this device hold it so
        fitting = fitting_cases(evaluator, space, machine, stored)
        if fitting:
            found.fitting += fitting
            return stored == formats[0]
        found.failing.append((machine, stored))
    return False


def fitting_cases(evaluator: Evaluator, space: Space, machine: Machine, stored: Formats) -> list[Case]:
    """Return the layouts on a machine that hold the load, of the fewest pipeline stages that do."""
    if evaluator.is_hopeless(machine.device, machine.count, stored):
        return []
    for layouts in space.layouts(machine.count):
        cases = (evaluator.ask(machine.device, layout, stored) for layout in layouts)
        fitting = [case for case in cases if case.failure is None]
        if fitting:
            return fitting
    return []


def closest(evaluator: Evaluator, space: Space, machine: Machine, stored: Formats = OWN) -> Case | None:
    """Return the layout that lacks least on a machine, None where there is none at all."""
    return min(_all_cases(evaluator, space, machine, stored), key=_lack, default=None)


def _all_cases(evaluator: Evaluator, space: Space, machine: Machine, stored: Formats) -> Iterator[Case]:
    for layouts in space.layouts(machine.count):
        for layout in layouts:
            yield evaluator.ask(machine.device, layout, stored, whole=True)


def _lack(case: Case) -> tuple[bool, int]:
    slack = 0 if case.verdict is None else case.verdict.slack_bytes
    return case.failure in ("refused", "flag"), -slack if slack < 0 else case.lack_bytes


__all__ = ["Found", "Machine", "closest", "fitting_cases", "machines_of", "search"]
