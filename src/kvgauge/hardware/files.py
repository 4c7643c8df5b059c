"""Devices of the user's own: a JSON file of rows as ``kvgauge gpus --json`` prints them.

The least that a row needs is a name and its memory: ``{"name": "My card", "memory": "47.4GiB"}``. A file is
one row, or ``{"gpus": [row, ...]}``. Everything in it is checked: an unknown key, a size out of range or a
range that is upside down is an error that names the field.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvgauge.errors import DamagedFileError, InvalidFieldError, KvgaugeError, MissingFieldError, one_line
from kvgauge.hardware.accelerators import KINDS, Accelerator, from_row
from kvgauge.sources.json_text import parse_object
from kvgauge.units import parse_size

MAX_FILE_BYTES = 1 << 20
MAX_ROWS = 1_000
MAX_TEXT = 300
MAX_ALIASES = 32
#: Memory of one device, at most: 2^50 bytes.
MAX_BYTES = 1 << 50
MAX_NUMBER = 1e12

Check = Callable[[object, str], object]

_HINT = "write rows as 'kvgauge gpus NAME --json' prints them; a name and a memory are enough"
_OWN = "own file"


def read_gpu_file(path: str | Path) -> tuple[Accelerator, ...]:
    """Return the devices of a file.

    Raises:
        DamagedFileError: no such file, too large, or no JSON object.
        InvalidFieldError, MissingFieldError: a row is not what it should be.
    """
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise DamagedFileError(f"can't read {path}: {why}", hint=_HINT, field="gpu_file") from None
    return parse_gpu_file(data, str(path))


def parse_gpu_file(data: bytes, where: str) -> tuple[Accelerator, ...]:
    """Return the devices of a file's bytes.

    >>> parse_gpu_file(b'{"name": "My card", "memory": "40GiB"}', "x")[0].memory_bytes >> 30
    40
    """
    if len(data) > MAX_FILE_BYTES:
        raise DamagedFileError(f"{where} is larger than 1 MiB", hint=_HINT, field="gpu_file")
    try:
        document = parse_object(data, where)
    except KvgaugeError as error:
        error.hint = _HINT
        raise
    rows = _rows(document)
    devices = tuple(from_row(_checked(row, place)) for place, row in rows)
    names = [device.name.lower() for device in devices]
    for name in names:
        if names.count(name) > 1:
            raise InvalidFieldError(
                f"two rows have the name {name!r}", hint="give each its own", field="gpus"
            )
    return devices


def _rows(document: Mapping[str, object]) -> list[tuple[str, Mapping[str, object]]]:
    if "gpus" not in document:
        return [("", document)]
    rows = document["gpus"]
    extra = set(document) - {"gpus", "schema"}
    if extra:
        raise _unknown(min(extra))
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ROWS:
        raise InvalidFieldError(f"gpus is no list of 1 to {MAX_ROWS} rows", hint=_HINT, field="gpus")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InvalidFieldError(f"gpus[{number}] is no object", hint=_HINT, field="gpus")
    return [(f"gpus[{number}].", row) for number, row in enumerate(rows)]


def _unknown(key: str) -> InvalidFieldError:
    shown = one_line(key, 60)
    return InvalidFieldError(f"{shown!r} is no field of a device", hint=_HINT, field=shown)


def _missing(place: str) -> MissingFieldError:
    return MissingFieldError(f"{place} is missing", hint=_HINT, field=place)


def _bad(place: str, what: str) -> InvalidFieldError:
    return InvalidFieldError(f"{place} is not {what}", hint=_HINT, field=place)


def _checked(row: Mapping[str, object], place: str) -> dict[str, Any]:
    """Return a row with every value checked; fields that are null are left out."""
    given = {key: value for key, value in row.items() if value is not None}
    for key in ("name", "memory"):
        if key not in given:
            raise _missing(place + key)
    for key in given:
        if key not in _FIELDS:
            raise _unknown(key)
    checked = {key: _FIELDS[key](value, place + key) for key, value in given.items()}
    name = str(checked["name"])
    return {"id": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "own", **checked}


def _text(value: object, place: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT or not value.isprintable():
        raise _bad(place, f"a text of 1 to {MAX_TEXT} printable characters")
    return value


def _number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_NUMBER:
        raise _bad(place, "a number above 0")
    return value if math.isfinite(value) else 0.0


def _bytes(value: object, place: str) -> int:
    if isinstance(value, str):
        try:
            value = parse_size(value[:MAX_TEXT], rounds=True)
        except KvgaugeError:
            raise _bad(place, "a size such as 47.4GiB, or bytes") from None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_BYTES:
        raise _bad(place, "a size such as 47.4GiB, or bytes")
    return value


def _whole(low: int, high: int) -> Check:
    def check(value: object, place: str) -> object:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _bad(place, f"a whole number of {low} to {high}")
        return value

    return check


def _one_of(words: Sequence[str]) -> Check:
    def check(value: object, place: str) -> object:
        if value not in words:
            raise _bad(place, f"one of {', '.join(words)}")
        return value

    return check


def _texts(value: object, place: str) -> object:
    if not isinstance(value, list) or len(value) > MAX_ALIASES:
        raise _bad(place, f"a list of at most {MAX_ALIASES} names")
    return [_text(one, place) for one in value]


def _memory(value: object, place: str) -> object:
    """A range, or one size that is meant exactly."""
    if not isinstance(value, dict):
        size = _bytes(value, place)
        value = {"central_bytes": size, "grade": "exact"}
    keys = {"low_bytes", "central_bytes", "high_bytes"}
    for key in value:
        if key not in keys | {"grade", "source"}:
            raise _unknown(str(key))
    if value.get("central_bytes") is None:
        raise _missing(f"{place}.central_bytes")
    central = _bytes(value["central_bytes"], f"{place}.central_bytes")
    sizes = {key: _bytes(value.get(key) or central, f"{place}.{key}") for key in sorted(keys)}
    if not sizes["low_bytes"] <= central <= sizes["high_bytes"]:
        raise _bad(place, "a range: low_bytes, central_bytes, high_bytes in this order")
    grade = _one_of(("exact", "measured", "assumed"))(value.get("grade") or "assumed", f"{place}.grade")
    return {**sizes, "grade": grade, "source": _text(value.get("source") or _OWN, f"{place}.source")}


def _graded(key: str, check: Check) -> Check:
    """Return the check of a number that may stand alone, or with its grade and source."""

    def checked(value: object, place: str) -> object:
        fields = value if isinstance(value, dict) and key in value else {key: value}
        for name in fields:
            if name not in (key, "grade", "source"):
                raise _unknown(str(name))
        grade = _one_of(("recall", "source", "measured", "given"))(
            fields.get("grade") or "given", f"{place}.grade"
        )
        source = _text(fields.get("source") or _OWN, f"{place}.source")
        return {key: check(fields[key], place), "grade": grade, "source": source}

    return checked


def _by_dtype(value: object, place: str) -> object:
    if not isinstance(value, dict) or not 1 <= len(value) <= len(_DTYPES):
        raise _bad(place, f"an object with {', '.join(_DTYPES)}")
    return {_one_of(_DTYPES)(key, place): _number(rate, f"{place}.{key}") for key, rate in value.items()}


_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4")


def _link(value: object, place: str) -> object:
    if not isinstance(value, dict) or set(value) != {"gb_per_second", "kind"}:
        raise _bad(place, "an object with gb_per_second and kind")
    rate = _number(value["gb_per_second"], f"{place}.gb_per_second")
    return {"gb_per_second": rate, "kind": _text(value["kind"], f"{place}.kind")}


def _prices(value: object, place: str) -> object:
    if not isinstance(value, list) or len(value) > MAX_ALIASES:
        raise _bad(place, f"a list of at most {MAX_ALIASES} prices")
    return [_one_price(price, place) for price in value]


def _one_price(value: object, place: str) -> object:
    if not isinstance(value, dict) or len({"usd_per_hour", "usd"} & set(value)) != 1:
        raise _bad(place, "a price with usd_per_hour or usd")
    for key in value:
        if key not in ("usd_per_hour", "usd", "date", "grade", "source"):
            raise _unknown(str(key))
    unit = "usd" if "usd" in value else "usd_per_hour"
    date = value.get("date")
    if date is not None and not (isinstance(date, str) and re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", date)):
        raise _bad(f"{place}.date", "a date such as 2026-11")
    grade = _one_of(("recall", "source", "given"))(value.get("grade") or "given", f"{place}.grade")
    source = _text(value.get("source") or _OWN, f"{place}.source")
    return {unit: _number(value[unit], f"{place}.{unit}"), "date": date, "grade": grade, "source": source}


def _flag(value: object, place: str) -> object:
    if not isinstance(value, bool):
        raise _bad(place, "true or false")
    return value


_FIELDS: Mapping[str, Check] = {
    "id": _text,
    "name": _text,
    "vendor": _text,
    "kind": _one_of(KINDS),
    "year": _whole(1990, 2100),
    "aliases": _texts,
    "architecture": _text,
    "label_bytes": _bytes,
    "memory": _memory,
    "smi_total": _graded("bytes", _bytes),
    "bandwidth_gb_per_second": _graded("value", _number),
    "dense_tflops": _graded("value", _by_dtype),
    "link": _link,
    "pcie_generation": _whole(1, 9),
    "power_watts": _number,
    "sram_bytes": _bytes,
    "chips": _whole(1, 1_000_000),
    "unified": _one_of(("working_set", "shared_with_system", "gtt_limit")),
    "prices": _prices,
    "planned": _flag,
    "note": _text,
}
