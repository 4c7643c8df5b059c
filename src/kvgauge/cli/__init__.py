"""Command line: parse, call the library, render. Nothing is computed here."""

from __future__ import annotations


def main() -> None:
    """Run the ``kvgauge`` command."""
    from kvgauge.cli.app import run  # noqa: PLC0415

    run()
