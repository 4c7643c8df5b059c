"""Local sources: a config.json, a folder that holds one, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from kvgauge.errors import DamagedFileError, FeatureUnsupportedError, ModelNotFoundError
from kvgauge.sources import RawModel
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, parse_object

_QUANT_FILE = "hf_quant_config.json"


def read_path(path: Path) -> RawModel:
    """Read a config file, or the config.json of a folder, and the quantisation file beside it.

    Raises:
        ModelNotFoundError: nothing there. DamagedFileError: not a config.
    """
    file = path / "config.json" if path.is_dir() else path
    if file.suffix == ".gguf":
        raise FeatureUnsupportedError(
            f"{file}: GGUF files are not read by this release", hint="give the config.json"
        )
    if not file.exists():
        what = f"{path} holds no config.json" if path.is_dir() else f"there is no file {path}"
        raise ModelNotFoundError(what, hint="give a config.json or a folder that holds one", field="MODEL")
    config = parse_object(_read_bytes(file), str(file))
    quant = file.with_name(_QUANT_FILE)
    quantization = parse_object(_read_bytes(quant), str(quant)) if quant.is_file() else None
    return RawModel(str(path), "file", config, quantization=quantization)


def read_stdin() -> RawModel:
    """Read a config from standard input.

    Raises:
        DamagedFileError: not a config.
    """
    data = sys.stdin.buffer.read(MAX_CONFIG_BYTES + 1)
    return RawModel("-", "stdin", parse_object(data, "standard input"))


def _read_bytes(file: Path) -> bytes:
    if not file.is_file():
        raise DamagedFileError(f"{file} is not a regular file", hint="give a config.json", field=str(file))
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "can't be read"
        raise DamagedFileError(
            f"{file}: {reason.lower()}", hint="check the permissions", field=str(file)
        ) from None
