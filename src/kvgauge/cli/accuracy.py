"""``accuracy``: replay recorded measurements, show how well they are met."""

from __future__ import annotations

from typing import Any

from kvgauge.cli.output import Settings, make_view, write, write_json, write_note
from kvgauge.replay.outcomes import Outcome, cause_of
from kvgauge.replay.replaying import accuracy


def run_accuracy(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``accuracy``."""
    result = accuracy(values["file"] or None, configs=values["configs"])
    if settings.json:
        answer = result.to_dict()
        answer["records"] = [_translated(each, settings) for each in result.outcomes]
        write_json(answer)
        return 0
    view = make_view(settings, units=values["units"] or "gib", color=values["color"] or "auto")
    if values["markdown"]:
        from kvgauge.render.accuracy import accuracy_sheet  # noqa: PLC0415
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415

        write(to_markdown(accuracy_sheet(result, view)))
    else:
        from kvgauge.render.accuracy import draw_accuracy  # noqa: PLC0415 - JSON draws nothing

        write(draw_accuracy(result, view))
    write_note(settings.texts("accuracy_legend"))
    return 0


def _translated(each: Outcome, settings: Settings) -> dict[str, object]:
    """Return the entry of a figure, its cause or why it is skipped in the language of the run."""
    cause = cause_of(each.id, each.quantity, settings.lang) if each.cause else ""
    return {**each.to_dict(), "reason": cause or settings.texts.error(each.reason) or None}
