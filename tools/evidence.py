"""Rebuild ``evidence.jsonl`` and ``evidence_models.jsonl`` in ``src/kvgauge/data``, and the docs' tables.

``evidence_rows.jsonl`` has one recorded measurement a line, with its source, in the fields that
``docs/accuracy.md`` describes; ``evidence_models.jsonl`` configs that records are tied to and the
catalogue lacks.
Every row is checked: its fields are known, its quantities are, its model is found.

Run: ``python tools/evidence.py``, with ``--check`` to compare only. Nothing else is needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvgauge.render.accuracy import markdown_of
from kvgauge.render.messages import Texts
from kvgauge.render.view import View
from kvgauge.replay.records import QUANTITIES
from kvgauge.replay.replaying import accuracy

TOOLS = Path(__file__).parent
DATA = TOOLS.parent / "src/kvgauge/data"
DOCUMENT = TOOLS.parent / "docs/accuracy.md"
MARK = "<!-- {} -->"

#: Fields of a row: what a replay reads, and where the row is from.
TEXTS = frozenset(
    [
        "id",
        "source",
        "engine",
        "engine_version",
        "engine_version_by_date",
        "date",
        "model",
        "quantization",
        "quant",
        "dtype",
        "gpu",
        "config_ref",
        "config_basis",
        "engine_args",
        "kv_dtype",
        "k_type",
        "v_type",
        "flash_attn",
    ]
)
NUMBERS = frozenset(
    [
        "gpu_count",
        "tp",
        "total_gpu_gib",
        "gpu_memory_utilization",
        "weights_gib",
        "weights_gb",
        "kv_available_gib",
        "kv_tokens",
        "gpu_blocks",
        "max_concurrency",
        "kv_needed_gib",
        "activation_peak_gib",
        "non_torch_gib",
        "graph_gib",
        "tokens",
        "kv_gb",
        "k_gb",
        "v_gb",
        "conv_gb",
        "ssm_gb",
        "mamba_cache_size",
        "avail_mem_before_load_gb",
        "avail_mem_after_load_gb",
        "blocks",
        "tokens_per_block",
        "kv_gib",
        "kv_bytes",
        "context",
        "n_seq_max",
        "n_stream",
        "rs_seqs",
        "cells",
        "kv_layers",
        "kv_mib",
        "k_mib",
        "v_mib",
        "swa_kv_mib",
        "rs_mib",
    ]
)
LISTS = frozenset(("usable_for", "soft_for", "assumed", "doubts"))
OBJECTS = frozenset(("extra", "hparams", "gguf_metadata", "compute_mib", "model_buffer_mib"))
BASES = ("same", "sibling", "log", "inferred")


def rows() -> Iterator[dict[str, Any]]:
    """Yield the authored rows, checked."""
    seen: set[str] = set()
    for number, line in enumerate(
        (TOOLS / "evidence_rows.jsonl").read_text(encoding="utf-8").splitlines(), 1
    ):
        row = json.loads(line)
        problem = _problem(row, seen)
        if problem:
            raise SystemExit(f"evidence_rows.jsonl, line {number}: {problem}")
        seen.add(row["id"])
        yield row


def _problem(row: dict[str, Any], seen: set[str]) -> str:
    for name, value in row.items():
        is_kind = (
            isinstance(value, str) if name in TEXTS
            else isinstance(value, int | float) and not isinstance(value, bool) if name in NUMBERS
            else isinstance(value, list) if name in LISTS
            else isinstance(value, dict) if name in OBJECTS
            else name == "soft" and value is True
        )  # fmt: skip
        if not is_kind:
            return f"{name} is not a field, or {value!r} not its kind"
    if row["id"] in seen:
        return f"{row['id']} is there twice"
    if not row.get("usable_for") or set(row["usable_for"]) - set(QUANTITIES):
        return f"{row.get('usable_for')} are not quantities"
    if row.get("config_basis", "same") not in BASES or not row.get("source"):
        return "config_basis or source"
    return ""


def built() -> dict[Path, str]:
    """Return the data files."""
    lines = "".join(
        json.dumps(dict(sorted(row.items(), key=_place)), ensure_ascii=False, separators=(",", ":")) + "\n"
        for row in rows()
    )
    models = (TOOLS / "evidence_models.jsonl").read_text(encoding="utf-8")
    return {DATA / "evidence.jsonl": lines, DATA / "evidence_models.jsonl": models}


def _place(pair: tuple[str, object]) -> tuple[int, str]:
    first = ("id", "source", "engine", "engine_version", "model", "config_ref", "engine_args", "usable_for")
    return (first.index(pair[0]) if pair[0] in first else len(first), pair[0])


def document(text: str) -> str:
    """Return the document with its tables made anew."""
    tables = markdown_of(accuracy(), View(Texts("en"), "gib", 120))
    for name, table in tables.items():
        start, end = MARK.format(name), MARK.format(f"end {name}")
        before, _, rest = text.partition(start)
        after = rest.partition(end)[2]
        text = f"{before}{start}\n\n{table}\n{end}{after}"
    return text


def main() -> None:
    """Write what differs, or say so."""
    check = "--check" in sys.argv[1:]
    stale = [_kept(path, text, check=check) for path, text in built().items()]
    stale.append(_kept(DOCUMENT, document(DOCUMENT.read_text(encoding="utf-8")), check=check))
    if check and any(stale):
        raise SystemExit("stale: run python tools/evidence.py")


def _kept(path: Path, text: str, *, check: bool) -> bool:
    same = path.is_file() and path.read_text(encoding="utf-8") == text
    if not same and not check:
        path.write_text(text, encoding="utf-8")
    return not same


if __name__ == "__main__":
    main()
