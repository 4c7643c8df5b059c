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
        key: of the text, which says how many of how many are done.
    """

    def __init__(self, texts: Texts, key: str = "progress_headers") -> None:
        self._texts = texts
        self._key = key
        self._start = time.monotonic()
        self._shown = 0

    def __call__(self, done: int, count: int) -> None:
        """Show how many are done."""
        if not sys.stderr.isatty() or time.monotonic() - self._start < _PATIENCE_S:
            return
        text = self._texts(self._key, done=done, count=count)
        sys.stderr.write(f"\r{text:<{self._shown}}")
        self._shown = len(text)
        if done >= count:
            self.clear()
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write(f"\r{'':<{self._shown}}\r")
            self._shown = 0
