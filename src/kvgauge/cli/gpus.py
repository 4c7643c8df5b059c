"""``gpus``: the accelerators of the catalogue, with what is known of each and from where."""

from __future__ import annotations

from typing import Any

from kvgauge.cli.output import Settings, make_view, write, write_json, write_note
from kvgauge.inventory import find_gpus, gpus_answer

#: Up to this many devices are shown with all that is known of each.
MAX_DETAILED = 6


def run_gpus(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``gpus``."""
    asked = " ".join(values["filter"])
    if settings.json:
        write_json(gpus_answer(asked))
        return 0
    devices = find_gpus(asked)
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
