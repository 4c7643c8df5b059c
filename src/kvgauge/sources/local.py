"""Local sources: a config.json, a folder that holds one, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from kvgauge.errors import DamagedFileError, FeatureUnsupportedError, ModelNotFoundError
from kvgauge.sources import RawModel
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, parse_object

_QUANT_FILE = "hf_quant_config.json"
_HINT = "give a config.json or a folder that holds one"
_GGUF_MAGIC = b"GGUF"


def read_path(path: Path) -> RawModel:
    """Read a config file, or the config.json of a folder, and the quantisation file beside it.

    Raises:
        ModelNotFoundError: nothing there. FeatureUnsupportedError: a GGUF file.
        DamagedFileError: not a config, or not readable.
    """
    try:
        return _read(path.expanduser())
    except (OSError, ValueError, RuntimeError) as error:
        reason = (getattr(error, "strerror", None) or "not a usable path").lower()
        raise DamagedFileError(
            f"{path} can't be read: {reason}", hint="check the path and its permissions", field=str(path)
        ) from None


def _read(path: Path) -> RawModel:
    folder = path.is_dir()
    file = path / "config.json" if folder else path
    if file.suffix.lower() == ".gguf":
        raise _gguf(file)
    if not file.exists():
        if folder and any(path.glob("*.gguf")):
            raise _gguf(path)
        what = f"{path} holds no config.json" if folder else f"there is no file {path}"
        raise ModelNotFoundError(what, hint=_HINT, field="MODEL")
    config = parse_object(_read_bytes(file), str(file))
    quant = file.with_name(_QUANT_FILE)
    quantization = parse_object(_read_bytes(quant), str(quant)) if quant.is_file() else None
    return RawModel(str(path), "file", config, quantization=quantization)


def _gguf(path: Path) -> FeatureUnsupportedError:
    return FeatureUnsupportedError(
        f"{path}: GGUF files are not read by this release",
        hint="give the config.json of the model that it was made from",
        field="MODEL",
    )


def read_stdin() -> RawModel:
    """Read a config from standard input.

    Raises:
        DamagedFileError: not a config, or nothing to read from.
    """
    try:
        data = sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1)
    except (AttributeError, OSError, ValueError):
        raise DamagedFileError(
            "standard input can't be read", hint="pipe a config.json into it", field="MODEL"
        ) from None
    return RawModel("-", "stdin", parse_object(data, "standard input"))


def _read_bytes(file: Path) -> bytes:
    if not file.is_file():
        raise DamagedFileError(f"{file} is not a regular file", hint=_HINT, field=str(file))
    with file.open("rb") as stream:
        data = stream.read(MAX_CONFIG_BYTES + 1)
    if data.startswith(_GGUF_MAGIC):
        raise _gguf(file)
    return data
