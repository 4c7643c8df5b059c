"""Read records from a file: bounded lines, bounded in number, each one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kvgauge.errors import DamagedFileError, ModelNotFoundError
from kvgauge.replay.records import Record

MAX_LINE_BYTES = 1 << 20
MAX_RECORDS = 100_000


def read_records(path: Path) -> Iterator[Record]:
    """Yield the records of a file, one JSON object a line.

    Raises:
        ModelNotFoundError: no such file, or it can't be read.
        DamagedFileError: a line that is no JSON object, too long, or too many of them.
    """
    name = path.name
    try:
        with path.open("rb") as stream:
            yield from _parsed(stream, name)
    except OSError as error:
        raise ModelNotFoundError(
            f"{name} can't be read: {error.strerror or error}",
            hint="give a file with one JSON object a line; without one the shipped records are replayed",
            field="FILE",
        ) from None


def _parsed(stream: BinaryIO, name: str) -> Iterator[Record]:
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES or number > MAX_RECORDS:
            raise DamagedFileError(
                f"{name}, line {number}: more than {MAX_LINE_BYTES >> 20} MiB a line "
                f"or {MAX_RECORDS:,} records",
                hint="split the file",
                field="FILE",
            )
        if line.strip():
            yield parse_record(line, f"{name}, line {number}")


def parse_record(line: bytes, where: str) -> Record:
    """Return the record of a line.

    Raises:
        DamagedFileError: no JSON object.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, dict):
        raise DamagedFileError(
            f"{where} is no JSON object",
            hint="one object a line, as docs/accuracy.md describes",
            field="FILE",
        )
    return Record(value)
