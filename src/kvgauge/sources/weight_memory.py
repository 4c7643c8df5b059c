"""What a hub's weight files said of a commit, kept beside the hub's cache: it is asked once.

``models--org--name/.kvgauge/COMMIT.json.z``: a folder that the hub's own library passes over, and removes
with the repository. A file that is damaged, or that another version wrote, is as good as none.
"""

from __future__ import annotations

import json
import math
import zlib
from pathlib import Path
from typing import cast

from kvgauge.sources.hub_cache import write_whole
from kvgauge.sources.safetensors import DTYPE_BITS, MAX_DIMENSIONS, Checkpoint, TensorInfo
from kvgauge.sources.weight_files import FoundWeights

_VERSION = 1
_KINDS = ("safetensors", "index", "bin")
#: 300,000 tensors under long names.
_MAX_BYTES = 64 << 20
_LISTS = ("files", "missing", "duplicates", "beside")


class NotKeptError(Exception):
    """Nothing is known of this commit."""


def keep(file: Path, found: FoundWeights | None) -> None:
    """Keep what was found, the absence of weights included; a failure is not kept."""
    if found is not None and (found.failure or found.kind not in _KINDS):
        return
    data = zlib.compress(json.dumps([_VERSION, None if found is None else _row(found)]).encode(), 1)
    try:
        write_whole(file, data)
    except OSError:
        return


def kept(file: Path) -> FoundWeights | None:
    """Return what was kept; None: there are no weight files.

    Raises:
        NotKeptError: nothing was, or it can't be read.
    """
    try:
        with file.open("rb") as stream:
            packed = stream.read(_MAX_BYTES)
        data = zlib.decompressobj().decompress(packed, _MAX_BYTES)
        version, row = json.loads(data)
        if version != _VERSION:
            raise NotKeptError
        return None if row is None else _found(row)
    except (OSError, zlib.error, ValueError, TypeError, KeyError, RecursionError):
        raise NotKeptError from None


def _row(found: FoundWeights) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(found, name) for name in (*_LISTS, "kind", "total_bytes")}
    if found.checkpoint is not None:
        row["tensors"] = [(t.name, t.dtype, t.shape) for t in found.checkpoint.tensors]
    return row


def _found(row: dict[str, object]) -> FoundWeights:
    kind, total = row["kind"], row["total_bytes"]
    lists = {name: tuple(map(str, cast("list[object]", row[name]))) for name in _LISTS}
    if kind not in _KINDS or not (total is None or type(total) is int):
        raise ValueError
    checkpoint = None
    if kind == "safetensors":
        tensors = tuple(_tensor(*entry) for entry in cast("list[list[object]]", row["tensors"]))
        checkpoint = Checkpoint(tensors, lists["files"], {})
        total = checkpoint.num_bytes
    return FoundWeights(kind, total, checkpoint, **lists)  # type: ignore[arg-type]


def _tensor(name: object, dtype: object, shape: object) -> TensorInfo:
    if not isinstance(name, str) or not isinstance(dtype, str) or not isinstance(shape, list):
        raise TypeError
    if len(shape) > MAX_DIMENSIONS or not all(type(dim) is int and 0 <= dim < 1 << 63 for dim in shape):
        raise ValueError
    return TensorInfo(name, dtype, tuple(shape), math.prod(shape) * DTYPE_BITS[dtype] // 8)
