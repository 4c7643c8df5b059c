"""Turn what went wrong into an error of ours, with the step to take."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kvgauge.cli.arguments import VERBS, positionals
from kvgauge.cli.options import BY_FLAG
from kvgauge.cli.output import write_note
from kvgauge.cli.topics import COMMANDS
from kvgauge.errors import InvalidRequestError, KvgaugeError, ModelNotFoundError

if TYPE_CHECKING:
    from kvgauge.render.messages import Texts

_OPTIONS_HINT = "kvgauge --help lists the options"


class InternalError(KvgaugeError):
    """Something that should not happen: a defect of this program, or no memory left."""

    code = "internal"


def as_known(error: Exception, texts: Texts, argv: Sequence[str] = ()) -> KvgaugeError:
    """Return any exception as an error of ours: what was not raised on purpose becomes a line to report."""
    if isinstance(error, ModelNotFoundError):
        return _maybe_a_verb(error, argv)
    if isinstance(error, KvgaugeError):
        return error
    if isinstance(error, click.ClickException):
        return _usage_error(error, argv)
    if isinstance(error, MemoryError):
        return InternalError(texts("memory_error"))
    if isinstance(error, RecursionError):
        return InternalError(texts("recursion_error"))
    if os.environ.get("KVGAUGE_DEBUG"):
        import traceback  # noqa: PLC0415

        write_note("".join(traceback.format_exception(error)))
    return InternalError(texts("internal_error", kind=type(error).__name__), hint=texts("internal_hint"))


def _usage_error(error: click.ClickException, argv: Sequence[str]) -> KvgaugeError:
    """Say in our words what click found wrong."""
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(error, argv)
    param = getattr(error, "param", None)
    if isinstance(error, click.MissingParameter):
        if param is not None and param.name == "shell":
            hint = "for example: kvgauge completion bash; or zsh, fish"
            return InvalidRequestError("SHELL is missing", hint=hint, field="SHELL")
        topic = COMMANDS.get(error.ctx.info_name or "") if error.ctx is not None else None
        hint = "for example: kvgauge Qwen/Qwen3-8B --context 32k"
        if topic is not None:
            hint = f"for example: {topic.example}"
        return InvalidRequestError("MODEL is missing", hint=hint, field="MODEL")
    if isinstance(error, click.BadParameter) and param is not None:
        return _bad_value(error, param)
    return InvalidRequestError(_sentence(error.format_message()), hint=_OPTIONS_HINT)


def _no_such_option(error: click.NoSuchOption, argv: Sequence[str]) -> KvgaugeError:
    """Name the option as it was written, also one that click reads letter by letter (``-ngl``)."""
    name = error.option_name
    if len(name) == 2:
        name = next((word.partition("=")[0] for word in argv if word.startswith(name)), name)
    if name in BY_FLAG and error.ctx is not None and error.ctx.info_name:
        text = f"{name} is no option of {error.ctx.info_name}"
        return InvalidRequestError(text, hint=_OPTIONS_HINT, field=name)
    alike = [flag for flag in BY_FLAG if flag.startswith("--") == name.startswith("--")]
    near = error.possibilities or difflib.get_close_matches(name, alike, n=2, cutoff=0.75)
    hint = f"did you mean {' or '.join(near[:3])}?" if near else _OPTIONS_HINT
    if not near and not name.startswith("--"):
        hint = "an engine's own options go into --engine-args; kvgauge --help lists the others"
    return InvalidRequestError(f"there is no option {name}", hint=hint, field=name)


def _bad_value(error: click.BadParameter, param: click.Parameter) -> KvgaugeError:
    """Name the option that a value is wrong for, or the variable that it comes from."""
    source = error.ctx.get_parameter_source(param.name) if error.ctx and param.name else None
    if source is click.core.ParameterSource.ENVIRONMENT and isinstance(param.envvar, str):
        name, hint = param.envvar, f"set {param.envvar} to another value, or unset it"
        if isinstance(param, click.Option) and param.is_flag:
            value = os.environ.get(name, "")[:40]
            return InvalidRequestError(
                f"{name}: {value!r} is neither yes nor no", hint=f"{name}=1 or 0", field=name
            )
        return InvalidRequestError(f"{name}: {_sentence(error.message)}", hint=hint, field=name)
    shown = param.opts[0] if isinstance(param, click.Option) else (param.name or "").upper()
    return InvalidRequestError(f"{shown}: {_sentence(error.message)}", hint=_OPTIONS_HINT, field=param.name)


def _sentence(text: str) -> str:
    joined = " ".join(text.split()).rstrip(".")
    return joined[:1].lower() + joined[1:]


def too_many_words(verb: str, first: str, rest: Sequence[str]) -> KvgaugeError:
    """Return the error of words that are left: a mistyped verb before them, or one model too many."""
    if verb not in ("size", "explain"):
        return InvalidRequestError(f"{rest[0]} is one word too many", hint=_OPTIONS_HINT, field=rest[0])
    near = difflib.get_close_matches(first, VERBS, n=1, cutoff=0.7)
    if near and "/" not in first:
        return InvalidRequestError(
            f"there is no command {first}", hint=f"did you mean {near[0]}?", field=first
        )
    return InvalidRequestError(
        f"one model is sized at a time; {rest[0]} is one more",
        hint="kvgauge compare MODEL MODEL ... sizes several",
        field="MODEL",
    )


def _maybe_a_verb(error: ModelNotFoundError, argv: Sequence[str]) -> KvgaugeError:
    """Say that a lone word which no source knows may be a mistyped command."""
    word = next((word.text for word in positionals(argv)), "")
    near = difflib.get_close_matches(word, VERBS, n=1, cutoff=0.75)
    if not near or len(list(positionals(argv))) > 1:
        return error
    error.hint = f"did you mean the command {near[0]}? Else {error.hint}"
    return error
