"""Sources: where a model's config comes from.

``load_raw`` tries, in the order of the contract: an existing path, standard input (only ``-``), the shipped
catalogue. A hub and GGUF source join here; both yield a ``RawModel`` too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kvgauge.errors import InvalidRequestError, ModelNotFoundError

if TYPE_CHECKING:
    from kvgauge.sources.gguf import Tensor

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RawModel:
    """A config before it is read.

    Args:
        id: what the user would call the model.
        source: catalogue, file, stdin or dict.
        revision: resolved revision, where the source has one.
        quantization: ``hf_quant_config.json`` beside the config.
        overrides: fields that the user changed.
        provenance: where a catalogue row comes from, and its date.
        tensors: the tensor table of a GGUF.
    """

    id: str
    source: str
    config: Json
    revision: str | None = None
    quantization: Json | None = None
    overrides: Json = field(default_factory=dict)
    provenance: str = ""
    tensors: tuple[Tensor, ...] = ()


def load_raw(
    model: str | Path | Json,
    overrides: Json | None = None,
    *,
    offline: bool = False,
    revision: str | None = None,
) -> RawModel:
    """Find a model and return its config.

    Args:
        model: a path, ``-``, ``org/name``, ``org/name@revision``, a hub URL, or a parsed config.
        overrides: config fields to change, by dotted name.
        offline: stay away from the network (this release always does).
        revision: a revision on the hub; ``@revision`` in the name says the same.

    Raises:
        InvalidRequestError: nothing is named. ModelNotFoundError: no source knows it.
        DamagedFileError: the file is neither a config nor a GGUF.
    """
    raw = _find(model, revision)
    return apply_overrides(raw, overrides) if overrides else raw


def _find(model: str | Path | Json, revision: str | None) -> RawModel:
    if isinstance(model, Mapping):
        if "general.architecture" in model:
            return RawModel(str(model.get("general.name") or "metadata"), "gguf", model)
        return RawModel(str(model.get("_name_or_path") or "config"), "dict", model)
    if not isinstance(model, str | Path) or not str(model).strip():
        raise InvalidRequestError("MODEL is empty", hint="give a model id, a config.json, a folder or -")
    if model == "-":
        from kvgauge.sources.local import read_stdin  # noqa: PLC0415

        return read_stdin()
    if _is_path(model):
        from kvgauge.sources.local import read_path  # noqa: PLC0415

        return read_path(Path(model))
    if ":" in str(model) or "/" not in str(model):
        from kvgauge.sources.ollama import find_ollama  # noqa: PLC0415

        pulled = find_ollama(str(model))
        if pulled is not None:
            return pulled
    return _find_by_name(HubName.parse(str(model), revision))


_DEFAULT_REVISIONS = frozenset({"main", "master"})
_HUB_URL = re.compile(
    r"(?:https?://[^/]+|hf\.co|huggingface\.co)/(?:models/)?(?P<id>[^/?#]+/[^/?#]+)"
    r"(?:/(?:tree|blob|resolve|raw|commit)/(?P<revision>[^/?#]+))?(?:[/?#].*)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class HubName:
    """What a name on the hub consists of: ``org/name@revision`` or ``org/name:file.gguf``, or a URL."""

    id: str
    revision: str | None = None
    file: str | None = None

    @classmethod
    def parse(cls, text: str, revision: str | None = None) -> HubName:
        """Take a name apart; the default branch counts as no revision.

        >>> HubName.parse("https://huggingface.co/Qwen/Qwen3-8B/tree/main")
        HubName(id='Qwen/Qwen3-8B', revision=None, file=None)
        """
        text = text.strip()
        match = _HUB_URL.fullmatch(text)
        if match:
            text, revision = match["id"], match["revision"] or revision
        elif "://" in text:
            return cls(text, revision)
        name, _, file = text.partition(":")
        name, _, asked = name.partition("@")
        revision = asked or revision
        return cls(name.rstrip("/"), None if revision in _DEFAULT_REVISIONS else revision, file or None)


def _find_by_name(name: HubName) -> RawModel:
    from kvgauge.sources.catalogue import find_model, near_names  # noqa: PLC0415

    found = find_model(name.id)
    if found is not None and name.revision is None and name.file is None:
        return found
    shown = name.id[:120]
    if found is not None:
        what = f"revision {name.revision[:60]}" if name.revision else f"the file {(name.file or '')[:60]}"
        raise ModelNotFoundError(
            f"{what} of {shown} is on the hub only, which this release does not reach",
            hint=f"leave it out to use the shipped config of {found.id}, or give a config.json",
            field="MODEL",
        )
    if shown.endswith((".json", ".gguf", ".safetensors")):
        raise ModelNotFoundError(f"there is no file {shown}", hint="check the path", field="MODEL")
    near = near_names(name.id)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise ModelNotFoundError(
        f"{shown} is not in the shipped catalogue, and this release does not reach the hub",
        hint=f"{hint}{'Else give' if near else 'give'} a config.json or a folder that holds one",
        field="MODEL",
    )


def _is_path(model: str | Path) -> bool:
    """Whether a file is meant: something stands there, or the name is written as a path."""
    if isinstance(model, Path) or model.startswith(("/", "./", "../", "~")) or model in (".", ".."):
        return True
    try:
        return Path(model).exists()
    except (OSError, ValueError):
        return False


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
