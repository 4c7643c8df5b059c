"""Parse JSON from untrusted files: bounded size and depth, no duplicate keys."""

from __future__ import annotations

import json
import re

from kvgauge.errors import DamagedFileError

MAX_CONFIG_BYTES = 16 << 20
MAX_DEPTH = 64

_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def parse_object(data: bytes, where: str) -> dict[str, object]:
    """Return the JSON object in ``data``.

    Raises:
        DamagedFileError: too large, too deep, not UTF-8, not JSON, duplicate keys, or no object.
    """
    if len(data) > MAX_CONFIG_BYTES:
        raise DamagedFileError(
            f"{where} is larger than {MAX_CONFIG_BYTES >> 20} MiB",
            hint="a config.json is a few KiB",
            field=where,
        )
    _check_depth(data, where)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DamagedFileError(
            f"{where} is not UTF-8 (byte {error.start})", hint="save it as UTF-8", field=where
        ) from None
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except _DuplicateKeyError as error:
        raise DamagedFileError(
            f"{where} has the key {error.args[0]!r} twice in one object",
            hint="remove one of them",
            field=where,
        ) from None
    except json.JSONDecodeError as error:
        raise DamagedFileError(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}", field=where
        ) from None
    except (ValueError, RecursionError):
        raise DamagedFileError(
            f"{where} holds a number or nesting that is out of range", field=where
        ) from None
    if not isinstance(value, dict):
        raise DamagedFileError(f"{where} holds a {type(value).__name__}, not an object", field=where)
    return value


class _DuplicateKeyError(Exception):
    pass


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key[:80])
            seen.add(key)
    return result


def _check_depth(data: bytes, where: str) -> None:
    depth = 0
    for match in _STRUCTURE.finditer(data):
        char = match[0]
        if char in (b"{", b"["):
            depth += 1
            if depth > MAX_DEPTH:
                raise DamagedFileError(f"{where} nests deeper than {MAX_DEPTH} levels", field=where)
        elif char in (b"}", b"]"):
            depth -= 1
