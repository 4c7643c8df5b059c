"""The devices that are looked at, with prices: named ones, a file's, or the catalogue's ``planned``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kvgauge.cards import card_of, make_of, of_device
from kvgauge.engine_cards import runs_on
from kvgauge.errors import InvalidRequestError
from kvgauge.planning.rules import EngineRules, plan_rules
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.cards import NamedCard
    from kvgauge.hardware import Accelerator, Price
    from kvgauge.planning.prices import PriceTable

#: Word that means every device of the catalogue that the engine runs on.
EVERY = "all"
_MOST_NAMES = 64


@dataclass(frozen=True, slots=True)
class PlanDevice:
    """One kind of device.

    Args:
        named: the device as engines see it.
        kind: of device, as in the catalogue.
        words: keywords of ``fit`` that name it.
        most: how many there are; None: as many as it takes.
        hourly: price of an hour.
        purchase: price of the device itself.
        vendor: its maker; empty where only its memory is known.
    """

    name: str
    kind: str
    named: NamedCard
    words: Mapping[str, str]
    most: int | None = None
    hourly: Price | None = None
    purchase: Price | None = None
    vendor: str = ""

    @property
    def runs_engines(self) -> bool:
        """Whether an engine known here runs on it; else only the weights can be laid out on it."""
        return self.kind not in plan_rules().weights_only_kinds

    @property
    def memory_bytes(self) -> int:
        """What a runtime reports as the total, as a rule."""
        return self.named.memory.central_bytes

    def counts(self, ranks: int = 1) -> tuple[int, ...]:
        """Return the numbers of devices to look at: those of the rules, and all that there are.

        Args:
            ranks: that are given: so many are looked at too.
        """
        rules = plan_rules()
        if self.kind in rules.lone_kinds:
            return (1,)
        most, known = self.most, {ranks}
        if most is None:
            most = max(rules.counts) if self.kind in rules.clustered_kinds else rules.machine_gpus
        else:
            known.add(most)
        return tuple(sorted(count for count in known.union(rules.counts) if count <= most))


def devices_of(
    gpu: str | None,
    memory: str | int | None,
    gpu_file: str | None,
    engine: EngineRules,
    prices: PriceTable,
    version: str | None = None,
) -> tuple[PlanDevice, ...]:
    """Return the devices that a request names; without a name, those that the catalogue has marked.

    Args:
        gpu: ``NAME[:COUNT]``, several joined by commas, or ``all``.
        memory: ``SIZE[:COUNT]``, in place of that of the named one.
        gpu_file: devices of the user's own; all of them where none is named.
        version: of the engine; None is the newest.

    Raises:
        InvalidRequestError: no such device, or too many names.
    """
    named = named_devices(gpu, memory, gpu_file, prices)
    if named:
        return named
    from kvgauge.hardware import all_accelerators  # noqa: PLC0415 - few name none

    wanted = (d for d in all_accelerators() if gpu is not None or d.planned)
    return tuple(_device(d, prices, {}) for d in wanted if _runs(d, engine, version))


def named_devices(
    gpu: str | None, memory: str | int | None, gpu_file: str | None, prices: PriceTable
) -> tuple[PlanDevice, ...]:
    """Return the devices that a request names, by whatever word; empty where it names none, or all.

    Raises:
        InvalidRequestError: no such device, or too many names.
    """
    if memory is not None or (gpu is not None and gpu.strip().lower() != EVERY):
        return _named(gpu, memory, gpu_file, prices)
    if gpu_file is None or gpu is not None:
        return ()
    from kvgauge.hardware import read_gpu_file  # noqa: PLC0415 - few have a file

    own = read_gpu_file(gpu_file)
    return tuple(_device(device, prices, {"gpu_file": gpu_file}) for device in own)


def _runs(device: Accelerator, engine: EngineRules, version: str | None) -> bool:
    has_architecture = device.architecture is not None or not engine.needs_architecture
    return has_architecture and runs_on(engine.name, make_of(device), version)


def _device(device: Accelerator, prices: PriceTable, words: Mapping[str, str]) -> PlanDevice:
    hourly, purchase = prices.of(device)
    told = {"gpu": device.name, **words}
    return PlanDevice(
        device.name, device.kind, of_device(device), told, None, hourly, purchase, device.vendor
    )


def _named(
    gpu: str | None, memory: str | int | None, gpu_file: str | None, prices: PriceTable
) -> tuple[PlanDevice, ...]:
    names: Iterable[str | None] = [None] if gpu is None else [part for part in gpu.split(",") if part.strip()]
    names = list(names)
    if not names:
        raise InvalidRequestError(
            "the name of a device is empty", hint="'kvgauge gpus' lists what is known", field="gpu"
        )
    if len(names) > _MOST_NAMES:
        raise InvalidRequestError(
            f"--gpu names {len(names)} devices", hint=f"1 to {_MOST_NAMES}, joined by commas", field="gpu"
        )
    found: dict[str, PlanDevice] = {}
    for name in names:
        device = _one(name, memory, gpu_file, prices)
        known = found.setdefault(device.name, device)
        if known.most != device.most:
            raise InvalidRequestError(
                f"--gpu names {device.name} with two numbers", hint="name each kind once", field="gpu"
            )
    return tuple(found.values())


def _one(name: str | None, memory: str | int | None, gpu_file: str | None, prices: PriceTable) -> PlanDevice:
    named = card_of(name, memory, gpu_file)
    if named is None:
        raise InvalidRequestError("the name of a device is empty", field="gpu")
    words = {} if gpu_file is None else {"gpu_file": gpu_file}
    device = _accelerator(name, gpu_file)
    if memory is not None:
        words["memory"] = str(named.memory.central_bytes)
    if device is None:
        return PlanDevice(named.card.name, "other", named, words, named.count)
    hourly, purchase = prices.of(device)
    words["gpu"] = device.name
    name, count = named.card.name, named.count
    return PlanDevice(name, device.kind, named, words, count, hourly, purchase, device.vendor)


def _accelerator(name: str | None, gpu_file: str | None) -> Accelerator | None:
    if name is None:
        return None
    from kvgauge.hardware import parse_gpu, read_gpu_file  # noqa: PLC0415 - as above

    return parse_gpu(name, () if gpu_file is None else read_gpu_file(gpu_file))[0]


__all__ = ["EVERY", "PlanDevice", "devices_of", "named_devices"]
