"""Command line: parse, call the library, render. Nothing is computed here."""

from __future__ import annotations


def main() -> None:
    """Run the ``kvgauge`` command."""
    import gc  # noqa: PLC0415

    gc.set_threshold(100_000)  # importing makes many lasting objects and no garbage: don't look through them
    from kvgauge.cli.app import run  # noqa: PLC0415

    run()
