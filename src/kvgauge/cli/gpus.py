"""``gpus``: the accelerators of the catalogue, with what is known of each and from where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kvgauge.cli.output import Settings, make_view, write, write_json, write_note

if TYPE_CHECKING:
    from kvgauge.hardware import Accelerator

#: Up to this many devices are shown with all that is known of each.
MAX_DETAILED = 6


def run_gpus(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``gpus``."""
    asked = " ".join(values["filter"])
    devices = find_gpus(asked)
    if settings.json:
        write_json({"schema": "kvgauge.gpus/1", "gpus": [device.to_dict() for device in devices]})
        return 0
    texts = settings.texts
    if not devices:
        write_note(texts("gpus_none", filter=asked))
        write_note(texts("gpus_hint"))
        return 0
    from kvgauge.render.gpus import draw_gpu, draw_gpus, gpus_sheet  # noqa: PLC0415

    view = make_view(settings, units=values["units"] or "gib", color=values["color"] or "auto")
    is_detailed = bool(asked) and len(devices) <= MAX_DETAILED
    if values["markdown"]:
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415

        write(to_markdown(gpus_sheet(devices, view, is_detailed=is_detailed)))
        return 0
    if is_detailed:
        write("\n".join(draw_gpu(device, view) for device in devices))
        return 0
    write(draw_gpus(devices, view))
    write_note(texts("gpus_count", count=len(devices)))
    write_note(texts("gpus_legend"))
    return 0


def find_gpus(asked: str) -> Sequence[Accelerator]:
    """Return the devices that hold every word of a filter, else those that it names; all for an empty one.

    >>> [device.id for device in find_gpus("h200 nvl")]
    ['h200-nvl-141gb']
    """
    from kvgauge.hardware import accelerator, all_accelerators, matches  # noqa: PLC0415

    words = asked.lower().split()
    found = [device for device in all_accelerators() if all(word in _searched(device) for word in words)]
    return found or [accelerator(name) for name in matches(asked)]


def _searched(device: Accelerator) -> str:
    """What a filter is looked for in."""
    parts = (device.id, device.name, *device.aliases, device.vendor, device.kind, device.architecture or "")
    return "\n".join(parts).lower()
