"""``verify``: an engine's start-up log against what is predicted. The public call behind the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from kvgauge.architecture import Note
from kvgauge.errors import InvalidFieldError
from kvgauge.launch_lines import read_launch_line
from kvgauge.models import ModelLike
from kvgauge.replay.outcomes import Outcome
from kvgauge.replay.replaying import outcomes
from kvgauge.verification.advising import advise
from kvgauge.verification.answer import Line, StartAnswer, VerifyResult
from kvgauge.verification.asking import Asked, Told, ask
from kvgauge.verification.explaining import explain
from kvgauge.verification.facts import Start, read_starts
from kvgauge.verification.opening import open_log
from kvgauge.verification.phrases import FAILED, LOOKED_FOR, WANTED
from kvgauge.verification.streaming import log_lines

if TYPE_CHECKING:
    from kvgauge.sources.weight_files import Progress

#: Ranks that differ by more than this share are said to.
_UNEQUAL = 0.02


def verify(
    log: str | Path | BinaryIO,
    *,
    model: ModelLike | None = None,
    engine: str | None = None,
    engine_args: str = "",
    command: str | None = None,
    gpu: str | None = None,
    context: int | str | None = None,
    max_model_len: int | str | None = None,
    sequences: int | None = None,
    kv_dtype: str | None = None,
    k_dtype: str | None = None,
    v_dtype: str | None = None,
    state_dtype: str | None = None,
    mtp: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    dcp: int | None = None,
    utilization: float | str | None = None,
    weights: str | None = None,
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
    local_files: bool = True,
    progress: Progress | None = None,
) -> VerifyResult:
    """Return what a start-up log says beside what is predicted for it, line by line.

    Args:
        log: a file, or ``-`` for standard input, or an open binary stream; other output may be mixed in.
        model: the model, where the log does not name it or not rightly; else its name in the catalogue or
            the local caches, or what llama.cpp prints of it.
        engine: ``name[@version]`` where the log does not tell.
        engine_args: flags that the log does not show; they win over those that it does.
        command: the launch line that made the log; its engine, flags and model are taken like those above.
        gpu: the card.
        local_files: as in ``load``, for the names of models in the log too.

    The other keywords are those of ``size``.

    Raises:
        KvgaugeError: the log can't be read or has no line that is known; an option does not apply.
    """
    options = {
        "context": context, "max_model_len": max_model_len, "sequences": sequences, "kv_dtype": kv_dtype,
        "k_dtype": k_dtype, "v_dtype": v_dtype, "state_dtype": state_dtype, "mtp": mtp, "tp": tp, "pp": pp,
        "dp": dp,
        "dcp": dcp, "utilization": utilization,
    }  # fmt: skip
    if command is not None:
        line = read_launch_line(command)
        model = model if model is not None else line.model or None
        engine, engine_args = engine or line.engine_name, " ".join(filter(None, (line.args, engine_args)))
    name, _, version = (engine or "").partition("@")
    told = Told(
        model, _engine(name), version or None, engine_args, gpu, weights,
        {key: value for key, value in options.items() if value is not None},
        {"overrides": overrides, "revision": revision, "refresh": refresh, "offline": offline,
         "local_files": local_files, "progress": progress},
    )  # fmt: skip
    with open_log(log) as stream:
        starts = read_starts(log_lines(stream, WANTED))
    known = [start for start in starts if start.figures or start.failures]
    if not known:
        raise InvalidFieldError(
            "the log has no line with a figure of memory that is known here",
            hint=f"looked for {LOOKED_FOR}",
            field="LOG",
        )
    return VerifyResult(tuple(_answer(start, told) for start in known))


def _engine(name: str) -> str:
    if not name:
        return ""
    from kvgauge.engines import parse_engine  # noqa: PLC0415 - most logs tell

    return parse_engine(name)[0]


def _answer(start: Start, told: Told) -> StartAnswer:
    asked = ask(start, told)
    found = tuple(each for each in outcomes([asked.record], asked.finder) if each.skip != "null")
    explanation = explain(asked, found)
    lines = []
    for each in found:
        is_explained = explanation is not None and each.quantity in explanation.quantities
        setting = explanation.setting if explanation is not None and is_explained else ""
        line = Line.of(each, _printed(start, each), setting)
        if line.measured is not None:
            lines.append(line)
    return StartAnswer(
        _about(start, asked),
        tuple(lines),
        advise(start, asked),
        tuple(_failures(start)),
        tuple(_notes(start, asked)),
    )


#: Where a figure stands that no prediction was made for.
_FIELDS = {
    "kv_tokens": ("kv_tokens", "tokens"), "max_concurrency": ("max_concurrency",),
    "num_blocks": ("gpu_blocks", "blocks"),
    "kv_needed": ("kv_needed_gib",), "kv_cache_mib": ("kv_mib",), "state_mib": ("rs_mib",),
    "weights": ("weights_gib", "weights_gb"), "pool": ("kv_available_gib", "kv_gib"),
    "activation": ("activation_peak_gib",), "graphs": ("graph_gib",),
}  # fmt: skip


def _printed(start: Start, found: Outcome) -> float | None:
    fields = start.record()
    values = (fields.get(name) for name in _FIELDS.get(found.quantity, ()))
    return next((float(v) for v in values if isinstance(v, int | float)), None)


def _about(start: Start, asked: Asked) -> dict[str, object]:
    record, model = asked.record, asked.model
    return {
        "name": record.family,
        "version": record.text("engine_version"),
        "model": model.raw.id if model is not None else None,
        "model_in_log": start.fields.get("model") if isinstance(start.fields.get("model"), str) else None,
        "gpu": record.text("gpu"),
        "engine_args": record.text("engine_args") or "",
    }


def _failures(start: Start) -> Iterator[Mapping[str, object]]:
    for code, tried in start.failures.items():
        yield {"code": code, "message": FAILED[code], "tried_bytes": tried}


def _notes(start: Start, asked: Asked) -> Iterator[Note]:
    for name, (low, high) in start.spread.items():
        if low and abs(high / low - 1) > _UNEQUAL and name in ("kv_available_gib", "kv_tokens", "gpu_blocks"):
            text = f"ranks differ: {name} from {low:,} to {high:,}; the smallest holds"
            yield Note(
                "verify_ranks_differ",
                "info",
                text,
                (("field", name), ("low", f"{low:,}"), ("high", f"{high:,}")),
            )
    planned = asked.record.inner("extra").get("planned_gib")
    if asked.record.family == "llama.cpp" and isinstance(planned, int | float):
        size = f"{planned:g} GiB"
        text = f"the planner's {size} are a plan made before loading, not what is allocated"
        yield Note("verify_planned", "info", text, (("size", size),))
    era = asked.record.text("era")
    if era is not None and era == asked.record.text("engine_version"):
        text = (
            f"the log does not say the build of llama.cpp; by its words it is taken for one of {era}'s time"
        )
        yield Note("verify_llama_era", "info", text, (("build", era),))
    if asked.record.text("engine_version") is None and asked.record.family in ("vllm", "sglang"):
        text = f"the log does not say the version of {asked.record.family}; the newest rules are taken"
        yield Note("verify_version_unknown", "info", text, (("engine", asked.record.family),))


__all__ = ["LOOKED_FOR", "verify"]
