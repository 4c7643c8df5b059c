"""Lines of a log, however long it is: bounded in memory, plain text, without colour."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

#: A line is read up to here; start-up lines with every setting of an engine are some KiB long.
MAX_LINE_BYTES = 64 << 10
#: Beyond this a log is not read on.
MAX_LOG_BYTES = 8 << 30

#: A shell of Windows redirects in UTF-16 and marks it.
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]{0,16}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,64}\x07?|[@-Z\\-_])")


def log_lines(stream: BinaryIO, wanted: re.Pattern[bytes]) -> Iterator[str]:
    """Yield the lines that hold one of the wanted words; the rest of one that is too long is dropped.

    Args:
        stream: the log, read once from start to end.
        wanted: words of lines that anything is read from; looked for in the raw bytes, as most lines
        have none.
    """
    total, continues, is_wide = 0, False, False
    while total < MAX_LOG_BYTES and (line := stream.readline(MAX_LINE_BYTES)):
        if not total:
            is_wide = line.startswith(_WIDE)
        total += len(line)
        is_rest, continues = continues, not line.endswith(b"\n")
        if is_wide:  # all that is read is ASCII
            line = line.replace(b"\0", b"")
        if is_rest or wanted.search(line) is None:
            continue
        # A progress bar rewrites its line.
        for part in line.decode("utf-8", "replace").split("\r"):
            yield plain(part)


def plain(text: str) -> str:
    r"""Return a line without colour and control characters.

    >>> plain("\x1b[36m(EngineCore_0 pid=7)\x1b[0m INFO ready\n")
    '(EngineCore_0 pid=7) INFO ready'
    """
    bare = _ESCAPES.sub("", text)
    return "".join(c if c.isprintable() or c == "\t" else " " for c in bare).strip()
