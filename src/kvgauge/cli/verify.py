"""``verify``: hold a start-up log against what is predicted, show what explains the difference."""

from __future__ import annotations

from typing import Any

from kvgauge.cli.output import Settings, make_view, write, write_json, write_notes
from kvgauge.cli.progress import ProgressLine
from kvgauge.cli.requests import parse_overrides
from kvgauge.render.answer_json import verify_json
from kvgauge.verification.verifying import verify

_PASSED_ON = (
    "model", "engine", "command", "gpu", "context", "max_model_len", "sequences", "kv_dtype", "k_dtype",
    "v_dtype",
    "state_dtype",
    "mtp", "tp", "pp", "dp", "dcp", "utilization", "weights", "revision",
)  # fmt: skip


def run_verify(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``verify``."""
    keywords = {name: values[name] for name in _PASSED_ON if values.get(name) is not None}
    keywords |= {name: True for name in ("refresh", "offline") if values[name]}
    overrides = parse_overrides(values["override"])
    if overrides:
        keywords["overrides"] = overrides
    result = verify(
        values["log"],
        engine_args=values["engine_args"] or "",
        progress=ProgressLine(settings.texts),
        **keywords,
    )
    if settings.json:
        write_json(verify_json(result, settings.texts))
        return 0
    view = make_view(settings, units=values["units"] or "gib", color=values["color"] or "auto")
    if values["markdown"]:
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415
        from kvgauge.render.verify import verify_sheet  # noqa: PLC0415

        write(to_markdown(verify_sheet(result, view)))
    else:
        from kvgauge.render.verify import draw_verify  # noqa: PLC0415 - JSON draws nothing

        write(draw_verify(result, view))
    write_notes(result.last.notes, settings.texts, units=view.units)
    return 0
