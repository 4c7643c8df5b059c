"""Command line: parse, call the library, render. Nothing is computed here."""

from __future__ import annotations


def main() -> None:
    """Run the ``kvgauge`` command; for a shell that asks how a line may go on, answer that instead."""
    import gc  # noqa: PLC0415
    import os  # noqa: PLC0415
    import sys  # noqa: PLC0415

    gc.set_threshold(100_000)  # importing makes many lasting objects and no garbage: don't look through them
    shell = os.environ.get("_KVGAUGE_COMPLETE")
    if shell is not None:
        from kvgauge.cli.completion import answer_shell  # noqa: PLC0415 - without click and all it needs

        answer_shell(shell, sys.argv[1:])
        return
    from kvgauge.cli.app import run  # noqa: PLC0415

    run()
