"""The hub's local cache, in the layout that ``huggingface_hub`` documents and shares between programs.

``models--org--name/refs/REVISION`` holds a commit, ``snapshots/COMMIT/FILE`` points to ``blobs/ETAG``, and
``.no_exist/COMMIT/FILE`` marks a file that the repository does not have.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from kvgauge.errors import DamagedFileError
from kvgauge.sources import RawModel
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, parse_object
from kvgauge.sources.names import HubName

CONFIG_FILE, QUANT_FILE = "config.json", "hf_quant_config.json"
DEFAULT_REVISION = "main"

_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_ETAG = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,199}", re.ASCII)


def is_commit(text: str | None) -> bool:
    """Whether a text is a full commit hash."""
    return text is not None and _COMMIT.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class HubCache:
    """The cached part of one repository.

    Args:
        root: the cache's folder (``HF_HUB_CACHE``).
        repo: ``org/name``.
    """

    root: Path
    repo: str

    @property
    def folder(self) -> Path:
        """The repository's folder."""
        return self.root / ("models--" + self.repo.replace("/", "--"))

    def commit(self, revision: str) -> str | None:
        """Return the commit that a revision stood for when it was last fetched."""
        if is_commit(revision):
            return revision
        try:
            text = (self.folder / "refs" / revision).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return None
        return text if is_commit(text) else None

    def find(self, commit: str, file: str) -> Path | None:
        """Return a cached file of a commit."""
        path = self.folder / "snapshots" / commit / file
        return path if path.is_file() else None

    def has_blob(self, etag: str | None) -> bool:
        """Whether the content of an etag is there already."""
        return etag is not None and bool(_ETAG.fullmatch(etag)) and (self.folder / "blobs" / etag).is_file()

    def store(self, commit: str, file: str, etag: str | None, data: bytes) -> None:
        """Keep a file; a cache that can't be written is left alone."""
        if not is_commit(commit) or etag is None or not _ETAG.fullmatch(etag):
            return
        blob = self.folder / "blobs" / etag
        try:
            if not blob.is_file():
                write_whole(blob, data)
            self._link(commit, file, blob)
        except OSError:
            return

    def link(self, commit: str, file: str, etag: str) -> Path | None:
        """Give a commit a file whose content is there already; return it."""
        try:
            self._link(commit, file, self.folder / "blobs" / etag)
        except OSError:
            return None
        return self.find(commit, file)

    def mark_missing(self, commit: str, file: str) -> None:
        """Remember that a commit has no such file."""
        try:
            marker = self.folder / ".no_exist" / commit / file
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
        except OSError:
            return

    def point(self, revision: str, commit: str) -> None:
        """Remember which commit a branch or tag stands for."""
        if is_commit(revision) or self.commit(revision) == commit:
            return
        try:
            write_whole(self.folder / "refs" / revision, commit.encode("ascii"))
        except OSError:
            return

    def _link(self, commit: str, file: str, blob: Path) -> None:
        path = self.folder / "snapshots" / commit / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            return
        try:
            path.symlink_to(os.path.relpath(blob, path.parent))
        except FileExistsError:
            return
        except (OSError, NotImplementedError):  # a file system without links
            write_whole(path, blob.read_bytes())


def this_cache(repo: str) -> HubCache:
    """Return the cached part of a repository, where this machine's settings put it."""
    from huggingface_hub import constants  # noqa: PLC0415 - only a name on the hub needs it

    return HubCache(Path(constants.HF_HUB_CACHE).expanduser(), repo)


def keeps_offline(*, offline: bool) -> str:
    """Return what keeps off the network: the option, a variable of the hub, or "" for nothing."""
    from huggingface_hub import constants  # noqa: PLC0415 - as above

    return "--offline" if offline else "HF_HUB_OFFLINE" if constants.HF_HUB_OFFLINE else ""


def cached_config(name: HubName) -> RawModel | None:
    """Return what the local cache holds of a model, or None.

    A cache that holds the config alone is believed: no request is made for a file beside it.

    Raises:
        DamagedFileError: the cached file is not a config.
    """
    cache = this_cache(name.id)
    commit = cache.commit(name.revision or DEFAULT_REVISION)
    config = cache.find(commit, CONFIG_FILE) if commit else None
    if commit is None or config is None:
        return None
    side = cache.find(commit, QUANT_FILE)
    quantization = None if side is None else parse_object(read_small(side), f"{name.id}/{QUANT_FILE}")
    parsed = parse_object(read_small(config), f"{name.id}/{CONFIG_FILE}")
    return RawModel(name.id, "hub", parsed, commit, quantization, provenance=f"local cache, {commit[:12]}")


def read_small(path: Path) -> bytes:
    """Return a cached file, cut off behind the most that a config may have."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "not readable").lower()
        raise DamagedFileError(
            f"{path} can't be read: {reason}",
            hint="check its permissions, or ask with --refresh",
            field=str(path),
        ) from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    import tempfile  # noqa: PLC0415 - a cache is mostly read

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, suffix=".incomplete")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
        Path(name).chmod(0o644)  # a cache may be shared
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
