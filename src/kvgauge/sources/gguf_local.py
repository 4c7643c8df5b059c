"""GGUF files on this machine: one file, a split set, the one model of a folder."""

from __future__ import annotations

import os
from pathlib import Path

from kvgauge.errors import DamagedFileError, InvalidRequestError, ModelNotFoundError
from kvgauge.sources import RawModel
from kvgauge.sources.gguf import GgufModel, read_model
from kvgauge.sources.gguf_split import SplitName

#: Projectors of images and sound lie beside the language model under such names.
_PROJECTOR = "mmproj"
_MAX_LISTED = 4


class LocalFile:
    """A regular file, read by ranges; nothing is held open between two of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.is_file():
            raise DamagedFileError(
                f"{path.name} is missing" if not path.exists() else f"{path.name} is not a regular file",
                hint="a split set is read when all of its files lie in one folder",
                field=str(path),
            )
        self.size = path.stat().st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``; fewer where the file ends."""
        with self._path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(length)


def read_gguf(path: Path, id_: str | None = None, provenance: str = "") -> RawModel:
    """Read a GGUF file, and the rest of its split set.

    Raises:
        DamagedFileError: a file is damaged or missing.
    """
    folder = path.parent
    try:
        model = read_model(lambda name: LocalFile(folder / name), path.name)
    except OSError as error:
        reason = (error.strerror or "not readable").lower()
        raise DamagedFileError(
            f"{path} can't be read: {reason}", hint="check its permissions", field=str(path)
        ) from None
    return raw_model(model, id_ or str(path), provenance)


def raw_model(model: GgufModel, id_: str, provenance: str = "") -> RawModel:
    """Return what was read as a model to be understood."""
    return RawModel(id_, "gguf", model.metadata, tensors=model.tensors, provenance=provenance)


def only_model(folder: Path) -> Path | None:
    """Return the GGUF file that a folder is about, or None where it holds none.

    Raises:
        InvalidRequestError: it holds several models. ModelNotFoundError: it holds projectors only.
    """
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if entry.name.lower().endswith(".gguf"))
    if not names:
        return None
    models = [name for name in names if _PROJECTOR not in name.lower()]
    heads = {(split.prefix, split.count) if (split := SplitName.parse(name)) else name for name in models}
    if len(heads) == 1:
        return folder / models[0]
    if not models:
        raise ModelNotFoundError(
            f"{folder} holds a projector only, no language model", hint="name the model's file", field="MODEL"
        )
    listed = ", ".join(models[:_MAX_LISTED]) + (" ..." if len(models) > _MAX_LISTED else "")
    raise InvalidRequestError(f"{folder} holds several models: {listed}", hint="name one file", field="MODEL")
