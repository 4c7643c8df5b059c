"""What a device costs: the catalogue's dated prices, or those of the user's own file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from kvgauge.errors import DamagedFileError, InvalidFieldError, KvgaugeError, one_line
from kvgauge.sources.json_text import parse_object
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.hardware import Accelerator, Price

MAX_FILE_BYTES = 1 << 20
MAX_ROWS = 1_000
MAX_USD = 1e9
_HINT = (
    'for example {"H100": 2.5, "RTX 4090": {"usd_per_hour": 0.4, "date": "2026-11", "source": "my cloud"}}'
)
_OWN = "own file"
_UNITS = ("usd_per_hour", "usd")
_PER = ("hour", "device")
_KEYS = frozenset((*_UNITS, "date", "source"))


@dataclass(frozen=True)
class PriceTable:
    """Prices by the id or the lower-case name of a device; they go before the catalogue's."""

    own: Mapping[str, tuple[Price, ...]] = field(default_factory=dict)

    def of(self, device: Accelerator) -> tuple[Price | None, Price | None]:
        """Return the price of an hour, and of the device."""
        own = self.own.get(device.id) or self.own.get(device.name.lower()) or ()
        known = (*own, *device.prices)
        hourly, purchase = (next((price for price in known if price.per == unit), None) for unit in _PER)
        return hourly, purchase


def read_prices(path: str | Path | None) -> PriceTable:
    """Return the prices of a file; None is the catalogue's alone.

    Raises:
        DamagedFileError: no such file, too large, or no JSON object.
        InvalidFieldError: a price is not what it should be, or no device has that name.
    """
    if path is None:
        return PriceTable()
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise DamagedFileError(f"can't read {path}: {why}", hint=_HINT, field="price_file") from None
    return parse_prices(data, str(path))


def parse_prices(data: bytes, where: str) -> PriceTable:
    """Return the prices of a file's bytes: a name prices every form that bears it, the exacter name wins.

    >>> table = parse_prices(b'{"H100": 2.5, "H100 NVL": 2}', "x")
    >>> [table.own[name][0].usd for name in ("h100-sxm5-80gb", "h100-nvl-94gb")]
    [2.5, 2]
    """
    if len(data) > MAX_FILE_BYTES:
        raise DamagedFileError(f"{where} is larger than 1 MiB", hint=_HINT, field="price_file")
    try:
        rows = parse_object(data, where)
    except KvgaugeError as error:
        error.hint = _HINT  # the reader's own is about configs
        raise
    if len(rows) > MAX_ROWS:
        raise DamagedFileError(f"{where} has more than {MAX_ROWS} rows", hint=_HINT, field="price_file")
    return PriceTable(_by_device(rows))


def _by_device(rows: Mapping[str, object]) -> dict[str, tuple[Price, ...]]:
    from kvgauge.hardware import matches  # noqa: PLC0415 - few have a file

    named = [(name, matches(name[:160]), _prices(name, value)) for name, value in rows.items()]
    own: dict[str, tuple[Price, ...]] = {}
    for name, ids, prices in sorted(named, key=lambda row: -len(row[1])):
        own |= dict.fromkeys(ids, prices)
        own[name.lower()] = prices
    return own


def _prices(name: str, value: object) -> tuple[Price, ...]:
    from kvgauge.hardware import Price  # noqa: PLC0415 - as above

    row = value if isinstance(value, dict) else {"usd_per_hour": value}
    place = one_line(name, 80)
    if not set(row) <= _KEYS or not set(row) & set(_UNITS):
        raise _bad(place, "a number, or an object with usd_per_hour or usd, date and source")
    date, source = row.get("date"), row.get("source", _OWN)
    if date is not None and not (isinstance(date, str) and re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", date)):
        raise _bad(f"{place}.date", "a date such as 2026-11")
    if not isinstance(source, str):
        raise _bad(f"{place}.source", "text")
    return tuple(
        Price(
            _dollars(row[unit], f"{place}.{unit}"), "hour" if unit == "usd_per_hour" else "device", date,
            "given", one_line(source, 200),
        )
        for unit in _UNITS
        if unit in row
    )  # fmt: skip


def _dollars(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(place, "a number of US dollars")
    if not math.isfinite(value) or not 0 < value <= MAX_USD:
        raise _bad(place, "a number of US dollars above 0")
    return value


def _bad(place: str, wanted: str) -> InvalidFieldError:
    return InvalidFieldError(f"price of {place} is to be {wanted}", hint=_HINT, field="price_file")


__all__ = ["PriceTable", "parse_prices", "read_prices"]
