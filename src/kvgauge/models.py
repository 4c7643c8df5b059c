"""``load``: a model that was found and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kvgauge.architecture import ModelArchitecture
from kvgauge.readers import read_architecture
from kvgauge.sources import RawModel, apply_overrides, load_raw
from kvgauge.weighing import Weighed, weigh

if TYPE_CHECKING:
    from kvgauge.sources.weight_files import Progress


@dataclass(frozen=True)
class Model:
    """A model that was found and read; pass it wherever a model is asked for."""

    raw: RawModel
    architecture: ModelArchitecture
    progress: Progress | None = field(default=None, compare=False, repr=False)

    @cached_property
    def weighed(self) -> Weighed:
        """The weights as the model is published; read when they are asked for first."""
        return weigh(self.raw, self.architecture, self.progress)

    def to_dict(self) -> dict[str, object]:
        """Return the ``model`` object of the JSON contract."""
        return {
            "id": self.raw.id,
            "revision": self.raw.revision,
            "source": self.raw.source,
            "model_type": self.architecture.model_type,
            "architecture": self.architecture.architecture,
            "num_layers": self.architecture.num_layers,
            "context_limit_tokens": self.architecture.context_limit_tokens,
            "overrides": dict(self.raw.overrides),
        }


ModelLike = str | Path | Mapping[str, object] | Model


def load(
    model: ModelLike,
    *,
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
    local_files: bool = True,
    progress: Progress | None = None,
) -> Model:
    """Find and read a model: a name, a path, ``-``, or a parsed config.

    Args:
        revision: a branch, tag or commit on the hub; ``org/name@revision`` says the same.
        refresh: ask the hub, whatever the catalogue and the local cache say.
        offline: use the catalogue, local files and the local cache alone.
        local_files: a name may be a path, ``-`` or a model that Ollama has pulled; False where names come
            from people who are not to read this machine's files.
        progress: called with (files read, files) while headers of weight files are read.

    Raises:
        KvgaugeError: not found, damaged or not understood.

    >>> config = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    >>> load(config).architecture.num_layers
    2
    """
    if isinstance(model, Model):
        if not overrides:
            return model
        raw = apply_overrides(model.raw, {**model.raw.overrides, **overrides})
    else:
        raw = load_raw(
            model, overrides, offline=offline, revision=revision, refresh=refresh, local_files=local_files
        )
    shapes = {tensor.name: tensor.shape for tensor in raw.tensors}
    return Model(raw, read_architecture(raw.config, raw.quantization, shapes), progress)
