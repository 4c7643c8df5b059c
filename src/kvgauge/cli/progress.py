"""What a person sees while many headers are read: a line on a terminal, after a second of waiting."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvgauge.render.messages import Texts

_PATIENCE_S = 1.0


class ProgressLine:
    """A line on stderr that counts files, and goes away; nothing where nobody watches.

    Args:
        texts: the language of the line.
    """

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._start = time.monotonic()
        self._shown = 0

    def __call__(self, done: int, count: int) -> None:
        """Show how many of the files are read."""
        if not sys.stderr.isatty() or time.monotonic() - self._start < _PATIENCE_S:
            return
        text = self._texts("progress_headers", done=done, count=count)
        sys.stderr.write(f"\r{text:<{self._shown}}")
        self._shown = len(text)
        if done >= count:
            sys.stderr.write(f"\r{'':<{self._shown}}\r")
        sys.stderr.flush()
