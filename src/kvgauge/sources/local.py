"""Local sources: a config.json or a GGUF, a folder that holds one, or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from kvgauge.errors import DamagedFileError, ModelNotFoundError
from kvgauge.sources import RawModel
from kvgauge.sources.json_text import MAX_CONFIG_BYTES, parse_object
from kvgauge.sources.weight_files import LocalWeights

_CONFIG_FILE = "config.json"
_WEIGHTS = (".safetensors", ".safetensors.index.json")
_QUANT_FILE = "hf_quant_config.json"
_HINT = "give a config.json, a GGUF or a folder that holds one"
_GGUF_MAGIC = b"GGUF"


def read_path(path: Path) -> RawModel:
    """Read a config file and the quantisation file beside it, or a GGUF; of a folder, the one that it holds.

    Raises:
        ModelNotFoundError: nothing there, or no language model. InvalidRequestError: a folder of several
            GGUF models. DamagedFileError: neither, or not readable.
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
    named = "" if folder or not path.is_file() or not path.name.endswith(_WEIGHTS) else path.name
    file = path / _CONFIG_FILE if folder else path.with_name(_CONFIG_FILE) if named else path
    if named:
        _refuse_other_models(named)
    if named and not file.is_file():
        raise ModelNotFoundError(
            f"there is no config.json beside {path.name}",
            hint="weights alone don't say what a model keeps; put its config.json beside them",
            field="MODEL",
        )
    if not file.exists():
        gguf = _gguf_of(path) if folder else None
        if gguf is not None:
            return gguf
        what = f"{path} holds no config.json" if folder else f"there is no file {path}"
        raise ModelNotFoundError(what, hint=_HINT, field="MODEL")
    if file.suffix.lower() == ".gguf" or _is_gguf(file):
        from kvgauge.sources.gguf_local import read_gguf  # noqa: PLC0415 - a config needs none of it

        return read_gguf(file)
    config = parse_object(_read_bytes(file), str(file))
    quant = file.with_name(_QUANT_FILE)
    own = file.with_name(f"{file.stem}.{_QUANT_FILE}")  # of a folder that keeps many configs by name
    quant = own if file.name != "config.json" and own.is_file() else quant
    quantization = parse_object(_read_bytes(quant), str(quant)) if quant.is_file() else None
    weights = LocalWeights(file.parent, named) if file.name == _CONFIG_FILE else None
    return RawModel(str(path), "file", config, quantization=quantization, weight_files=weights)


def _refuse_other_models(name: str) -> None:
    """Refuse a weight file that is an adapter or the like: the config beside it describes another model."""
    from kvgauge.sources.weight_sets import is_other_model  # noqa: PLC0415 - few name a weight file

    if is_other_model(name):
        raise ModelNotFoundError(
            f"{name} holds no language model",
            hint="give the model's own weight file, its config.json or its folder",
            field="MODEL",
        )


def _gguf_of(folder: Path) -> RawModel | None:
    from kvgauge.sources.gguf_local import only_model, read_gguf  # noqa: PLC0415

    model = only_model(folder)
    return None if model is None else read_gguf(model, str(folder))


def _is_gguf(file: Path) -> bool:
    """Whether a file of another name is a GGUF, by its first bytes."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        return stream.read(len(_GGUF_MAGIC)) == _GGUF_MAGIC


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
        return stream.read(MAX_CONFIG_BYTES + 1)
