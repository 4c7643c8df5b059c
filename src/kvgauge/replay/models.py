"""The model of a record: a config beside the records, the catalogue, or GGUF metadata that a log printed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from kvgauge.architecture import ModelArchitecture
from kvgauge.data import read_data
from kvgauge.errors import KvgaugeError
from kvgauge.models import Model, load
from kvgauge.readers import read_architecture
from kvgauge.readers.gguf import read_metadata
from kvgauge.readers.gguf.from_config import metadata_of_config
from kvgauge.replay.figures import Skip
from kvgauge.replay.records import Record
from kvgauge.sources import RawModel
from kvgauge.sources.catalogue import find_model, model_names
from kvgauge.sources.json_text import parse_object

#: Folders of configs, beside the records or above them.
_FOLDERS = ("configs/real", "configs/logs", "real", "logs", ".")
_MAX_CONFIG = 16 << 20


@dataclass
class ModelFinder:
    """Where configs of records are looked for; each is read once.

    Args:
        places: folders that hold ``configs/real`` or ``configs/logs``, or configs themselves.
    """

    places: tuple[Path, ...] = ()
    _read: dict[str, Model | None] = field(default_factory=dict)

    @classmethod
    def beside(cls, records: Path | None, configs: Path | None = None) -> ModelFinder:
        """Look beside a file of records and in the two folders above it, after a folder that is given."""
        near: tuple[Path, ...] = ()
        if records is not None:
            folder = records.resolve().parent
            near = (folder, *tuple(folder.parents)[:2])
        return cls((*((configs,) if configs is not None else ()), *near))

    def model(self, record: Record) -> Model:
        """Return the model that a record is tied to.

        Raises:
            Skip: no public shape is known here.
        """
        name = record.text("config_ref")
        if name is None:
            raise Skip("no_shape", "config_ref")
        if name not in self._read:
            self._read[name] = self._find(name)
        found = self._read[name]
        if found is None:
            raise Skip("no_shape", name)
        return found

    def named(self, name: str) -> Model | None:
        """Return a model by the name that a record gives it, where one is known exactly."""
        key = f"\0{name}"
        if key not in self._read:
            # The catalogue first: it knows what a build leaves in 16 bits.
            raw = (find_model(name) if "/" in name else None) or self._file(name)
            self._read[key] = read_model(raw) if raw is not None else None
        return self._read[key]

    def build(self, name: str, scheme: str) -> Model | None:
        """Return a build of a model in a scheme, by whoever published one that is known."""
        base = re.sub(r"-(bf16|fp16)$", "", name.rpartition("/")[2].lower())
        found = next(
            (n for n in model_names() if _plain(n.rpartition("/")[2]) == _plain(base + scheme)), None
        )
        return self.named(found) if found is not None and base else None

    def gguf(self, record: Record) -> ModelArchitecture:
        """Return the layers as llama.cpp has them: of the config, converted, else of printed metadata.

        Raises:
            Skip: no public shape is known here.
        """
        printed = record.inner("gguf_metadata")
        if record.text("config_ref") is None and not printed:
            raise Skip("no_shape", "config_ref")
        try:
            if record.text("config_ref") is not None:
                return _converted(self.model(record).raw.config)
        except Skip:
            if not printed:
                raise
        except KvgaugeError as error:
            if not printed:
                raise Skip("no_shape", error.message) from None
        return _metadata(printed)

    def any_model(self, record: Record) -> Model:
        """Return the model that a record is tied to, else the one of the metadata that its log prints.

        Raises:
            Skip: no public shape is known here.
        """
        printed = record.inner("gguf_metadata")
        if record.text("config_ref") is not None or not printed:
            return self.model(record)
        if not any(str(key).endswith("feed_forward_length") for key in printed):
            raise Skip("no_shape", "feed_forward_length")
        try:
            return load(printed, offline=True)
        except KvgaugeError as error:
            raise Skip("no_shape", error.message) from None

    def _find(self, name: str) -> Model | None:
        raw = self._file(name) or find_model(name) or _shipped(name)
        if raw is not None:
            return read_model(raw)
        if not name.endswith((".json", ".gguf")) and not name.startswith((".", "/")):
            return None
        for path in (Path(name), *(place / name for place in self.places)):
            try:
                return load(path, offline=True)
            except (KvgaugeError, OSError, ValueError):
                continue
        return None

    def _file(self, name: str) -> RawModel | None:
        if "\0" in name or ".." in name or len(name) > 200:
            return None
        file = name.replace("/", "--") + ("" if name.endswith(".json") else ".json")
        for place in self.places:
            for folder in _FOLDERS:
                path = place / folder / file
                config = _object(path)
                if config is not None:
                    side = _object(path.with_name(file[: -len(".json")] + ".hf_quant_config.json"))
                    return RawModel(name, "file", config, quantization=side)
        return None


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _object(path: Path) -> dict[str, object] | None:
    try:
        with path.open("rb") as stream:
            return parse_object(stream.read(_MAX_CONFIG + 1), path.name)
    except (OSError, ValueError, KvgaugeError):
        return None


def read_model(raw: RawModel) -> Model | None:
    """Return the model of a config, None where it can't be read."""
    try:
        return Model(raw, read_architecture(raw.config, raw.quantization, {}))
    except KvgaugeError:
        return None


@lru_cache(maxsize=1)
def _shipped_configs() -> Mapping[str, dict[str, object]]:
    rows = (json.loads(line) for line in read_data("evidence_models.jsonl").splitlines())
    return {row["id"]: row["config"] for row in rows}


def _shipped(name: str) -> RawModel | None:
    """Return a model that records are tied to and that the catalogue does not hold."""
    config = _shipped_configs().get(name)
    return RawModel(name, "catalogue", config) if config is not None else None


def _converted(config: Mapping[str, object]) -> ModelArchitecture:
    stated = {key: value for key, value in config.items() if value is not None}
    # Short configs leave query heads out where a cache does not depend on them.
    stated.setdefault("num_attention_heads", stated.get("num_key_value_heads"))
    return read_metadata(metadata_of_config(stated))


def _metadata(printed: Mapping[str, object]) -> ModelArchitecture:
    try:
        return read_metadata(printed)
    except KvgaugeError as error:
        raise Skip("no_shape", error.message) from None
