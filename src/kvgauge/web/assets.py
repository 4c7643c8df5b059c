"""The page's files, read once from the package: an address can name these and nothing else."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "static"
_INDEX = "index.html"
#: Kinds of files that become smaller.
_TEXT = ("text/", "application/javascript", "application/json", "image/svg+xml", "application/manifest+json")
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".html": "text/html",
          ".svg": "image/svg+xml", ".json": "application/json", ".webmanifest": "application/manifest+json",
          ".woff2": "font/woff2", ".png": "image/png", ".ico": "image/x-icon"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the page."""

    data: bytes
    zipped: bytes | None
    media_type: str
    etag: str


class Assets:
    """All files of the page, by their address."""

    def __init__(self, folder: Path = _FOLDER) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): _read(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix != ".py"
        }

    def find(self, path: str) -> Asset | None:
        """Return the file of an address; the page itself for every view of it."""
        name = path.strip("/")
        found = self._files.get(name)
        is_view = "." not in name.rpartition("/")[2]
        return found or (self._files.get(_INDEX) if is_view else None)


def _read(path: Path) -> Asset:
    data = path.read_bytes()
    guessed = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    is_text = guessed.startswith(_TEXT)
    zipped = gzip.compress(data, 9, mtime=0) if is_text else None
    etag = f'"{hashlib.sha256(data).hexdigest()[:20]}"'
    media_type = f"{guessed}; charset=utf-8" if guessed.startswith("text/") else guessed
    return Asset(data, zipped if zipped is not None and len(zipped) < len(data) else None, media_type, etag)
