"""Parse JSON from untrusted files: bounded size, depth and time, no duplicate keys."""

from __future__ import annotations

import json
import re

from kvgauge.errors import DamagedFileError

MAX_CONFIG_BYTES = 16 << 20
MAX_DEPTH = 64

# A string that never ends swallows the rest, so that no byte is looked at twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_HINT = "give the config.json as the model's authors published it"


def parse_object(data: bytes, where: str) -> dict[str, object]:
    """Return the JSON object in ``data``; a byte-order mark, NaN and Infinity are accepted.

    Raises:
        DamagedFileError: too large, too deep, not UTF-8, not JSON, duplicate keys, or no object.

    >>> parse_object(b'{"num_hidden_layers": 36}', "config.json")
    {'num_hidden_layers': 36}
    """
    if len(data) > MAX_CONFIG_BYTES:
        raise _damaged(f"{where} is larger than {MAX_CONFIG_BYTES >> 20} MiB", where)
    if not data.strip():
        raise _damaged(f"{where} is empty", where)
    _check_depth(data, where)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _damaged(f"{where} is not UTF-8 (byte {error.start})", where, "save it as UTF-8") from None
    value = _loads(text, where)
    if not isinstance(value, dict):
        raise _damaged(f"{where} holds {_KINDS.get(type(value), 'a number')}, not an object", where)
    if _SURROGATE.search(text):
        _check_characters(value, where)
    return value


_KINDS: dict[type, str] = {list: "a list", str: "a text", bool: "a truth value", type(None): "null"}


def _damaged(message: str, where: str, hint: str = _HINT) -> DamagedFileError:
    return DamagedFileError(message, hint=hint, field=where)


def _loads(text: str, where: str) -> object:
    try:
        value: object = json.loads(text, object_pairs_hook=_unique)
    except _DuplicateKeyError as error:
        message = f"{where} has the key {error.args[0]!r} twice in one object"
        raise _damaged(message, where, "remove one of them") from None
    except json.JSONDecodeError as error:
        message = f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise _damaged(message, where) from None
    except (ValueError, RecursionError, MemoryError):
        raise _damaged(f"{where} holds a number with too many digits", where) from None
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
    """Refuse deep nesting before the parser recurses into it."""
    depth = 0
    for byte in _STRING.sub(b"", data).translate(None, _NOT_BRACKETS):
        if byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise _damaged(f"{where} nests deeper than {MAX_DEPTH} levels", where)
        else:
            depth -= 1


def _check_characters(value: object, where: str) -> None:
    """Refuse halves of characters, which no terminal or file could show again."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _damaged(f"{where} holds half of a surrogate pair", where) from None
