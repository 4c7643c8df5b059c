"""An accelerator: what an engine sees of it, how fast it is, what it costs, and how well each is known.

Memory is what the runtime reports as the total (torch, HIP, Metal): less than the label, and less than
nvidia-smi's total, by what the driver keeps. It depends on the driver, so it is a range.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from kvgauge.architecture import Note
from kvgauge.data import read_data, read_row
from kvgauge.units import MAX_SIZE_BYTES
from kvgauge.values import dataclass

ROWS = "accelerators.jsonl"

#: How well a figure is known: from memory of a data sheet, from a source that says it, from a measurement.
Grade = Literal["recall", "source", "measured", "given"]

#: Kinds of devices.
KINDS = (
    "datacenter", "consumer", "laptop", "workstation", "unified", "edge", "tpu", "asic", "sram", "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryRange:
    """Bytes that a runtime reports as the total: at least, as a rule, at most.

    Args:
        grade: ``measured`` where logs of this device say it, ``exact`` where nothing keeps any of it or the
            user gave it, ``assumed`` where a rule or a guess stands in.
    """

    low_bytes: int
    central_bytes: int
    high_bytes: int
    grade: Literal["exact", "measured", "assumed"]
    source: str

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "low_bytes": self.low_bytes,
            "central_bytes": self.central_bytes,
            "high_bytes": self.high_bytes,
            "grade": self.grade,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with where it is from."""

    value: float
    grade: str
    source: str


@dataclass(frozen=True, slots=True)
class Tflops:
    """Dense throughput by data type, in 10^12 operations a second."""

    by_dtype: tuple[tuple[str, float], ...]
    grade: str
    source: str


@dataclass(frozen=True, slots=True)
class Link:
    """What joins devices to one another; ``kind`` says whether the rate counts both directions."""

    gb_per_second: float
    kind: str


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for an hour of one device, or for the device.

    Args:
        date: year and month, or day, that the price was read; None where it is from memory.
    """

    usd: float
    per: Literal["hour", "device"]
    date: str | None
    grade: str
    source: str

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        name = "usd_per_hour" if self.per == "hour" else "usd"
        return {name: self.usd, "date": self.date, "grade": self.grade, "source": self.source}


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device as an engine sees it; what is not known is None.

    Args:
        id: stable name; empty for a device of which only the memory is known.
        aliases: names as nvidia-smi, torch, rocm-smi and Metal write them, and other common ones.
        architecture: compute capability (``9.0``) or LLVM's gfx name (``gfx942``).
        label_bytes: memory as it is sold.
        smi_total: what nvidia-smi shows as the total, in bytes.
        bandwidth: of the memory, in GB/s (10^9).
        sram_bytes: on-chip memory that holds the model, where there is no other.
        chips: chips that one row stands for: 256 for a rack.
        unified: the rule for memory that the system shares: ``working_set``, ``shared_with_system`` or
            ``gtt_limit``.
        planned: ``plan`` looks at it where no device is named: datacentre and workstation cards of current
            generations, and priced ones of the generations before (``tools/accelerators.py``).
        notes: how a name was read, and what limits the memory.
    """

    id: str
    name: str
    memory: MemoryRange
    vendor: str = ""
    kind: str = "other"
    year: int | None = None
    aliases: tuple[str, ...] = ()
    architecture: str | None = None
    label_bytes: int | None = None
    smi_total: Figure | None = None
    bandwidth: Figure | None = None
    dense_tflops: Tflops | None = None
    link: Link | None = None
    pcie_generation: int | None = None
    power_watts: float | None = None
    sram_bytes: int | None = None
    chips: int = 1
    unified: str | None = None
    prices: tuple[Price, ...] = ()
    note: str = ""
    planned: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def memory_bytes(self) -> int:
        """What a runtime reports as the total, as a rule."""
        return self.memory.central_bytes

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """NVIDIA's (major, minor), None for other makers."""
        match = re.fullmatch(r"(\d{1,2})\.(\d{1,2})", self.architecture or "")
        return (int(match[1]), int(match[2])) if match else None

    @property
    def price_per_hour(self) -> Price | None:
        """The first price of an hour, or None."""
        return next((price for price in self.prices if price.per == "hour"), None)

    @property
    def purchase_price(self) -> Price | None:
        """The first price of the device, or None."""
        return next((price for price in self.prices if price.per == "device"), None)

    def to_dict(self) -> dict[str, object]:
        """Return the row of ``kvgauge.gpus/1``, every key present."""
        tflops = self.dense_tflops
        return {
            "id": self.id,
            "name": self.name,
            "vendor": self.vendor,
            "kind": self.kind,
            "year": self.year,
            "aliases": list(self.aliases),
            "architecture": self.architecture,
            "label_bytes": self.label_bytes,
            "memory": self.memory.to_dict(),
            "smi_total": _figure_dict(self.smi_total, "bytes"),
            "bandwidth_gb_per_second": _figure_dict(self.bandwidth, "value"),
            "dense_tflops": None
            if tflops is None
            else {"value": dict(tflops.by_dtype), "grade": tflops.grade, "source": tflops.source},
            "link": None
            if self.link is None
            else {"gb_per_second": self.link.gb_per_second, "kind": self.link.kind},
            "pcie_generation": self.pcie_generation,
            "power_watts": self.power_watts,
            "sram_bytes": self.sram_bytes,
            "chips": self.chips,
            "unified": self.unified,
            "prices": [price.to_dict() for price in self.prices],
            "planned": self.planned,
            "note": self.note or None,
        }


def _figure_dict(figure: Figure | None, key: str) -> dict[str, object] | None:
    if figure is None:
        return None
    return {key: figure.value, "grade": figure.grade, "source": figure.source}


def from_row(row: Mapping[str, Any]) -> Accelerator:
    """Return the accelerator of a row of ``kvgauge.gpus/1`` that is known to be well-formed."""
    smi, bandwidth, tflops, link = (
        row.get(key) for key in ("smi_total", "bandwidth_gb_per_second", "dense_tflops", "link")
    )
    return Accelerator(
        row["id"],
        row["name"],
        MemoryRange(**row["memory"]),
        row.get("vendor", ""),
        row.get("kind", "other"),
        row.get("year"),
        tuple(row.get("aliases") or ()),
        row.get("architecture"),
        row.get("label_bytes"),
        smi and Figure(smi["bytes"], smi["grade"], smi["source"]),
        bandwidth and Figure(**bandwidth),
        tflops and Tflops(tuple(tflops["value"].items()), tflops["grade"], tflops["source"]),
        link and Link(**link),
        row.get("pcie_generation"),
        row.get("power_watts"),
        row.get("sram_bytes"),
        row.get("chips") or 1,
        row.get("unified"),
        tuple(_price(price) for price in row.get("prices") or ()),
        row.get("note") or "",
        bool(row.get("planned")),
    )


def _price(price: Mapping[str, Any]) -> Price:
    per: Literal["hour", "device"] = "hour" if "usd_per_hour" in price else "device"
    usd = price["usd_per_hour"] if per == "hour" else price["usd"]
    return Price(usd, per, price["date"], price["grade"], price["source"])


@lru_cache(maxsize=64)
def accelerator(name: str) -> Accelerator:
    """Return a device of the catalogue by its id; one row is parsed.

    Raises:
        KeyError: no such id.

    >>> accelerator("h100-sxm5-80gb").compute_capability
    (9, 0)
    """
    row = read_row(ROWS, name)
    if not row:
        raise KeyError(name)
    return from_row(row)


def all_accelerators() -> Iterator[Accelerator]:
    """Yield every device of the catalogue."""
    import json  # noqa: PLC0415 - most runs parse one row

    for line in read_data(ROWS).splitlines():
        yield from (from_row(row) for row in json.loads(line).values())


def of_memory(memory_bytes: int, source: str = "given", name: str = "") -> Accelerator:
    """Return a device of which nothing but the memory that an engine sees is known."""
    size = min(memory_bytes, MAX_SIZE_BYTES)
    return Accelerator("", name, MemoryRange(size, size, size, "exact", source))
