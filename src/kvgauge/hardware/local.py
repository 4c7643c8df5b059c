"""The devices of this machine, asked for by ``--gpu local`` alone.

The makers' own tools are run, nothing is imported: nvidia-smi, then rocm-smi, on a Mac sysctl. Their answer
is bounded in time and size, and a device that no row of the catalogue fits is known by its memory.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.hardware.accelerators import Accelerator, Figure, MemoryRange, accelerator
from kvgauge.hardware.names import MAX_COUNT, matches
from kvgauge.units import GIB, MIB

TIMEOUT_SECONDS = 10
MAX_ANSWER = 1 << 20
#: A form fits where its memory is that near to what the tool says.
_NEAR = 0.12

_HINT = "name it: --gpu NAME, or --memory 80GiB; 'kvgauge gpus' lists what is known"


class Found(NamedTuple):
    """A device as a tool reports it.

    Args:
        total_bytes: the tool's total, of which the driver keeps a part (nvidia-smi), or all memory (Mac).
    """

    name: str
    total_bytes: int


def parse_nvidia_smi(text: str) -> list[Found]:
    """Read ``nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits``.

    >>> parse_nvidia_smi("NVIDIA H100 80GB HBM3, 81559")[0].total_bytes >> 20
    81559
    """
    found = []
    for line in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(line) == 2 and re.fullmatch(r"\d{1,9}", line[1].strip()):
            found.append(Found(line[0].strip(), int(line[1]) * MIB))
    return found


def parse_rocm_smi(text: str) -> list[Found]:
    """Read ``rocm-smi --showproductname --showmeminfo vram --json``."""
    start = text.find("{")
    try:
        cards = json.loads(text[start:]) if start >= 0 else {}
    except (ValueError, RecursionError):
        return []
    found = []
    for card in cards.values() if isinstance(cards, dict) else ():
        fields = {str(k).lower(): str(v) for k, v in card.items()} if isinstance(card, dict) else {}
        total = fields.get("vram total memory (b)", "")
        names = (fields.get(key, "") for key in ("card series", "card model", "device name"))
        name = next((one for one in names if one and not one.startswith("0x") and one != "N/A"), "")
        if re.fullmatch(r"\d{1,16}", total):
            found.append(Found(name or fields.get("gfx version", ""), int(total)))
    return found


def parse_sysctl(text: str) -> list[Found]:
    r"""Read ``sysctl -n machdep.cpu.brand_string hw.memsize`` of a Mac with Apple silicon.

    >>> parse_sysctl("Apple M3 Max\n68719476736\n")[0].total_bytes >> 30
    64
    """
    lines = text.split("\n")
    if len(lines) > 1 and lines[0].startswith("Apple M") and re.fullmatch(r"\d{1,16}", lines[1].strip()):
        return [Found(f"{lines[0].strip()} {int(lines[1]) // GIB}GB", int(lines[1]))]
    return []


_TOOLS: tuple[tuple[tuple[str, ...], Callable[[str], list[Found]]], ...] = (
    (("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"), parse_nvidia_smi),
    (("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json"), parse_rocm_smi),
)
_MAC = (("sysctl", "-n", "machdep.cpu.brand_string", "hw.memsize"), parse_sysctl)


def local_gpus() -> tuple[tuple[Accelerator, int], ...]:
    """Return the kinds of devices of this machine, and how many of each, in the order of the tool.

    Raises:
        FeatureUnsupportedError: no tool is here, or none of them shows a device.
    """
    tried = []
    for command, parse in (*_TOOLS, _MAC) if sys.platform == "darwin" else _TOOLS:
        program = shutil.which(command[0])
        if program is None:
            continue
        answer, why = _run((program, *command[1:]))
        found = parse(answer)[:MAX_COUNT]
        if found:
            return tuple((device(one), count) for one, count in Counter(found).items())
        tried.append(f"{command[0]} {why or 'shows no device'}")
    if tried:
        raise FeatureUnsupportedError(
            f"the devices of this machine are not known: {'; '.join(tried)}", hint=_HINT, field="gpu"
        )
    raise FeatureUnsupportedError(
        "the devices of this machine are not known: neither nvidia-smi nor rocm-smi is here",
        hint=_HINT,
        field="gpu",
    )


def local_gpu() -> tuple[Accelerator, int]:
    """Return the one kind of device of this machine, and how many.

    Raises:
        InvalidRequestError: there are several kinds.
    """
    kinds = local_gpus()
    if len(kinds) > 1:
        names = ", ".join(f"{one.name}:{count}" for one, count in kinds[:6])
        raise InvalidRequestError(
            f"this machine has several kinds of devices: {names}",
            hint="name one of them: --gpu NAME:COUNT",
            field="gpu",
        )
    return kinds[0]


def _run(command: tuple[str, ...]) -> tuple[str, str]:
    """Return what a tool prints, and why it is no answer."""
    try:
        done = subprocess.run(  # noqa: S603 - the makers' own tools, by their fixed names
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return "", f"gave no answer in {TIMEOUT_SECONDS} s"
    except OSError:
        return "", "can't be run"
    if done.returncode:
        return "", f"ended with code {done.returncode}"
    return done.stdout[:MAX_ANSWER].decode("utf-8", "replace"), ""


def device(found: Found) -> Accelerator:
    """Return the row that a reported device fits, with the total as reported; else its memory alone."""
    with_size = f"{found.name} {round(found.total_bytes / GIB)}GB"
    known = (*matches(found.name), *matches(with_size))
    fitting = [row for row in map(accelerator, known) if _is_near(row, found.total_bytes)]
    total = Figure(found.total_bytes, "measured", "this machine")
    if not fitting:
        name = found.name[:80] or "device"
        return Accelerator("", name, _below(found.total_bytes), label_bytes=None, smi_total=total)
    row = min(fitting, key=lambda row: abs(_expected(row) - found.total_bytes))
    return row if row.unified else replace(row, smi_total=total)


def _expected(row: Accelerator) -> float:
    if row.smi_total is not None and row.unified is None:
        return row.smi_total.value
    return float(row.label_bytes or row.memory_bytes)


def _is_near(row: Accelerator, total_bytes: int) -> bool:
    expected: Iterable[float] = (_expected(row), float(row.memory_bytes))
    return any(abs(size - total_bytes) <= _NEAR * total_bytes for size in expected)


def _below(total_bytes: int) -> MemoryRange:
    """What a runtime reports of a total that is all that is known: 0.2 GiB to 0.6 GiB and 0.35 % less."""
    low = max(1, total_bytes - int(0.6 * GIB + 0.0035 * total_bytes))
    central = max(low, total_bytes - int(0.4 * GIB + 0.0015 * total_bytes))
    return MemoryRange(
        low, central, total_bytes, "assumed", "rule: the tool's total less what a driver keeps"
    )
