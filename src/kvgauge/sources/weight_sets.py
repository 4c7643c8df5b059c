"""Which of a folder's files hold its weights, each tensor once, and what their headers say.

A folder may hold the same weights several times: Mistral's ``consolidated`` files beside the sharded set,
``model.safetensors`` beside an index, ``pytorch_model`` beside both. One set is taken, by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kvgauge.errors import DamagedFileError, KvgaugeError, NetworkError
from kvgauge.sources.parallel import map_threads
from kvgauge.sources.safetensors import (
    MAX_FILES,
    ByteRanges,
    Checkpoint,
    Index,
    joined,
    read_header,
    read_whole_index,
)
from kvgauge.sources.weight_files import Files, FoundWeights, Progress

SAFETENSORS, INDEX = ".safetensors", ".safetensors.index.json"
BIN_INDEX = "pytorch_model.bin.index.json"
#: The largest index is some 10 MB (90,000 tensors).
MAX_INDEX_BYTES = 64 << 20

_SPLIT = re.compile(r"(?P<stem>.+?)-(?P<number>\d{1,6})-of-(?P<count>\d{1,6})\.safetensors", re.ASCII)
_BIN = re.compile(r"pytorch_model(-\d{1,6}-of-\d{1,6})?\.bin|consolidated(\.\d{1,3})?\.pth", re.ASCII)
#: Beside a language model lie files that are no part of it.
_OTHER_MODELS = re.compile(
    r"(adapters?|adapter_model|diffusion_pytorch_model|optimizer|scheduler|tokenizer|lora)\b", re.ASCII
)
#: What holds the same weights again: another layout, another precision of ``model``.
_AGAIN = re.compile(
    r"(consolidated|pytorch_model)\b.*|model([.-](fp16|bf16|fp32|int8|fp8))?(-\d{1,6}-of-\d{1,6})?\.safetensors",
    re.ASCII,
)

#: Names of a folder -> bytes, None where they are not told.
Names = Mapping[str, int | None]
OpenFile = Callable[[str], ByteRanges]


@dataclass(frozen=True, slots=True)
class Access:
    """How a folder's files are read.

    Args:
        open_file: opens a file by its bare name.
        num_threads: files read at once.
        within_s: seconds for all headers together.
        progress: called with (files read, files).
    """

    open_file: OpenFile
    num_threads: int = 1
    within_s: float = 3600.0
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class _Set:
    """One set of safetensors files: what an index names, or ``files``."""

    files: tuple[str, ...]
    index: str = ""
    count: int = 0

    @property
    def stem(self) -> str:
        """What the names begin with."""
        return _stem(self.index or self.files[0])

    @property
    def rank(self) -> tuple[int, str]:
        """Sets of a lower rank are taken first."""
        order = (
            (self.stem == "model" and bool(self.index), 0),
            (self.stem == "model" and not self.count, 1),
            (self.stem == "model", 2),
            (self.stem != "consolidated" and bool(self.index), 3),
            (self.stem == "consolidated" and bool(self.index), 5),
            (self.stem == "consolidated", 6),
        )
        return next((rank for holds, rank in order if holds), 4), self.index or self.files[0]


def find_weights(files: Files, access: Access, named: str = "") -> FoundWeights | None:
    """Return what the weight files of a folder say, or None where it holds none.

    Args:
        files: those that are there.
        named: the file that the user gave; its set is read, and damage is raised.

    Raises:
        DamagedFileError: the named file can't be read.
    """
    sets = _sets(files.sizes)
    chosen = next((one for one in sets if named and named in (one.index, *one.files)), None)
    if chosen is None and sets and not named:
        chosen = _first(sets)
    if chosen is None:
        return _bin_total(files.sizes, access)
    try:
        return _read_set(chosen, files, access, strict=bool(named))
    except KvgaugeError as error:
        if named:
            raise
        return FoundWeights("unread", failure=error.message, files=(chosen.index or chosen.files[0],))


def is_other_model(name: str) -> bool:
    """Whether a weight file is, by its name, no language model: an adapter, a scheduler, an optimizer."""
    return _OTHER_MODELS.match(name) is not None


def _sets(names: Names) -> list[_Set]:
    own = [name for name in names if "/" not in name and not is_other_model(name)]
    sets = [_Set((), name) for name in own if name.endswith(INDEX)]
    groups: dict[tuple[str, int], list[str]] = {}
    for name in sorted(own):
        if name.endswith(SAFETENSORS):
            split = _SPLIT.fullmatch(name)
            key = (split["stem"], int(split["count"])) if split else (name, 0)
            groups.setdefault(key, []).append(name)
    sets += [_Set(tuple(files), count=count) for (_, count), files in groups.items()]
    return sorted(sets, key=lambda one: one.rank)


def _first(sets: list[_Set]) -> _Set:
    """Return the set of the first rank; of files under names of their own, all together."""
    first = sets[0]
    alike = [one for one in sets if one.rank[0] == first.rank[0]]
    if first.rank[0] != 4 or len(alike) == 1:
        return first
    return _Set(tuple(sorted(file for one in alike for file in one.files)))


def _read_set(chosen: _Set, there: Files, access: Access, *, strict: bool) -> FoundWeights:
    names = there.sizes
    if not chosen.index:
        return _read_files(chosen, names, access)
    index = read_whole_index(_whole(access.open_file(chosen.index), chosen.index), chosen.index)
    files = tuple(sorted(set(index.file_of.values())))
    again, beside = _others(names, {*files, chosen.index})
    missing = tuple(file for file in files if file not in names) if there.is_complete else ()
    total = FoundWeights(
        "index", index.total_bytes, files=(chosen.index,), missing=missing, duplicates=again, beside=beside
    )
    if missing:
        return total
    try:
        found = _headers(files, access, index)
    except KvgaugeError as error:
        if strict:
            raise
        return FoundWeights(
            "index" if index.total_bytes else "unread", index.total_bytes, files=(chosen.index,),
            failure=error.message, duplicates=again, beside=beside,
        )  # fmt: skip
    return FoundWeights("safetensors", found.num_bytes, found, files, duplicates=again, beside=beside)


def _read_files(chosen: _Set, names: Names, access: Access) -> FoundWeights:
    again, beside = _others(names, set(chosen.files))
    if chosen.count > len(chosen.files):
        lost = f"{chosen.count - len(chosen.files)} of {chosen.count} files"
        return FoundWeights("unread", files=chosen.files, missing=(lost,), duplicates=again, beside=beside)
    found = _headers(chosen.files, access, None)
    return FoundWeights("safetensors", found.num_bytes, found, chosen.files, duplicates=again, beside=beside)


def _headers(files: tuple[str, ...], access: Access, index: Index | None) -> Checkpoint:
    if len(files) > MAX_FILES:
        raise DamagedFileError(
            f"the folder holds more than {MAX_FILES} weight files", hint="name one of them", field="MODEL"
        )

    def one(file: str) -> Checkpoint:
        return read_header(access.open_file(file), file)

    try:
        parts = map_threads(
            one, files, num_threads=access.num_threads, within_s=access.within_s, progress=access.progress
        )
    except TimeoutError:
        raise NetworkError(
            f"{len(files)} headers take more than {access.within_s:g} s", hint="try again"
        ) from None
    return joined(parts, None if index is None else index.file_of)


def _others(names: Names, taken: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the weight files that hold the same again, and those that hold something else."""
    files = sorted(
        name
        for name in names
        if "/" not in name
        and name not in taken
        and (name.endswith(SAFETENSORS) or _BIN.fullmatch(name))
        and not is_other_model(name)
    )
    again = tuple(name for name in files if _AGAIN.fullmatch(name))
    return again, tuple(name for name in files if name not in again)


def _bin_total(names: Names, access: Access) -> FoundWeights | None:
    """Return the total of files that are never opened: pickles, which may run code."""
    files = tuple(sorted(name for name in names if _BIN.fullmatch(name)))
    if BIN_INDEX in names:
        try:
            data = _whole(access.open_file(BIN_INDEX), BIN_INDEX)
            index = read_whole_index(data, BIN_INDEX, ".bin")
        except KvgaugeError as error:
            return FoundWeights("unread", failure=error.message, files=(BIN_INDEX,))
        if index.total_bytes is not None:
            return FoundWeights("bin", index.total_bytes, files=(BIN_INDEX,))
    kept = [name for name in files if name.endswith(".bin")] or files
    sizes = [names[name] for name in kept]
    if not sizes:
        return None
    known = [size for size in sizes if size is not None]
    return FoundWeights("bin", sum(known) if len(known) == len(sizes) else None, files=tuple(kept))


def _stem(name: str) -> str:
    split = _SPLIT.fullmatch(name)
    return split["stem"] if split else name.removesuffix(INDEX).removesuffix(SAFETENSORS)


def _whole(source: ByteRanges, name: str) -> bytes:
    if source.size > MAX_INDEX_BYTES:
        raise DamagedFileError(
            f"{name} is larger than {MAX_INDEX_BYTES >> 20} MiB", hint="fetch the file again", field=name
        )
    return source.read(0, source.size)
