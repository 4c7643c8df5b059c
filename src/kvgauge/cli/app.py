"""The program: run a command line, turn every outcome into an exit code."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from kvgauge.cli.arguments import chosen_lang, in_order, wants_json, wants_lines
from kvgauge.cli.output import OutputFailedError, Settings, can_show, write, write_error, write_note

EXIT_INTERRUPTED = 130


def run() -> None:
    """Run the command line of this process and exit."""
    code = execute(sys.argv[1:])
    gc.freeze()  # spares the exit a last look through all that was imported
    sys.exit(code)


def execute(argv: Sequence[str]) -> int:
    """Run a command line and return the exit code; errors are reported, never raised."""
    lang = chosen_lang(argv)
    lines = wants_lines(argv)
    settings = Settings(lines or wants_json(argv), lang if can_show("字", sys.stdout) else "en", lines)
    try:
        return _run(argv, settings)
    except (KeyboardInterrupt, click.Abort):
        write_note(settings.texts("interrupted"))
        return EXIT_INTERRUPTED
    except Exception as error:
        return _fail(error, argv, settings)


def _run(argv: Sequence[str], settings: Settings) -> int:
    arguments = in_order(argv)
    if not arguments:
        write(settings.texts("examples") + "\n")
        return 0
    from kvgauge.cli.commands import Program  # noqa: PLC0415 - the bare command needs none of it

    code = Program().main(arguments, prog_name="kvgauge", standalone_mode=False, obj=settings)
    return code if isinstance(code, int) else 0


def _fail(error: Exception, argv: Sequence[str], settings: Settings) -> int:
    from kvgauge.cli.failures import as_known  # noqa: PLC0415 - most runs go well

    known = as_known(error, settings.texts, argv)
    if isinstance(known, OutputFailedError):
        settings = replace(settings, json=False)  # stdout is what failed
    write_error(known, settings)
    return known.exit_code
