"""Build the shipped catalogue in ``src/kvgauge/data``: ``models.jsonl``, ``names.json``, ``quantised.jsonl``.

    python tools/catalogue.py add path/to/config.json --id org/name --source "who published it"
    python tools/catalogue.py add org/name                    (asks the Hugging Face hub)
    python tools/catalogue.py alias org/name-FP8 org/name --patch '{"quantization_config": {...}}'
    python tools/catalogue.py remove org/name
    python tools/catalogue.py names                           (rebuilds names.json and quantised.jsonl)
    python tools/catalogue.py check                           (rows read, names in step, order)

A row is authored once and kept: ``models.jsonl`` and ``tools/aliases.tsv`` are the sources, the other two are
built from them; the bytes of weights in ``quantised.jsonl`` are those that the package finds.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from kvgauge.errors import KvgaugeError
from kvgauge.models import Model
from kvgauge.readers import read_architecture
from kvgauge.readers.hf import read_config
from kvgauge.sources import RawModel
from kvgauge.sources.catalogue import is_full_name, is_quantised_name, patched, plain_name
from kvgauge.sources.json_text import parse_object
from reduction import ReductionError, assert_same_reading, reduce_config, reduce_quantization

ROOT = Path(__file__).parents[1]
DATA = ROOT / "src/kvgauge/data"
ALIASES = ROOT / "tools/aliases.tsv"
QUANT_FILE = "hf_quant_config.json"

Json = Mapping[str, object]
Row = dict[str, object]
Aliases = dict[str, tuple[str, dict[str, object]]]

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


class CatalogueError(Exception):
    """The catalogue, or what is to be added, is wrong."""


# -- rows -------------------------------------------------------------------------------------------


def load_rows() -> dict[str, Row]:
    """Return the rows by id."""
    lines = (DATA / "models.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return {str(row["id"]): row for row in rows}


def save_rows(rows: Mapping[str, Row]) -> None:
    """Write the rows, sorted by id, one line each, and what is built of them."""
    data = "".join(row_line(rows[name]) for name in sorted(rows, key=str.lower)).encode("ascii")
    built = build(data, load_aliases())
    (DATA / "models.jsonl").write_bytes(data)
    for name, content in built.items():
        (DATA / name).write_bytes(content)


def row_line(row: Row) -> str:
    """Return the line of a row."""
    return json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n"


def make_row(name: str, source: str, date: str, config: Json, quantization: Json | None) -> Row:
    """Reduce a config to a row and prove that the row reads the same.

    Raises:
        CatalogueError, ReductionError, KvgaugeError: it can't be shipped; says why.
    """
    if not _ID.fullmatch(name):
        raise CatalogueError(f"{name!r} is not an id of the form org/name")
    if not source.strip() or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise CatalogueError(f"{name}: a row states its source and a date YYYY-MM-DD")
    row: Row = {"id": name, "source": source.strip(), "date": date, "config": reduce_config(config)}
    if quantization:
        row["quantization"] = reduce_quantization(quantization)
    architecture = assert_same_reading(config, quantization, row)
    if any(note.code == "inferred" for note in architecture.notes):
        print(f"note: {name}: its model type has no row in model_types.json", file=sys.stderr)
    return row


# -- names ------------------------------------------------------------------------------------------


def load_aliases() -> Aliases:
    """Return alias -> (id, patch) of the authored table.

    Raises:
        CatalogueError: a line is malformed or an alias stands twice.
    """
    aliases: Aliases = {}
    path = ALIASES
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) not in (2, 3) or not all(_ID.fullmatch(cell) for cell in cells[:2]):
            raise CatalogueError(f"{path.name}:{number}: expected alias, id and an optional patch")
        if cells[0] in aliases:
            raise CatalogueError(f"{path.name}:{number}: {cells[0]} stands twice")
        aliases[cells[0]] = (cells[1], json.loads(cells[2]) if len(cells) == 3 else {})
    return aliases


def save_aliases(aliases: Aliases) -> None:
    """Write the authored table, sorted, its head kept, and what is built of it."""
    built = build((DATA / "models.jsonl").read_bytes(), aliases)
    head = [line for line in ALIASES.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    lines = [
        "\t".join((name, target, *([json.dumps(patch)] if patch else [])))
        for name, (target, patch) in sorted(aliases.items(), key=lambda item: item[0].lower())
    ]
    ALIASES.write_text("\n".join((*head, *lines)) + "\n", encoding="utf-8")
    for name, content in built.items():
        (DATA / name).write_bytes(content)


def build(rows: bytes, aliases: Aliases) -> dict[str, bytes]:
    """Return the files that are built of rows and aliases, by name.

    Raises:
        CatalogueError: an alias leads nowhere or hides a row.
    """
    return {"names.json": build_names(rows, aliases), "quantised.jsonl": build_quantised(rows, aliases)}


def build_quantised(rows: bytes, aliases: Aliases) -> bytes:
    """Return quantised.jsonl: plain name -> other checkpoints and the bytes of their weights."""
    by_id = {str(row["id"]): row for row in map(json.loads, rows.splitlines())}
    named = {name: (name, {}) for name in by_id} | aliases
    full = {plain_name(name) for name in named if is_full_name(name)}
    found: dict[str, list[tuple[int, str]]] = {}
    for name, (target, patch) in named.items():
        plain = plain_name(name)
        if is_quantised_name(name) or (plain in full and not is_full_name(name)):
            size = _weights_bytes(name, *patched(by_id[target], patch))
            if size is not None:
                found.setdefault(plain, []).append((size, name))
    lines = (
        json.dumps({plain: {name: size for size, name in sorted(sizes, reverse=True)}}, separators=(",", ":"))
        for plain, sizes in sorted(found.items())
    )
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _weights_bytes(name: str, config: Json, quantization: Json | None) -> int | None:
    """Return the bytes that the package finds; None where it knows no weights, or refuses the config."""
    try:
        raw = RawModel(name, "catalogue", config, quantization=quantization)
        stored = Model(raw, read_architecture(config, quantization)).weighed.stored
    except KvgaugeError:
        return None
    return None if stored is None else stored.num_bytes


def build_names(rows: bytes, aliases: Aliases) -> bytes:
    """Return names.json: where each row stands in models.jsonl, and the aliases.

    Raises:
        CatalogueError: an alias leads nowhere or hides a row.
    """
    models: dict[str, list[int]] = {}
    offset = 0
    for line in rows.splitlines(keepends=True):
        models[json.loads(line)["id"]] = [offset, len(line)]
        offset += len(line)
    entries: dict[str, object] = {}
    folded = {name.lower() for name in models}
    for alias, (target, patch) in sorted(aliases.items(), key=lambda item: item[0].lower()):
        if target not in models:
            raise CatalogueError(f"the alias {alias} leads to {target}, which is no row")
        if alias.lower() in folded:
            raise CatalogueError(f"{alias} names two models")
        folded.add(alias.lower())
        entries[alias] = {"id": target, "patch": patch} if patch else target
    text = json.dumps({"models": models, "aliases": entries}, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


# -- check ------------------------------------------------------------------------------------------


def problems() -> list[str]:
    """Return what is wrong with the catalogue, one sentence each."""
    found: list[str] = []
    rows = load_rows()
    if list(rows) != sorted(rows, key=str.lower):
        found.append("models.jsonl is not sorted by id")
    raw = (DATA / "models.jsonl").read_bytes()
    if raw != "".join(row_line(row) for row in rows.values()).encode("ascii"):
        found.append("models.jsonl is not in the form that this tool writes")
    for name, row in rows.items():
        found.extend(_row_problems(name, row))
    try:
        aliases = load_aliases()
        for name, content in build(raw, aliases).items():
            if content != (DATA / name).read_bytes():
                found.append(f"{name} is out of step: run tools/catalogue.py names")
        found.extend(_alias_problems(rows, aliases))
    except CatalogueError as error:
        found.append(str(error))
    return found


def _row_problems(name: str, row: Row) -> list[str]:
    config, quantization = row["config"], row.get("quantization")
    assert isinstance(config, Mapping)  # noqa: S101 - written by this tool
    assert quantization is None or isinstance(quantization, Mapping)  # noqa: S101
    try:
        read_config(config, quantization)
    except KvgaugeError as error:
        return [f"{name} is refused: {error}"]
    if reduce_config(config) != config:
        return [f"{name} holds fields that the reduction drops"]
    return []


def _alias_problems(rows: Mapping[str, Row], aliases: Aliases) -> list[str]:
    found: list[str] = []
    for alias, (target, patch) in aliases.items():
        if not patch:
            continue  # it reads as its row does
        config, quantization = patched(rows[target], patch)
        try:
            read_config(config, quantization)
        except KvgaugeError as error:
            found.append(f"{alias} is refused: {error}")
    return found


# -- commands ---------------------------------------------------------------------------------------


def read_model(model: str, revision: str) -> tuple[Json, Json | None]:
    """Return (config, hf_quant_config.json or None) of a file, a folder or a hub id."""
    path = Path(model)
    if path.is_dir():
        path /= "config.json"
    if path.is_file():
        side = path.with_name(QUANT_FILE)
        quantization = parse_object(side.read_bytes(), str(side)) if side.is_file() else None
        return parse_object(path.read_bytes(), str(path)), quantization
    if not _ID.fullmatch(model):
        raise CatalogueError(f"there is no file {model}, and it is not an id of the form org/name")
    config = _download(model, revision, "config.json")
    if config is None:
        raise CatalogueError(f"{model} holds no config.json")
    return config, _download(model, revision, QUANT_FILE)


def _download(name: str, revision: str, file: str) -> Json | None:
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/{name}/resolve/{revision}/{file}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return parse_object(answer.read(), url)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise CatalogueError(f"{url}: {error}") from None
    except OSError as error:
        raise CatalogueError(f"{url}: {error}") from None


def add(options: argparse.Namespace) -> None:
    """Add or update a row."""
    config, quantization = read_model(options.model, options.revision)
    if options.quantization:
        side = Path(options.quantization)
        quantization = parse_object(side.read_bytes(), str(side))
    name = options.id or options.model
    rows = load_rows()
    row = make_row(name, options.source or f"{name}, config.json", options.date, config, quantization)
    verb = "updated" if name in rows else "added"
    rows[name] = row
    save_rows(rows)
    print(f"{verb} {name}: {len(row_line(row))} bytes, {len(rows)} rows")


def remove(options: argparse.Namespace) -> None:
    """Remove a row."""
    rows = load_rows()
    if rows.pop(options.id, None) is None:
        raise CatalogueError(f"{options.id} is no row")
    save_rows(rows)


def alias(options: argparse.Namespace) -> None:
    """Add or update an alias."""
    if not _ID.fullmatch(options.alias):
        raise CatalogueError(f"{options.alias!r} is not an id of the form org/name")
    table = load_aliases()
    table[options.alias] = (
        options.id,
        parse_object(options.patch.encode(), "--patch") if options.patch else {},
    )
    save_aliases(table)


def names(_: argparse.Namespace) -> None:
    """Rebuild what is built of the rows and tools/aliases.tsv."""
    save_rows(load_rows())


def check(_: argparse.Namespace) -> None:
    """Fail where the catalogue is wrong."""
    found = problems()
    if found:
        raise CatalogueError("\n".join(found))
    print(f"{len(load_rows())} rows, {len(load_aliases())} aliases: in order")


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    top = argparse.ArgumentParser(prog="tools/catalogue.py", description="Build the shipped catalogue.")
    commands = top.add_subparsers(required=True)
    command = commands.add_parser("add", help="add or update a row from a config file, a folder or a hub id")
    command.add_argument("model")
    command.add_argument("--id", help="org/name of the row (default: the model)")
    command.add_argument("--source", help="where the facts come from")
    command.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    command.add_argument("--quantization", help=f"the {QUANT_FILE}, where it is not beside the config")
    command.add_argument("--revision", default="main", help="hub revision")
    command.set_defaults(run=add)
    command = commands.add_parser("remove", help="remove a row")
    command.add_argument("id")
    command.set_defaults(run=remove)
    command = commands.add_parser("alias", help="add or update another name of a row")
    command.add_argument("alias")
    command.add_argument("id")
    command.add_argument("--patch", help="JSON object: config fields that differ; null removes a field")
    command.set_defaults(run=alias)
    commands.add_parser("names", help="rebuild names.json and quantised.jsonl").set_defaults(run=names)
    commands.add_parser("check", help="check rows, names and order").set_defaults(run=check)
    return top


def main() -> int:
    """Run one command; return the exit code."""
    options = parser().parse_args()
    try:
        options.run(options)
    except (CatalogueError, ReductionError, KvgaugeError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
