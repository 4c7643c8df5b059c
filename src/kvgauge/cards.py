"""The card that a request names, as engines see it. The one place where names of GPUs become figures."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.engine_cards import Make
from kvgauge.engines.setup import Card
from kvgauge.errors import InvalidRequestError
from kvgauge.units import GIB, MIB, format_bytes
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvgauge.hardware import Accelerator, MemoryRange


@dataclass(frozen=True, slots=True)
class NamedCard:
    """A card, how many of it where the text says so, and how its name was read.

    Args:
        memory: what the runtime reports as the total: at least, as a rule, at most.
        make: what it is, for what engines run on.
    """

    card: Card
    count: int | None
    notes: tuple[Note, ...]
    memory: MemoryRange
    make: Make = field(default_factory=Make)


def card_of(
    gpu: str | None = None, memory: str | int | None = None, gpu_file: str | None = None
) -> NamedCard | None:
    """Return the card that a request names; None where it names none.

    Args:
        gpu: ``NAME``, ``NAME:COUNT`` or ``COUNTx NAME``, as people and tools write it.
        memory: ``SIZE[:COUNT]``, in place of that of the named card, or of a card that is not named.
        gpu_file: devices of the user's own, which go before the catalogue; a single one needs no name.

    Raises:
        InvalidRequestError: not a card that is known, no size, or counts that contradict each other.

    >>> card_of("H100 NVL:2").card.capability, card_of("2x H100").count
    ((9, 0), 2)
    >>> found = card_of(memory="95830MiB")  # what nvidia-smi shows of an H100 NVL
    >>> found.card.name, round(found.memory.central_bytes / 2**30, 1)
    ('H100 NVL 94GB', 93.0)
    """
    named = _named(gpu, gpu_file)
    if memory is None:
        if named is None:
            return None
        return replace(of_device(named[0]), count=named[1])
    return _of_memory(memory, named)


def _named(gpu: str | None, gpu_file: str | None) -> tuple[Accelerator, int | None] | None:
    from kvgauge.hardware import parse_gpu, read_gpu_file  # noqa: PLC0415 - few name a card

    own = () if gpu_file is None else read_gpu_file(gpu_file)
    if gpu is not None:
        return parse_gpu(gpu, own)
    if len(own) > 1:
        names = ", ".join(device.name for device in own[:6])
        raise InvalidRequestError(
            f"{gpu_file} has {len(own)} devices, and none is named",
            hint=f"--gpu names one: {names}",
            field="gpu",
        )
    return (own[0], None) if own else None


def make_of(device: Accelerator) -> Make:
    """Return what a device is, for what engines run on."""
    return Make(device.vendor, device.kind, device.compute_capability, device.architecture or "")


def of_device(device: Accelerator) -> NamedCard:
    """Return the card of a device of the catalogue, or of the user's own."""
    return _card(device, None, (*device.notes, *_guessed(device)))


def _card(device: Accelerator, count: int | None, notes: tuple[Note, ...]) -> NamedCard:
    card = Card(device.name, device.compute_capability, device.memory_bytes)
    make = make_of(device)
    return NamedCard(card, count, notes, device.memory, make)


def _guessed(device: Accelerator) -> Iterator[Note]:
    """Say where nothing measured stands behind the memory of a card."""
    memory = device.memory
    if memory.grade != "assumed":
        return
    sizes = (memory.low_bytes, memory.high_bytes)
    low, high = (format_bytes(size) for size in sizes)
    text = f"what a runtime is given of {device.name} is not measured: {low} to {high}"
    yield Note("memory_assumed", "info", text, (("name", device.name), ("low", low), ("high", high)), sizes)


def _of_memory(text: str | int, named: tuple[Accelerator, int | None] | None) -> NamedCard:
    from kvgauge.hardware import parse_memory  # noqa: PLC0415 - few name a card

    given, count = parse_memory(text)
    size = given.memory_bytes
    if named is not None and None not in (named[1], count) and named[1] != count:
        raise InvalidRequestError(
            f"--gpu says {named[1]} GPUs and --memory {count}", hint="give the count once", field="memory"
        )
    if named is not None:
        count = named[1] if count is None else count
    shown_by = _shown_by(size, named[0] if named else None) if _is_tools_total(text, size) else ()
    if shown_by:
        device = shown_by[0]
        return _card(device, count, (*device.notes, _tools_total(size, shown_by)))
    if named is not None:
        device = replace(named[0], memory=given.memory)
        return _card(device, count, device.notes)
    return _alone(given, count)


def _is_tools_total(text: str | int, size: int) -> bool:
    """Whether a size is written as nvidia-smi writes totals: in MiB, or no whole number of GiB."""
    return size % MIB == 0 and (bool(size % GIB) or (isinstance(text, str) and "mib" in text.lower()))


def _shown_by(size: int, named: Accelerator | None) -> tuple[Accelerator, ...]:
    """Return the cards of which nvidia-smi shows this total, of the named one alone where there is one."""
    from kvgauge.hardware import all_accelerators  # noqa: PLC0415 - as above

    devices = (named,) if named is not None else all_accelerators()
    return tuple(device for device in devices if device.smi_total and int(device.smi_total.value) == size)


def _tools_total(size: int, devices: tuple[Accelerator, ...]) -> Note:
    names = " / ".join(device.name for device in devices[:4])
    shown, given = f"{size // MIB}MiB", format_bytes(devices[0].memory_bytes)
    text = f"{shown} is what nvidia-smi shows of {names}; a runtime is given {given} of it"
    values = (("shown", shown), ("names", names), ("given", given))
    return Note("memory_is_smi_total", "info", text, values, (devices[0].memory_bytes,))


def _alone(given: Accelerator, count: int | None) -> NamedCard:
    from kvgauge.engines.vllm.devices import gpu_of_memory  # noqa: PLC0415 - as above

    stand_in = gpu_of_memory(given.memory_bytes)
    major, minor = stand_in.capability or (0, 0)
    text = f"of the card only the memory is known; it is taken for one of compute capability {major}.{minor}"
    note = Note("memory_alone", "info", text, (("capability", f"{major}.{minor}"),))
    return NamedCard(Card("", stand_in.capability, given.memory_bytes), count, (note,), given.memory)


__all__ = ["NamedCard", "card_of", "make_of", "of_device"]
