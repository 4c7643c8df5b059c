"""The shipped catalogue: configs reduced to the fields that readers use, one JSON line a model.

``data/models.jsonl`` holds the rows, ``data/names.json`` the byte range of each row and the aliases. Asking
for one model parses one row.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import resources
from typing import cast

from kvgauge.sources import Json, RawModel

#: Key of an alias's patch that stands for the quantisation file beside the config.
SIDE_FILE = "hf_quant_config"

_HUB_URL = re.compile(r"https?://[^/]+/([^/]+/[^/?#]+).*")


@lru_cache(maxsize=1)
def _names() -> Mapping[str, Mapping[str, object]]:
    text = resources.files("kvgauge.data").joinpath("names.json").read_text(encoding="utf-8")
    names: Mapping[str, Mapping[str, object]] = json.loads(text)
    return names


@lru_cache(maxsize=1)
def _folded() -> Mapping[str, str]:
    names = _names()
    return {name.lower(): name for name in (*names["models"], *names["aliases"])}


def model_names() -> tuple[str, ...]:
    """Return every name in the catalogue, aliases included."""
    names = _names()
    return tuple(sorted((*names["models"], *names["aliases"]), key=str.lower))


def find_model(name: str) -> RawModel | None:
    """Return the row of a name or alias (any case, hub URLs too), or None."""
    wanted = _plain_name(name)
    if "@" in wanted or ":" in wanted:
        return None
    known = _folded().get(wanted.lower())
    if known is None:
        return None
    names = _names()
    row_id, patch = _alias_target(names["aliases"].get(known, known))
    start, length = cast("tuple[int, int]", names["models"][row_id])
    with resources.files("kvgauge.data").joinpath("models.jsonl").open("rb") as stream:
        stream.seek(start)
        row = json.loads(stream.read(length))
    return _raw(row, known, patch)


def _alias_target(entry: object) -> tuple[str, Json]:
    """An alias is the id of a row, or that and the config fields that differ."""
    if isinstance(entry, Mapping):
        return str(entry["id"]), cast(Json, entry.get("patch", {}))
    return str(entry), {}


def patched(row: Json, patch: Json) -> tuple[Json, Json | None]:
    """Return (config, quantisation file) of a row with an alias's patch applied; null removes a field."""
    config = cast(Json, row["config"])
    quantization = cast("Json | None", row.get("quantization"))
    if not patch:
        return config, quantization
    changed = {key: value for key, value in patch.items() if key != SIDE_FILE}
    gone = {key for key, value in changed.items() if value is None}
    merged = {key: value for key, value in {**config, **changed}.items() if key not in gone}
    return merged, cast("Json | None", patch.get(SIDE_FILE, quantization))


def _raw(row: Json, name: str, patch: Json) -> RawModel:
    config, quantization = patched(row, patch)
    return RawModel(
        name,
        "catalogue",
        config,
        quantization=quantization,
        provenance=f"{row['source']}, {row['date']}",
    )


def all_models() -> Iterator[tuple[RawModel, tuple[str, ...]]]:
    """Yield every row with its aliases."""
    names = _names()
    by_row: dict[str, list[str]] = {}
    for alias, row_id in names["aliases"].items():
        by_row.setdefault(_alias_target(row_id)[0], []).append(alias)
    text = resources.files("kvgauge.data").joinpath("models.jsonl").read_text(encoding="utf-8")
    for line in text.splitlines():
        row = json.loads(line)
        yield _raw(row, row["id"], {}), tuple(sorted(by_row.get(row["id"], ())))


def near_names(name: str) -> list[str]:
    """Return up to two names that a mistyped one may have meant."""
    wanted = _plain_name(name).lower()
    folded = _folded()
    near = difflib.get_close_matches(wanted, folded, n=2, cutoff=0.75)
    if not near:
        tail = wanted.rpartition("/")[2]
        near = [key for key in folded if tail and key.rpartition("/")[2] == tail][:2]
    return [folded[key] for key in near]


def _plain_name(name: str) -> str:
    match = _HUB_URL.fullmatch(name.strip())
    return match[1] if match else name.strip()
