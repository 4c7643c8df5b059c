"""Write answers, notes and errors: data to stdout, notes to stderr, whatever the terminal can show."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

from kvgauge.errors import KvgaugeError
from kvgauge.render.clean import clean
from kvgauge.render.messages import Lang, Texts
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.architecture import Note
    from kvgauge.render.view import View
    from kvgauge.units import Units

#: Text is drawn at least and at most this wide.
MIN_COLUMNS, MAX_COLUMNS = 24, 120

#: Stand-ins, of the same width, for characters that a terminal's encoding may lack.
_STAND_INS = str.maketrans("×█▓▒░─–−’·≤", "x#=+.---'-<")


class OutputFailedError(KvgaugeError):
    """The answer could not be written."""

    code = "output_failed"


@dataclass(frozen=True)
class Settings:
    """How to speak, known before the command line is parsed; ``lines``: a JSON object is one line."""

    json: bool
    lang: Lang
    lines: bool = False

    @cached_property
    def texts(self) -> Texts:
        """The texts of the chosen language."""
        return Texts(self.lang)


def write(text: str) -> None:
    """Write to stdout, with stand-ins for what its encoding lacks; a closed pipe ends the program quietly.

    Raises:
        OutputFailedError: the disk is full, or the like.
    """
    stream = sys.stdout
    if stream is None:
        return
    try:
        stream.write(_encodable(text, stream))
        stream.flush()
    except BrokenPipeError:
        _silence_stdout()
        raise SystemExit(0) from None
    except OSError as error:
        _silence_stdout()
        raise OutputFailedError(f"can't write the answer: {error.strerror or error}") from None


def write_note(line: str) -> None:
    """Write a line to stderr, wrapped on a terminal; nobody listening is no error."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        stream.write(_encodable(_fitted(line, stream), stream) + "\n")
        stream.flush()
    except OSError:
        return


def _fitted(text: str, stream: TextIO) -> str:
    if not stream.isatty():
        return text
    from kvgauge.render.wrap import wrap  # noqa: PLC0415 - most runs say nothing

    return "\n".join(wrap(text, terminal_columns(stream)))


def terminal_columns(stream: TextIO | None) -> int:
    """Return the columns of a stream's terminal, 80 where it has none; ``COLUMNS`` goes first."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked):
        return int(asked)
    try:
        return os.get_terminal_size(stream.fileno() if stream else 1).columns or 80
    except (OSError, ValueError):
        return 80


def write_json(payload: Mapping[str, object], *, is_line: bool = False) -> None:
    """Write one JSON object, over several lines unless it is to be one."""
    indent, separators = (None, (",", ":")) if is_line else (2, None)
    text = json.dumps(payload, ensure_ascii=False, indent=indent, separators=separators, allow_nan=False)
    if not text.isascii() and not can_show(text, sys.stdout):
        text = json.dumps(payload, indent=indent, separators=separators, allow_nan=False)
    write(text + "\n")


def write_notes(notes: tuple[Note, ...], texts: Texts, *, units: Units = "gib", about: str = "") -> None:
    """Write notes for people to stderr, one line each, sizes in the units of the answer."""
    from kvgauge.render.note_units import in_units  # noqa: PLC0415 - most runs say nothing

    subject = texts("subject", name=clean(about)) if about else ""
    for note in notes:
        label = texts("note_warning" if note.level == "warning" else "note")
        write_note(f"{label}{subject}{clean(texts.note(in_units(note, units)))}")


def write_error(error: KvgaugeError, settings: Settings, *, about: str = "") -> None:
    """Write an error: one object on stdout with ``--json``, else a line and a hint on stderr."""
    if settings.json:
        write_json(error.to_dict(), is_line=settings.lines)
        return
    texts = settings.texts
    message = texts.error(error.message)
    title = texts.find(f"error.{error.code}", "") if message == error.message else ""
    write_note(
        texts("error_line", program=clean(about) or texts("program"), title=title, message=clean(message))
    )
    if error.hint:
        write_note(texts("hint", hint=clean(texts.error(error.hint))))


def make_view(settings: Settings, *, units: Units, color: str) -> View:
    """Return how to draw on this terminal."""
    from kvgauge.render.view import View  # noqa: PLC0415

    width = max(MIN_COLUMNS, min(terminal_columns(sys.stdout), MAX_COLUMNS))
    return View(settings.texts, units, width, color=_use_color(color))


def _use_color(color: str) -> bool:
    if color != "auto":
        return color == "always"
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_show(text: str, stream: TextIO | None) -> bool:
    """Whether a stream's encoding has all characters of a text."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encodable(text: str, stream: TextIO) -> str:
    if text.isascii() or can_show(text, stream):
        return text
    encoding = stream.encoding or "utf-8"
    kept = (c if can_show(c, stream) else c.translate(_STAND_INS) for c in text)
    return "".join(kept).encode(encoding, "replace").decode(encoding)


def _silence_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
