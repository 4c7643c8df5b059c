"""What an engine that names its own allocations puts where, one row a place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from kvgauge.render.view import View
from kvgauge.size_result import SizeResult


def placed_rows(result: SizeResult, view: View) -> list[tuple[str, str]]:
    """Return (place, sum and parts) of every place; a range where a size is not exact."""
    places: dict[str, list[Mapping[str, object]]] = {}
    for entry in result.allocations:
        if entry["bytes"]:
            places.setdefault(str(entry["place"]), []).append(entry)
    return [(_label(place, view), _line(parts, view)) for place, parts in sorted(places.items())]


def _label(place: str, view: View) -> str:
    texts = view.texts
    return texts("placed_label", place=texts("placed_host") if place == "host" else place)


def _line(parts: list[Mapping[str, object]], view: View) -> str:
    texts = view.texts
    total = view.size(sum(_bytes(part, "bytes") for part in parts))
    return texts(
        "placed_sum", size=total, parts=texts("placed_join").join(_part(part, view) for part in parts)
    )


def _part(part: Mapping[str, object], view: View) -> str:
    texts, name = view.texts, str(part["name"])
    name = texts("weights_label").lower() if name == "weights" else name
    low, size, high = (view.size(_bytes(part, key)) for key in ("low_bytes", "bytes", "high_bytes"))
    if low == high:
        return texts("placed_part", name=name, size=size)
    return texts("placed_range", name=name, size=size, low=low, high=high)


def _bytes(part: Mapping[str, object], key: str) -> int:
    return cast(int, part[key])


__all__ = ["placed_rows"]
