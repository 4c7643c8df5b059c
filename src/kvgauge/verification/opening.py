"""Open a log: a file, or what is piped in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from kvgauge.errors import InvalidRequestError, ModelNotFoundError


def open_log(path: str | Path | BinaryIO) -> AbstractContextManager[BinaryIO]:
    """Open a log; ``-`` is standard input. What was open before stays open.

    Raises:
        ModelNotFoundError: no such file, or it can't be read.
        InvalidRequestError: a folder, or nothing is piped in.
    """
    if not isinstance(path, str | Path):
        return nullcontext(path)
    if str(path) == "-":
        import sys  # noqa: PLC0415 - only a pipe needs it

        if sys.stdin is None or sys.stdin.isatty():
            raise InvalidRequestError(
                "nothing is piped in", hint="for example: kvgauge verify - < server.log", field="LOG"
            )
        return nullcontext(sys.stdin.buffer)
    file = Path(path)
    if file.is_dir():
        raise InvalidRequestError(f"{file.name} is a folder", hint="give the log itself", field="LOG")
    try:
        return file.open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such file"
        raise ModelNotFoundError(
            f"{file.name} can't be read: {reason}",
            hint="give the file that the engine's output was written to, or - for a pipe",
            field="LOG",
        ) from None
