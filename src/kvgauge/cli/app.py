"""The program: run a command line, turn every outcome into an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from kvgauge.cli.arguments import chosen_lang, in_order, wants_json
from kvgauge.cli.output import OutputFailedError, Settings, can_show, write, write_error, write_note
from kvgauge.errors import InvalidRequestError, KvgaugeError

EXIT_INTERRUPTED = 130


class InternalError(KvgaugeError):
    """Something that should not happen: a defect of this program, or no memory left."""

    code = "internal"


def run() -> None:
    """Run the command line of this process and exit."""
    code = execute(sys.argv[1:])
    gc.freeze()  # spares the exit a last look through all that was imported
    sys.exit(code)


def execute(argv: Sequence[str]) -> int:
    """Run a command line and return the exit code; errors are reported, never raised."""
    lang = chosen_lang(argv)
    settings = Settings(wants_json(argv), lang if can_show("字", sys.stdout) else "en")
    try:
        return _run(argv, settings)
    except (KeyboardInterrupt, click.Abort):
        write_note(settings.texts("interrupted"))
        return EXIT_INTERRUPTED
    except Exception as error:
        return _fail(_as_known(error, settings), settings)


def _run(argv: Sequence[str], settings: Settings) -> int:
    arguments = in_order(argv)
    if not arguments and "_KVGAUGE_COMPLETE" not in os.environ:
        write(settings.texts("examples") + "\n")
        return 0
    from kvgauge.cli.commands import Program  # noqa: PLC0415 - the bare command needs none of it

    code = Program().main(arguments, prog_name="kvgauge", standalone_mode=False, obj=settings)
    return code if isinstance(code, int) else 0


def _fail(error: KvgaugeError, settings: Settings) -> int:
    if isinstance(error, OutputFailedError):
        settings = replace(settings, json=False)  # stdout is what failed
    write_error(error, settings)
    return error.exit_code


def _usage_error(error: click.ClickException) -> KvgaugeError:
    """Say in our words what click found wrong."""
    if isinstance(error, click.NoSuchOption):
        near = ", ".join(error.possibilities or ())
        hint = f"did you mean {near}?" if near else "kvgauge --help lists the options"
        return InvalidRequestError(
            f"there is no option {error.option_name}", hint=hint, field=error.option_name
        )
    if isinstance(error, click.MissingParameter):
        hint = "for example: kvgauge Qwen/Qwen3-8B --context 32k"
        return InvalidRequestError("MODEL is missing", hint=hint, field="MODEL")
    hint, param = "kvgauge --help lists the options", getattr(error, "param", None)
    if isinstance(error, click.BadParameter) and param is not None:
        return InvalidRequestError(
            f"{param.opts[0]}: {_sentence(error.message)}", hint=hint, field=param.name
        )
    return InvalidRequestError(_sentence(error.format_message()), hint=hint)


def _sentence(text: str) -> str:
    joined = " ".join(text.split()).rstrip(".")
    return joined[:1].lower() + joined[1:]


def _as_known(error: Exception, settings: Settings) -> KvgaugeError:
    """Return any exception as an error of ours: what was not raised on purpose becomes a line to report."""
    if isinstance(error, KvgaugeError):
        return error
    if isinstance(error, click.ClickException):
        return _usage_error(error)
    texts = settings.texts
    if isinstance(error, MemoryError):
        return InternalError(texts("memory_error"))
    if isinstance(error, RecursionError):
        return InternalError(texts("recursion_error"))
    if os.environ.get("KVGAUGE_DEBUG"):
        import traceback  # noqa: PLC0415

        write_note("".join(traceback.format_exception(error)))
    return InternalError(texts("internal_error", kind=type(error).__name__), hint=texts("internal_hint"))
