"""``plan``: ask the library which GPUs hold a load, show what it says; several models one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvgauge.cli.failures import as_known
from kvgauge.cli.options import FIT, PLAN
from kvgauge.cli.output import (
    OutputFailedError,
    Settings,
    make_view,
    write,
    write_error,
    write_json,
    write_notes,
)
from kvgauge.cli.progress import ProgressLine
from kvgauge.cli.requests import size_keywords
from kvgauge.errors import InvalidRequestError
from kvgauge.planning.asking import refuse_unread
from kvgauge.planning.plan import plan
from kvgauge.render.answer_json import plan_json
from kvgauge.render.clean import clean

if TYPE_CHECKING:
    from kvgauge.emit.writing import Emitted
    from kvgauge.planning.result import PlanResult
    from kvgauge.units import Units

#: Options that are not the library's, but of what is written of its answer.
_OF_FILES = frozenset({"emit", "gpus_per_machine"})
_OWN = tuple(row.name for row in (*FIT, *PLAN) if row.name not in {"kv_memory", *_OF_FILES})


def run_plan(settings: Settings, values: dict[str, Any]) -> int:
    """Answer ``plan``; exit code 3 with ``--check`` where nothing holds the load.

    Of several models each is answered on its own, in JSON one line each; exit code 1 where one failed.
    """
    keywords = size_keywords(values)
    keywords |= {name: values[name] for name in _OWN if values[name] is not None}
    if values["ndjson"]:
        return _batch(settings, values, keywords)
    models = values["models"] or (None,)  # the one of the launch line
    if len(models) == 1:
        return _show(models[0], keywords, settings, values)
    settings = replace(settings, lines=settings.json)
    codes = []
    for model in models:
        try:
            codes.append(_show(model, keywords, settings, values))
        except (KeyboardInterrupt, OutputFailedError):
            raise
        except Exception as error:
            write_error(as_known(error, settings.texts), settings, about=model or "--command")
            codes.append(1)
    return 1 if 1 in codes else max(codes)


def _show(
    model: str | None, keywords: Mapping[str, Any], settings: Settings, values: Mapping[str, Any]
) -> int:
    """Answer one model."""
    result = _planned({"model": model, **keywords}, settings)
    emitted = _emit(result, values)
    units: Units = values["units"] or "gib"
    if settings.json:
        files = [{"system": one.system, "path": str(one.path)} for one in emitted]
        answer = {**plan_json(result, settings.texts, units), **({"emitted": files} if files else {})}
        write_json(answer, is_line=settings.lines)
        return result.exit_code
    view = make_view(settings, units=units, color=values["color"] or "auto")
    if values["markdown"]:
        from kvgauge.render.markdown import to_markdown  # noqa: PLC0415
        from kvgauge.render.plan_facts import plan_sheet  # noqa: PLC0415

        write(to_markdown(plan_sheet(result, view)))
    else:
        from kvgauge.render.plan import draw_plan  # noqa: PLC0415 - JSON draws nothing

        write(draw_plan(result, view))
    for one in emitted:
        write(settings.texts("plan_emitted", system=one.system, path=clean(str(one.path))) + "\n")
    write_notes(result.notes, settings.texts, units=units)
    return result.exit_code


def _emit(result: PlanResult, values: Mapping[str, Any]) -> tuple[Emitted, ...]:
    """Write the files that start the first option, where that was asked for.

    Raises:
        InvalidRequestError: there is no option, or the files can't be written.
    """
    if values["emit"] is None:
        refuse_unread({"gpus_per_machine": values["gpus_per_machine"]}, "emit")
        return ()
    from kvgauge.emit import emit, job_of  # noqa: PLC0415 - few ask

    best = result.best
    if best is None:
        raise InvalidRequestError(
            "--emit has nothing to write: nothing holds the load", hint="kvgauge plan without it says why"
        )
    if not best.fit.launch_command:
        raise InvalidRequestError(
            "--emit has nothing to start without the weights", hint="leave out --no-weights", field="emit"
        )
    per_machine = values["gpus_per_machine"]
    if per_machine is None:
        per_machine = -(-best.num_gpus // best.num_nodes)
    return emit(job_of(best.fit, gpus_per_machine=per_machine, vendor=best.device.vendor), values["emit"])


def _planned(request: dict[str, Any], settings: Settings) -> PlanResult:
    """Ask the library; a terminal sees how far it is."""
    line = ProgressLine(settings.texts, "progress_plan")
    try:
        return plan(request.pop("model", None), **request, progress=ProgressLine(settings.texts), watch=line)
    finally:
        line.clear()


def _batch(settings: Settings, values: dict[str, Any], keywords: dict[str, Any]) -> int:
    from kvgauge.cli.batch import answer_lines, refuse_beside  # noqa: PLC0415 - few ask
    from kvgauge.keywords import PLAN as KEYWORDS  # noqa: PLC0415 - as above

    refuse_beside(values, "markdown")
    defaults = {**keywords, **({"model": values["models"][0]} if values["models"] else {})}

    def answer(request: dict[str, Any]) -> Mapping[str, object]:
        return plan_json(_planned(request, settings), settings.texts, values["units"] or "gib")

    return answer_lines(settings, values["ndjson"], defaults, KEYWORDS, answer)
