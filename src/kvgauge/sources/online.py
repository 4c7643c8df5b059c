"""Ask the site that a name stands for."""

from __future__ import annotations

from kvgauge.sources import RawModel, hub, modelscope
from kvgauge.sources.failures import address_of
from kvgauge.sources.gguf import read_model
from kvgauge.sources.hub import Hub
from kvgauge.sources.modelscope import ModelScope
from kvgauge.sources.names import HubName
from kvgauge.sources.ranges import RangeReader


def fetch(name: HubName) -> RawModel:
    """Return a model of the hub or of ModelScope; of a GGUF file, its header alone is fetched.

    Raises:
        KvgaugeError: ``model_not_found``, ``gated``, ``network``, ``damaged_file``.
    """
    repository = connect(name)
    return repository.fetched() if name.file is None else _gguf(repository, name.file)


def connect(name: HubName) -> Hub | ModelScope:
    """Return the repository of a name."""
    return modelscope.connect(name) if name.site == "ms" else hub.connect(name)


def _gguf(repository: Hub | ModelScope, file: str) -> RawModel:
    """Read the header of a GGUF file, and those of the rest of its split set, by ranges."""
    folder, _, bare = file.rpartition("/")
    opened: list[RangeReader] = []

    def open_file(other: str) -> RangeReader:
        opened.append(repository.open(f"{folder}/{other}" if folder else other))
        return opened[-1]

    model = read_model(open_file, bare)
    commit = opened[0].headers.get("x-repo-commit")
    host = address_of(repository.site.endpoint).partition("://")[2]
    shown = f"{repository.name.shown}:{file}"
    return RawModel(shown, "gguf", model.metadata, commit, provenance=host, tensors=model.tensors)
