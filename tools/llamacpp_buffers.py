"""Hold llama.cpp's working buffers against recorded ones, in and outside the repository.

Run: ``python tools/llamacpp_buffers.py check [FILE]`` with ``tests/golden/llamacpp_v0.5.0_buffers.jsonl``
as the file unless another of its form is given. It prints one line an architecture and fails where a buffer
lies outside its range.

``... left-out`` prints, for every architecture with several models, how far each model is off from graphs
that were recorded from shapes drawn at random alone: no model of the file was seen when the tapes were
recorded.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kvgauge.engines.llamacpp import LlamaSettings, plan
from kvgauge.readers.gguf import read_metadata

FILE = Path(__file__).parent.parent / "tests" / "golden" / "llamacpp_v0.5.0_buffers.jsonl"
_FLASH = {1: "on", 0: "off", -1: "auto"}
_PLAYED = "blocks of"
#: Part of a size that counts as exact: tensors of rotations and indices that the tapes round.
_EXACT = 1e-4


@dataclass(frozen=True, slots=True)
class Held:
    """One recorded buffer beside ours."""

    architecture: str
    model: str
    error_fraction: float
    in_range: bool
    played: bool


def settings_of(row: list[object]) -> LlamaSettings:
    """Return the settings of a row; ``tests/test_llamacpp_plans.py`` names its fields."""
    context, batch, micro, sequences, k, v, flash, full, unified, outputs, snapshots, offload, gpus = row
    numbers = [int(str(n)) for n in (context, batch, micro, sequences, outputs, snapshots, gpus, flash)]
    return LlamaSettings(
        context_tokens=numbers[0],
        batch_tokens=numbers[1],
        micro_batch_tokens=numbers[2],
        sequences=numbers[3],
        k_type=str(k),
        v_type=str(v),
        flash=_FLASH[numbers[7]],
        full_windows=bool(full),
        unified=bool(unified),
        outputs=numbers[4],
        rollback_tokens=numbers[5],
        offload_cache=bool(offload),
        num_gpus=numbers[6],
    )


def held(path: Path) -> Iterator[Held]:
    """Yield every recorded buffer of a file."""
    first, *models = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    for model in models:
        name = model["architecture"]
        keys = {f"{name}.{key}": value for key, value in model["keys"].items()}
        architecture = read_metadata({"general.architecture": name, **keys})
        for index, row in enumerate(first["settings"]):
            wanted = {place: model[place][index : index + 1] for place in ("device", "host")}
            if not any(sum(sizes) for sizes in wanted.values()):
                continue
            parts = [a for a in plan(architecture, settings_of(row)).allocations if a.name == "compute"]
            for place, sizes in wanted.items():
                for true in filter(None, sizes):
                    part = next(p for p in parts if (p.place == "host") == (place == "host"))
                    error = part.bytes / true - 1
                    in_range = part.low <= true <= part.high
                    yield Held(name, model["model"], error, in_range, _PLAYED in part.because)


def _line(name: str, rows: list[Held]) -> str:
    errors = [abs(row.error_fraction) for row in rows]
    exact = sum(error <= _EXACT for error in errors)
    return (
        f"{name:42} n {len(rows):5}  played {sum(r.played for r in rows):5}  exact {exact:5}  "
        f"median {statistics.median(errors):7.3%}  worst {max(errors):6.1%}  "
        f"in range {sum(r.in_range for r in rows):5}"
    )


def _grouped(rows: list[Held], *, by_model: bool) -> dict[str, list[Held]]:
    groups: dict[str, list[Held]] = defaultdict(list)
    for row in rows:
        groups[f"{row.architecture} {row.model}" if by_model else row.architecture].append(row)
    return dict(sorted(groups.items()))


def main(arguments: list[str]) -> int:
    """Print the table; 1 where a buffer lies outside its range."""
    command, *paths = arguments or ["check"]
    rows = list(held(Path(paths[0]) if paths else FILE))
    by_model = command == "left-out"
    models = defaultdict(set)
    for row in rows:
        models[row.architecture].add(row.model)
    shown = [row for row in rows if not by_model or len(models[row.architecture]) > 1]
    for name, members in _grouped([r for r in shown if r.played or not by_model], by_model=by_model).items():
        print(_line(name, members))
    print(_line("all", rows))
    return int(any(not row.in_range for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
