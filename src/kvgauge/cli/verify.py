"""``verify``: hold a start-up log against what is predicted, show what explains the difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvgauge.cli.output import Settings, make_view, write, write_json, write_notes
from kvgauge.cli.progress import ProgressLine
from kvgauge.cli.requests import parse_overrides
from kvgauge.render.because import because_text
from kvgauge.verification.verifying import verify

if TYPE_CHECKING:
    from kvgauge.verification.answer import StartAnswer, VerifyResult

_PASSED_ON = (
    "model", "engine", "gpu", "context", "max_model_len", "sequences", "kv_dtype", "k_dtype", "v_dtype",
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
        write_json(_translated(result, settings))
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


def _translated(result: VerifyResult, settings: Settings) -> dict[str, object]:
    """Return the JSON object with its sentences in the language of the run."""
    answer = result.to_dict()
    answer |= _sentences(result.last, settings)
    answer["earlier"] = [{**start.to_dict(), **_sentences(start, settings)} for start in result.starts[:-1]]
    return answer


def _sentences(start: StartAnswer, settings: Settings) -> dict[str, object]:
    texts = settings.texts
    return {
        "lines": [{**line.to_dict(), "because": because_text(line, texts)} for line in start.lines],
        "advice": [{**one.to_dict(), "message": texts.note(one.note)} for one in start.advice],
        "failures": [{**one, "message": texts(f"failure_{one['code']}")} for one in start.failures],
        "notes": [{**note.to_dict(), "message": texts.note(note)} for note in start.notes],
    }
