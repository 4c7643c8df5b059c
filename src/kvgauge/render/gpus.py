"""``gpus`` as text and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kvgauge.render.clean import clean
from kvgauge.render.view import View, labelled, table

if TYPE_CHECKING:
    from kvgauge.hardware import Accelerator, Figure, MemoryRange, Price, Tflops
    from kvgauge.render.sheet import Sheet

_COLUMNS = (
    "column_id", "column_visible", "column_label", "column_bandwidth", "column_tflops",
    "column_hardware", "column_hourly",
)  # fmt: skip
_NARROW_COLUMNS = ("column_id", "column_visible", "column_bandwidth")
#: The data types that a table shows the throughput of: the first that a device has.
_USUAL_DTYPES = ("bf16", "fp16", "fp8")
#: Marks a figure that no source was looked up for, and memory by a rule.
_MARK = "~"


def draw_gpus(devices: Sequence[Accelerator], view: View) -> str:
    """Return a table, one row a device."""
    names = [name for name in _COLUMNS if not view.is_narrow or name in _NARROW_COLUMNS]
    right = tuple(n for n, name in enumerate(names) if name not in ("column_id", "column_hardware"))
    grid = table(*(view.texts(name) for name in names), right=right)
    for device in devices:
        cells = gpu_cells(device, view)
        grid.add_texts(*(cells[name] for name in names))
    return view.draw(grid)


def gpus_sheet(devices: Sequence[Accelerator], view: View, *, is_detailed: bool) -> Sheet:
    """Return the table for a markup, and the sources where few are asked for."""
    from kvgauge.render.sheet import Sheet, TableOf  # noqa: PLC0415 - the sheet's module knows every answer

    cells = [gpu_cells(device, view) for device in devices]
    right = frozenset(n for n, name in enumerate(_COLUMNS) if name not in ("column_id", "column_hardware"))
    rows = tuple(tuple(row[name] for name in _COLUMNS) for row in cells)
    shown = TableOf(tuple(view.texts(name) for name in _COLUMNS), rows, right)
    facts = [
        TableOf((clean(device.name), ""), tuple(_told(device, view))) for device in devices if is_detailed
    ]
    return Sheet("", (shown, view.texts("gpus_legend"), *facts))


def gpu_cells(device: Accelerator, view: View) -> dict[str, str]:
    """Return the text of every column; what is not known is empty."""
    bandwidth, tflops, price = device.bandwidth, device.dense_tflops, device.price_per_hour
    usual = next((pair for name in _USUAL_DTYPES for pair in _rates(device) if pair[0] == name), None)
    cells = dict.fromkeys(_COLUMNS, "")
    cells["column_id"] = clean(device.name)
    cells["column_visible"] = _mark(device.memory.grade == "assumed") + view.size(device.memory_bytes)
    cells["column_hardware"] = clean(device.architecture or "")
    if device.label_bytes is not None:
        cells["column_label"] = view.size(device.label_bytes)
    if bandwidth is not None:
        cells["column_bandwidth"] = _mark(bandwidth.grade == "recall") + _number(bandwidth.value)
    if usual is not None and tflops is not None:
        cells["column_tflops"] = f"{_mark(tflops.grade == 'recall')}{_number(usual[1])} {usual[0]}"
    if price is not None:
        cells["column_hourly"] = f"{_mark(price.grade == 'recall')}{price.usd:,.2f}"
    return cells


def _number(value: float) -> str:
    return f"{value:,.10g}"


def _rates(device: Accelerator) -> tuple[tuple[str, float], ...]:
    return device.dense_tflops.by_dtype if device.dense_tflops else ()


def _mark(is_soft: bool) -> str:
    return _MARK if is_soft else ""


def draw_gpu(device: Accelerator, view: View) -> str:
    """Return all that is known of a device, each figure with its source."""
    about = (device.vendor, str(device.year or ""), device.kind, device.architecture or "", device.id)
    rows = [(clean(device.name), clean(", ".join(part for part in about if part)))]
    rows += [(f"  {label}", text) for label, text in _told(device, view)]
    return view.draw(labelled(rows))


def _told(device: Accelerator, view: View) -> Iterator[tuple[str, str]]:
    """Yield what is known, under its name."""
    for key, text in _facts(device, view):
        if text:
            yield view.texts(key), clean(text)


def _facts(device: Accelerator, view: View) -> Iterator[tuple[str, str]]:
    texts = view.texts
    yield "gpu_memory", _memory(device, view)
    if device.smi_total is not None:
        yield "gpu_smi", _sourced(f"{int(device.smi_total.value) >> 20:,} MiB", device.smi_total, view)
    if device.label_bytes is not None:
        yield "gpu_label", view.size(device.label_bytes)
    if device.bandwidth is not None:
        yield "gpu_bandwidth", _sourced(f"{_number(device.bandwidth.value)} GB/s", device.bandwidth, view)
    if device.dense_tflops is not None:
        rates = ", ".join(f"{name} {_number(rate)}" for name, rate in _rates(device))
        yield "gpu_tflops", _sourced(rates, device.dense_tflops, view)
    yield "gpu_link", _link(device)
    if device.sram_bytes is not None:
        yield "gpu_sram", view.size(device.sram_bytes)
    if device.chips > 1:
        yield "gpu_chips", f"{device.chips:,}"
    if device.power_watts is not None:
        yield "gpu_power", f"{_number(device.power_watts)} W"
    yield "gpu_prices", "; ".join(_price(price, view) for price in device.prices)
    yield "gpu_names", ", ".join(device.aliases)
    if device.unified is not None:
        yield "gpu_unified", texts(f"unified_{device.unified}")
    yield "gpu_note", device.note


def _memory(device: Accelerator, view: View) -> str:
    memory = device.memory
    low, central, high = (view.size(n) for n in (memory.low_bytes, memory.central_bytes, memory.high_bytes))
    key = "gpu_exactly" if memory.low_bytes == memory.high_bytes else "gpu_range"
    shown = view.texts(key, low=low, central=central, high=high)
    return _sourced(shown, memory, view)


def _sourced(shown: str, known: MemoryRange | Figure | Tflops | Price, view: View) -> str:
    """A figure with how well it is known, and from where."""
    grade = view.texts(f"grade_{known.grade}")
    if known.grade == "recall":
        return view.texts("gpu_recalled", shown=shown, grade=grade)
    return view.texts("gpu_sourced", shown=shown, grade=grade, source=view.texts.origin(known.source))


def _link(device: Accelerator) -> str:
    parts = []
    if device.link is not None:
        parts.append(f"{_number(device.link.gb_per_second)} GB/s ({device.link.kind})")
    if device.pcie_generation is not None:
        parts.append(f"PCIe {device.pcie_generation}")
    return "; ".join(parts)


def _price(price: Price, view: View) -> str:
    shown = view.texts("gpu_per_hour" if price.per == "hour" else "gpu_to_buy", usd=_number(price.usd))
    return _sourced(f"{shown} ({price.date})" if price.date else shown, price, view)
