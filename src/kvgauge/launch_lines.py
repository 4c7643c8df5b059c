"""A whole launch line taken apart: the engine that it starts, the model, and the engine's own flags.

A line is data: it is split into words as a shell would, never run. Programs, images and the flags that name a
model are rows of ``data/launch_programs.json``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from kvgauge.data import read_data
from kvgauge.errors import InvalidRequestError
from kvgauge.values import dataclass

MAX_LINE = 100_000
_ASSIGNED = re.compile(r"[A-Za-z_]\w{0,80}=.*", re.DOTALL)
_ENDS = frozenset({";", "&", "&&", "|", "||", ";;"})
_TAG = re.compile(r"v?(\d{1,4}\.\d{1,4}(?:\.\d{1,6})?(?:\.?(?:post|rc)\d{1,4})?)")
_EXAMPLE = "for example --command 'vllm serve Qwen/Qwen3-8B --max-model-len 32768'"


@dataclass(frozen=True, slots=True)
class LaunchLine:
    """What a launch line says.

    Args:
        version: of the image that it runs, where one is tagged with it.
        model: as the line names it; empty where it does not.
        args: the engine's own flags, the model left out.
    """

    engine: str
    version: str
    model: str
    args: str

    @property
    def engine_name(self) -> str:
        """The engine as ``--engine`` takes it."""
        return f"{self.engine}@{self.version}" if self.version else self.engine


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(read_data("launch_programs.json"))
    return table


def read_launch_line(text: str) -> LaunchLine:
    """Return what a launch line says; of several commands, the last that starts an engine.

    Raises:
        InvalidRequestError: no engine of the table is started, or the line can't be split.

    >>> read_launch_line("vllm serve Qwen/Qwen3-8B --max-model-len 32768 -tp 2")
    LaunchLine(engine='vllm', version='', model='Qwen/Qwen3-8B', args='--max-model-len 32768 -tp 2')
    """
    if len(text) > MAX_LINE:
        raise InvalidRequestError(
            f"--command is longer than {MAX_LINE:,} characters", hint=_EXAMPLE, field="command"
        )
    found = [line for words in _commands(text) if (line := _started(words)) is not None]
    if not found:
        raise InvalidRequestError("--command starts no engine that is known", hint=_EXAMPLE, field="command")
    return found[-1]


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a text."""
    lexer = shlex.shlex(_in_one_line(text), posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    try:
        for word in lexer:
            if word not in _ENDS:
                words.append(word)
            elif words:
                yield words
                words = []
    except ValueError as error:
        raise InvalidRequestError(f"--command: {error}", field="command") from None
    if words:
        yield words


def _in_one_line(text: str) -> str:
    """Return a text with ends of lines as ends of commands, but in quotes or after a backslash."""
    result: list[str] = []
    quote = before = ""
    for char in text.replace("\r\n", "\n"):
        is_escaped = before == "\\" and quote != "'"
        if char == "\n" and not quote:
            if is_escaped:
                result[-1] = " "
            else:
                result.append(" ; ")
        else:
            if char in "'\"" and not is_escaped and quote in ("", char):
                quote = "" if quote else char
            result.append(char)
        before = "" if is_escaped else char
    return "".join(result)


def _started(words: Sequence[str]) -> LaunchLine | None:
    """Return what a command starts; None where it is no engine."""
    for position in range(len(words)):
        for row in _table()["programs"]:
            own = words[position : position + len(row["words"])]
            if [PurePath(own[0]).name.removesuffix(".exe"), *own[1:]] == row["words"]:
                return _line(row, words[:position], list(words[position + len(own) :]), "")
        image = _image(words[position])
        if image is not None and not _names_program(words[position + 1 :]):
            row, tag = image
            return _line(row, words[:position], list(words[position + 1 :]), tag)
    return None


def _names_program(words: Sequence[str]) -> bool:
    return any(word in ("vllm", "sglang.launch_server", "sglang") for word in words[:3])


def _image(word: str) -> tuple[Mapping[str, Any], str] | None:
    """Return the row of a container image and the version that its tag says."""
    name, _, tag = word.partition(":")
    for row in _table()["images"]:
        if name == row["name"] or name.endswith("/" + row["name"]):
            version = _TAG.match(tag)
            return row, version[1] if version else ""
    return None


def _line(row: Mapping[str, Any], before: Sequence[str], rest: list[str], version: str) -> LaunchLine:
    engine, model = row["engine"], ""
    if not version:
        version = next((tag for word in before if (found := _image(word)) and (tag := found[1])), "")
    if row.get("model") == "first" and rest and not rest[0].startswith("-"):
        model = rest.pop(0)
    named, rest = _without(rest, _table()["model_flags"][engine])
    file, rest = _without(rest, _table()["file_flags"].get(engine, ()))
    model = named or model
    told = [
        word for word in before if word.startswith(tuple(_table()["environment"].get(engine, ())) or ("\0",))
    ]
    program = [row["program"]] if row.get("program") else []
    args = shlex.join([*program, *(word for word in told if _ASSIGNED.fullmatch(word)), *rest])
    return LaunchLine(engine, version, f"{model.partition(':')[0]}:{file}" if file and model else model, args)


def _without(words: Sequence[str], flags: Sequence[str]) -> tuple[str, list[str]]:
    """Return the value of one of some flags, and the words without flag and value."""
    value, kept, is_next = "", list[str](), False
    for word in words:
        name, equals, joined = word.partition("=")
        if is_next:
            value, is_next = word, False
        elif name in flags:
            value, is_next = (joined, False) if equals else (value, True)
        else:
            kept.append(word)
    return value, kept


__all__ = ["LaunchLine", "read_launch_line"]
