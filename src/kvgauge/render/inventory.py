"""``models``, ``engines`` and ``doctor`` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from kvgauge.render.clean import clean
from kvgauge.render.view import View, labelled, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.engines.index import EngineInfo


def draw_names(names: Sequence[str], view: View) -> str:
    """Return names, one a line: made for grep and eyes alike."""
    return "".join(f"{name}\n" for name in names)


def draw_models(rows: Sequence[Mapping[str, object]], view: View) -> str:
    """Return a table of a few models with their figures."""
    texts = view.texts
    names = ["column_id", "column_family", "column_layers", "column_limit", "column_per_token"]
    names = [names[0], names[4]] if view.is_narrow else names
    numbers = {"column_layers", "column_limit", "column_per_token"}
    right = tuple(place for place, name in enumerate(names) if name in numbers)
    grid = table(*(texts(name) for name in names), right=right)
    for row in rows:
        cells = _model_cells(row, view)
        grid.add_texts(*(cells.get(name, "") for name in names))
    return view.draw(grid)


def _model_cells(row: Mapping[str, object], view: View) -> dict[str, str]:
    if "error" in row:
        error = cast("Mapping[str, str]", row["error"])
        return {"column_id": clean(str(row["id"])), "column_family": error["code"]}
    limit = row["context_limit_tokens"]
    return {
        "column_id": clean(str(row["id"])),
        "column_family": str(row["family"]),
        "column_layers": str(row["num_layers"]),
        "column_limit": "" if limit is None else f"{limit:,}",
        "column_per_token": view.size(Fraction(cast(float, row["growth_bytes_per_token"]))),
    }


def draw_engines(engines: Sequence[EngineInfo], view: View) -> str:
    """Return one block an engine: versions, what it answers, where its rules come from."""
    texts = view.texts
    parts: list[RenderableType] = []
    for engine in engines:
        versions = ", ".join(engine.versions) or texts("versions_none")
        rows = [
            (engine.name, texts.find(f"engine.{engine.name}", engine.summary)),
            (f"  {texts('column_versions')}", versions),
            (f"  {texts('column_source')}", engine.source),
        ]
        parts.append(labelled(rows))
    return view.draw(*parts)


def draw_doctor(facts: Mapping[str, object], view: View) -> str:
    """Return name and value pairs; nested objects with dotted names, keys as in the JSON."""
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        if key == "schema":
            continue
        if isinstance(value, Mapping):
            rows += [(f"{key}.{name}", _fact(inner, view)) for name, inner in value.items()]
        else:
            rows.append((key, _fact(value, view)))
    return view.draw(labelled(rows))


def _fact(value: object, view: View) -> str:
    if value is None:
        return view.texts("doctor_no")
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return view.texts("doctor_yes") if value == "set" else clean(str(value))
