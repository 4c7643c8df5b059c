"""``fit``: ask the library whether a load fits, show what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvgauge.cli.options import FIT
from kvgauge.cli.output import Settings, make_view, write, write_json, write_notes
from kvgauge.cli.progress import ProgressLine
from kvgauge.cli.requests import size_keywords
from kvgauge.fitting import fit
from kvgauge.render.answer_json import fit_json

if TYPE_CHECKING:
    from kvgauge.units import Units

_OWN = tuple(row.name for row in FIT)


def run_fit(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``fit``; exit code 3 with ``--check`` where the load does not fit."""
    keywords = size_keywords(values) | {name: values[name] for name in _OWN if values[name] is not None}
    result = fit(values["model"], **keywords, progress=ProgressLine(settings.texts))
    units: Units = values["units"] or "gib"
    if settings.json:
        write_json(fit_json(result, settings.texts, units))
        return result.exit_code
    view = make_view(settings, units=units, color=values["color"] or "auto")
    if values["markdown"]:
        from kvgauge.render.fit_facts import fit_sheet  # noqa: PLC0415
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415

        write(to_markdown(fit_sheet(result, view)))
    else:
        from kvgauge.render.fit import draw_fit  # noqa: PLC0415 - JSON draws nothing

        write(draw_fit(result, view))
    write_notes(result.notes, settings.texts, units=units)
    return result.exit_code
