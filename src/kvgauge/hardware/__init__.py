"""Accelerators: the shipped catalogue, names as people and tools write them, own files, this machine.

Start with ``parse_gpu("8 x H100")``, ``parse_memory("80GiB:2")``, ``read_gpu_file(path)``; each gives
``Accelerator`` objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.hardware.accelerators import (
    Accelerator,
    Figure,
    Link,
    MemoryRange,
    Price,
    Tflops,
    accelerator,
    all_accelerators,
    of_memory,
)
from kvgauge.hardware.names import matches, parse_gpu, parse_memory

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "Accelerator",
    "Figure",
    "Link",
    "MemoryRange",
    "Price",
    "Tflops",
    "accelerator",
    "all_accelerators",
    "matches",
    "of_memory",
    "parse_gpu",
    "parse_memory",
    "read_gpu_file",
]


def read_gpu_file(path: str | Path) -> tuple[Accelerator, ...]:
    """Return the devices of an own file; see ``hardware.files``."""
    from kvgauge.hardware import files  # noqa: PLC0415 - most runs name a device of the catalogue

    return files.read_gpu_file(path)
