"""Where a model's weight files are. Nothing is looked at until they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from kvgauge.errors import DamagedFileError, KvgaugeError

if TYPE_CHECKING:
    from kvgauge.sources.names import HubName
    from kvgauge.sources.safetensors import Checkpoint

#: Called with (files read, files); what it shows is the caller's.
Progress = Callable[[int, int], None]

#: Headers of a split model on a hub: files at once, and seconds for all of them.
NUM_THREADS, WITHIN_S = 8, 90.0
_POINTER = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class FoundWeights:
    """What the weight files beside a config say.

    Args:
        kind: ``safetensors``: headers of all files. ``index``: the total that an index states. ``bin``: the
            total of files that are not opened. ``unread``: there are files, and nothing is known of them.
        total_bytes: of all tensors; None where nobody says.
        checkpoint: the headers.
        files: where the figure comes from.
        missing: files of the set that are not there.
        duplicates: files that hold the same weights again, which are not counted.
        beside: weight files that belong to no set, which are not counted.
        failure: why headers could not be read, in words.
    """

    kind: Literal["safetensors", "index", "bin", "unread"]
    total_bytes: int | None = None
    checkpoint: Checkpoint | None = None
    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    failure: str = ""


class Files(NamedTuple):
    """Files of a repository.

    Args:
        sizes: name -> bytes, None where they are not told.
        is_complete: whether there are no others.
    """

    sizes: Mapping[str, int | None]
    is_complete: bool = True


class WeightFiles(Protocol):
    """Weight files that may be read."""

    def read(self, progress: Progress | None = None) -> FoundWeights | None:
        """Return what they say, or None where there are none.

        Raises:
            DamagedFileError: the file that the user named is damaged.
        """


@dataclass(frozen=True, slots=True)
class LocalWeights:
    """Weight files of a folder.

    Args:
        named: the file that the user gave, "" for whatever is there.
    """

    folder: Path
    named: str = ""

    def read(self, progress: Progress | None = None) -> FoundWeights | None:
        """Return what the folder's weight files say; see ``WeightFiles``."""
        from kvgauge.sources.weight_sets import Access, find_weights  # noqa: PLC0415 - few ask for it

        found = find_weights(Files(self._names()), Access(self._open, progress=progress), self.named)
        gguf = () if found is not None else self._gguf()
        return FoundWeights("unread", beside=gguf) if gguf else found

    def _gguf(self) -> tuple[str, ...]:
        """Return the GGUF files of a folder without other weights; no config says which one is meant."""
        try:
            names = [path.name for path in self.folder.iterdir() if path.suffix.lower() == ".gguf"]
        except OSError:
            return ()
        return tuple(sorted(name for name in names if not self._is_pointer(name)))

    def _names(self) -> dict[str, int | None]:
        """Return the files that are really there: a pointer of Git LFS stands for one that is not."""
        names: dict[str, int | None] = {}
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith((".safetensors", ".json", ".bin", ".pth")) and entry.is_file():
                        names[entry.name] = entry.stat().st_size
        except OSError:
            return {}
        small = [name for name, size in names.items() if size is not None and size < 1024]
        for name in small:
            if not name.endswith(".json") and self._is_pointer(name):
                del names[name]
        return names

    def _is_pointer(self, name: str) -> bool:
        try:
            with (self.folder / name).open("rb") as stream:
                return stream.read(len(_POINTER)) == _POINTER
        except OSError:
            return False

    def _open(self, name: str) -> _Opened:
        return _Opened(self.folder / name)


class _Opened:
    """A local file, read by ranges; one that can't be read is damaged, in words."""

    def __init__(self, path: Path) -> None:
        from kvgauge.sources.gguf_local import LocalFile  # noqa: PLC0415

        try:
            self._file = LocalFile(path)
        except OSError as error:
            raise _unreadable(path, error) from None
        self._path, self.size = path, self._file.size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``; fewer where the file ends."""
        try:
            return self._file.read(offset, length)
        except OSError as error:
            raise _unreadable(self._path, error) from None


def _unreadable(path: Path, error: OSError) -> DamagedFileError:
    reason = (error.strerror or "not readable").lower()
    return DamagedFileError(
        f"{path.name} can't be read: {reason}", hint="check its permissions", field=str(path)
    )


@dataclass(frozen=True, slots=True)
class HubWeights:
    """Weight files of a repository on a hub: those of the local cache, else the hub's, by ranges of headers.

    What the hub said of a commit is kept: an answer is the same next time, and needs no network.

    Args:
        name: the repository; its revision is the resolved commit where that is known.
        snapshot: the folder of the local cache, or None.
        offline: what is not in the cache is not asked for.
        refresh: the hub is asked, whatever it said before.
    """

    name: HubName
    snapshot: Path | None = None
    offline: bool = False
    refresh: bool = False

    def read(self, progress: Progress | None = None) -> FoundWeights | None:
        """Return what the cached or the remote weight files say; see ``WeightFiles``."""
        cached = None if self.snapshot is None else LocalWeights(self.snapshot).read(progress)
        if cached is not None and cached.checkpoint is not None:
            return cached
        remote = self._remembered(progress)
        if remote is None or (remote.kind == "unread" and cached is not None):
            return cached
        return remote

    def _remembered(self, progress: Progress | None) -> FoundWeights | None:
        """Return what the hub says of this commit, or said when it was asked before."""
        if self.snapshot is None:
            return None if self.offline else self._remote(progress)
        from kvgauge.sources.weight_memory import NotKeptError, keep, kept  # noqa: PLC0415

        file = self.snapshot.parent.parent / ".kvgauge" / f"{self.snapshot.name}.json.z"
        try:
            if not self.refresh:
                return kept(file)
        except NotKeptError:
            if self.offline:
                return None
        found = self._remote(progress)
        keep(file, found)
        return found

    def _remote(self, progress: Progress | None) -> FoundWeights | None:
        from kvgauge.sources.online import connect  # noqa: PLC0415 - what is at hand needs no network
        from kvgauge.sources.weight_sets import Access, find_weights  # noqa: PLC0415

        try:
            repository = connect(self.name)
            files = repository.files()
            return find_weights(files, Access(repository.open, NUM_THREADS, WITHIN_S, progress))
        except KvgaugeError as error:
            return FoundWeights("unread", failure=error.message)
