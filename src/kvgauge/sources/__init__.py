"""Sources: where a model's config comes from.

``load_raw`` tries, in the order of the contract: an existing path, standard input (only ``-``), the shipped
catalogue, the local cache of the hub, the hub. All yield a ``RawModel``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from os import PathLike, path
from typing import TYPE_CHECKING

from kvgauge.errors import InvalidRequestError
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.sources.gguf import Tensor
    from kvgauge.sources.weight_files import WeightFiles

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RawModel:
    """A config before it is read.

    Args:
        id: what the user would call the model.
        source: catalogue, hub, file, gguf, stdin or dict.
        revision: resolved revision, where the source has one.
        quantization: ``hf_quant_config.json`` beside the config.
        overrides: fields that the user changed.
        provenance: where a catalogue row comes from, and its date; the host and commit of a hub.
        tensors: the tensor table of a GGUF.
        weight_files: where its weight files may be; nothing was looked at. None: a catalogue row, standard
            input, a dict.
    """

    id: str
    source: str
    config: Json
    revision: str | None = None
    quantization: Json | None = None
    overrides: Json = field(default_factory=dict)
    provenance: str = ""
    tensors: tuple[Tensor, ...] = ()
    weight_files: WeightFiles | None = field(default=None, compare=False, repr=False)


def load_raw(
    model: str | PathLike[str] | Json,
    overrides: Json | None = None,
    *,
    offline: bool = False,
    revision: str | None = None,
    refresh: bool = False,
    local_files: bool = True,
) -> RawModel:
    """Find a model and return its config.

    Args:
        model: a path, ``-``, ``org/name``, ``org/name@revision``, ``ms:org/name``, a hub URL, or a parsed
            config.
        overrides: config fields to change, by dotted name.
        offline: stay away from the network.
        revision: a revision on the hub; ``@revision`` in the name says the same.
        refresh: ask the hub, whatever the catalogue and the local cache say.
        local_files: a name may be a path, ``-`` or a model of Ollama; else it is one of the catalogue or a
            hub, whatever lies under that name on this machine.

    Raises:
        InvalidRequestError: nothing is named. ModelNotFoundError: no source knows it.
        GatedModelError: the hub does not hand it out. NetworkError: the hub does not answer.
        DamagedFileError: the file is not a config.
    """
    if not local_files and not isinstance(model, Mapping):
        name = _checked_name(model)
        raw = _find_by_name(name, revision, refresh=refresh, offline=offline)
    else:
        raw = _find(model, revision, refresh=refresh, offline=offline)
    if revision and raw.source in ("file", "stdin", "dict"):
        raise InvalidRequestError(
            f"--revision {revision[:60]} is of a model on the hub, and {raw.id[:120]} is none",
            hint="leave it out",
            field="revision",
        )
    return apply_overrides(raw, overrides) if overrides else raw


def _find(
    model: str | PathLike[str] | Json, revision: str | None, *, refresh: bool, offline: bool
) -> RawModel:
    if isinstance(model, Mapping):
        if "general.architecture" in model:
            return RawModel(str(model.get("general.name") or "metadata"), "gguf", model)
        return RawModel(str(model.get("_name_or_path") or "config"), "dict", model)
    if not isinstance(model, str | PathLike) or not str(model).strip():
        raise InvalidRequestError("MODEL is empty", hint="give a model id, a config.json, a folder or -")
    if model == "-":
        from kvgauge.sources.local import read_stdin  # noqa: PLC0415

        return read_stdin()
    if _is_path(model):
        from pathlib import Path  # noqa: PLC0415 - a name of the catalogue is no path

        from kvgauge.sources.local import read_path  # noqa: PLC0415

        return read_path(Path(model))
    if ":" in str(model) or "/" not in str(model):
        from kvgauge.sources.ollama import find_ollama  # noqa: PLC0415

        pulled = find_ollama(str(model))
        if pulled is not None:
            return pulled
    return _find_by_name(str(model), revision, refresh=refresh, offline=offline)


def _find_by_name(text: str, revision: str | None, *, refresh: bool, offline: bool) -> RawModel:
    from kvgauge.sources.catalogue import find_model  # noqa: PLC0415

    found = None if refresh or revision else find_model(text.strip())
    if found is not None:
        return found
    from kvgauge.sources.names import HubName  # noqa: PLC0415 - a name of the catalogue needs no more
    from kvgauge.sources.remote import find_remote  # noqa: PLC0415

    name = HubName.parse(text, revision)
    if name.shipped and not refresh and name.revision is None and name.file is None:
        found = find_model(name.id)
    return found or find_remote(name, refresh=refresh, offline=offline)


def _checked_name(model: str | PathLike[str]) -> str:
    """Return a name that no file of this machine is meant by.

    Raises:
        InvalidRequestError: it is written as a path, or empty.
    """
    if not isinstance(model, str) or not model.strip():
        raise InvalidRequestError("MODEL is empty", hint="give a model id, or a config")
    name = model.strip()
    starts = ("/", "./", "../", "~")
    if name.startswith(starts) or name in ("-", ".", "..") or "\\" in name or name[1:3] == ":/":
        raise InvalidRequestError(
            "files of this machine are not read here",
            hint="give a model id, or the content of its config.json",
            field="MODEL",
        )
    return name


def _is_path(model: str | PathLike[str]) -> bool:
    """Whether a file is meant: something stands there, or the name is written as a path."""
    if isinstance(model, PathLike) or model.startswith(("/", "./", "../", "~")) or model in (".", ".."):
        return True
    return path.exists(model)  # noqa: PTH110 - without pathlib, as above


def apply_overrides(raw: RawModel, overrides: Json) -> RawModel:
    """Return the model with config fields changed; dotted keys reach into nested objects.

    GGUF keys hold dots themselves: a whole key is meant there, and wherever the config has such a key.

    Raises:
        InvalidRequestError: a key is empty or crosses a value that is not an object.
    """
    config: dict[str, object] = dict(raw.config)
    flat = "general.architecture" in config
    for key, value in overrides.items():
        parts = [key] if flat or key in config else key.split(".")
        if not all(parts) or len(parts) > 16:
            raise InvalidRequestError(f"--override key {key!r} is not a dotted name", field="override")
        level = config
        for part in parts[:-1]:
            inner = level.get(part)
            inner = {} if inner is None else inner
            if not isinstance(inner, Mapping):
                raise InvalidRequestError(f"--override {key}: {part} is not an object", field="override")
            copied = dict(inner)
            level[part] = copied
            level = copied
        level[parts[-1]] = value
    return replace(raw, config=config, overrides=dict(overrides))
