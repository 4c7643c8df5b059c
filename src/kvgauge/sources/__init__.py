"""Sources: where a model's config comes from.

``load_raw`` tries, in the order of the contract: an existing path, standard input (only ``-``), the shipped
catalogue. A hub and GGUF source join here; both yield a ``RawModel`` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, ModelNotFoundError

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
    """

    id: str
    source: str
    config: Json
    revision: str | None = None
    quantization: Json | None = None
    overrides: Json = field(default_factory=dict)
    provenance: str = ""


def load_raw(model: str | Path | Json, overrides: Json | None = None, *, offline: bool = False) -> RawModel:
    """Find a model and return its config.

    Raises:
        ModelNotFoundError: no source knows it. DamagedFileError: the file is not a config.
    """
    raw = _find(model, offline=offline)
    return apply_overrides(raw, overrides) if overrides else raw


def _find(model: str | Path | Json, *, offline: bool) -> RawModel:
    if isinstance(model, Mapping):
        if "general.architecture" in model:
            raise FeatureUnsupportedError(
                "GGUF metadata is not read by this release", hint="give the config.json"
            )
        return RawModel(str(model.get("_name_or_path") or "config"), "dict", model)
    if not isinstance(model, str | Path) or not str(model).strip():
        raise InvalidRequestError("MODEL is empty", hint="give a model id, a config.json, a folder or -")
    if model == "-":
        from kvgauge.sources.local import read_stdin  # noqa: PLC0415

        return read_stdin()
    if _is_path(model):
        from kvgauge.sources.local import read_path  # noqa: PLC0415

        return read_path(Path(model))
    from kvgauge.sources.catalogue import find_model  # noqa: PLC0415

    found = find_model(str(model))
    if found is not None:
        return found
    raise _not_found(str(model), offline=offline)


def _is_path(model: str | Path) -> bool:
    if isinstance(model, Path):
        return True
    try:
        return Path(model).exists()
    except (OSError, ValueError):
        return False


def _not_found(model: str, *, offline: bool) -> ModelNotFoundError:
    from kvgauge.sources.catalogue import near_names  # noqa: PLC0415

    if model.endswith((".json", ".gguf")) or model.startswith((".", "/", "~")):
        return ModelNotFoundError(f"there is no file {model}", hint="check the path", field="MODEL")
    near = near_names(model)
    where = "the shipped catalogue"
    hint = f"did you mean {' or '.join(near)}?" if near else "give a config.json or a folder that holds one"
    return ModelNotFoundError(f"{model} is not in {where}", hint=hint, field="MODEL")


def apply_overrides(raw: RawModel, overrides: Json) -> RawModel:
    """Return the model with config fields changed; dotted keys reach into nested objects.

    Raises:
        InvalidRequestError: a key is empty or crosses a value that is not an object.
    """
    config: dict[str, object] = dict(raw.config)
    for key, value in overrides.items():
        parts = key.split(".")
        if not all(parts) or len(parts) > 16:
            raise InvalidRequestError(f"--override key {key!r} is not a dotted name", field="override")
        level = config
        for part in parts[:-1]:
            inner = level.get(part, {})
            if not isinstance(inner, Mapping):
                raise InvalidRequestError(f"--override {key}: {part} is not an object", field="override")
            copied = dict(inner)
            level[part] = copied
            level = copied
        level[parts[-1]] = value
    return replace(raw, config=config, overrides=dict(overrides))
