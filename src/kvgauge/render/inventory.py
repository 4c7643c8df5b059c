"""``models``, ``engines`` and ``doctor`` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from kvgauge.inventory import rules_of
from kvgauge.render.clean import clean
from kvgauge.render.view import View, labelled, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.engines.index import EngineInfo


_MODEL_COLUMNS = (
    "column_id", "column_family", "column_layers", "column_limit", "column_fixed", "column_per_token",
)  # fmt: skip
_NARROW_COLUMNS = ("column_id", "column_fixed", "column_per_token")
_NOTHING = "-"


def draw_names(names: Sequence[str]) -> str:
    """Return names, one a line: made for grep and eyes alike."""
    return "".join(f"{name}\n" for name in names)


def draw_models(rows: Sequence[Mapping[str, object]], view: View) -> str:
    """Return a table of a few models with their figures."""
    texts = view.texts
    names = [name for name in _MODEL_COLUMNS if not view.is_narrow or name in _NARROW_COLUMNS]
    right = tuple(place for place, name in enumerate(names) if name not in ("column_id", "column_family"))
    grid = table(*(texts(name) for name in names), right=right)
    for row in rows:
        cells = model_cells(row, view)
        grid.add_texts(*(cells.get(name, "") for name in names))
    return view.draw(grid)


def models_table(rows: Sequence[Mapping[str, object]], view: View) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the cells of ``draw_models`` in full width."""
    cells = [model_cells(row, view) for row in rows]
    return [view.texts(name) for name in _MODEL_COLUMNS], [
        [row.get(name, "") for name in _MODEL_COLUMNS] for row in cells
    ]


def model_cells(row: Mapping[str, object], view: View) -> dict[str, str]:
    """Return the text of every column."""
    if "error" in row:
        error = cast("Mapping[str, str]", row["error"])
        return {"column_id": clean(str(row["id"])), "column_family": error["code"]}
    limit = row["context_limit_tokens"]
    return {
        "column_id": clean(str(row["id"])),
        "column_family": str(row["family"]),
        "column_layers": str(row["num_layers"]),
        "column_limit": "" if limit is None else f"{limit:,}",
        "column_fixed": _size(row["fixed_bytes_per_sequence"], view),
        "column_per_token": _size(row["growth_bytes_per_token"], view),
    }


def _size(size_bytes: object, view: View) -> str:
    return view.size(Fraction(cast(float, size_bytes))) if size_bytes else _NOTHING


def draw_engines(engines: Sequence[EngineInfo], view: View) -> str:
    """Return one block an engine: what it answers, where its rules come from, and the rules by version."""
    texts = view.texts
    parts: list[RenderableType] = []
    for engine in engines:
        versions = ", ".join(engine.versions) or texts("versions_none")
        rows = [
            (engine.name, texts.find(f"engine.{engine.name}", engine.summary)),
            (f"  {texts('column_versions')}", versions),
            (f"  {texts('column_source')}", texts.origin(engine.source)),
            *(
                (f"  {rule.since}", f"{rule.texts[texts.lang]} ({texts.origin(rule.source)})")
                for rule in rules_of(engine.name)
            ),
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
            none = "doctor_missing" if key == "dependencies" else "doctor_no"
            rows += [(f"{key}.{name}", _fact(inner, none, view)) for name, inner in value.items()]
        else:
            rows.append((key, _fact(value, "doctor_no", view)))
    return view.draw(labelled(rows))


def _fact(value: object, none: str, view: View) -> str:
    if value is None:
        return view.texts(none)
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return view.texts("doctor_yes") if value == "set" else clean(str(value))
