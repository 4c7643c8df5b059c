"""``load``: a model that was found and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache
from os import PathLike
from typing import TYPE_CHECKING

from kvgauge.architecture import ModelArchitecture
from kvgauge.identity import Identity
from kvgauge.readers import is_gguf, read_architecture
from kvgauge.sources import RawModel, apply_overrides, load_raw
from kvgauge.values import dataclass
from kvgauge.weighing import Weighed, read_families, weigh, weigh_as

if TYPE_CHECKING:
    from kvgauge.sources.weight_files import Progress
    from kvgauge.weights import ModelWeights


@dataclass(frozen=True)
class Model:
    """A model that was found and read; pass it wherever a model is asked for."""

    raw: RawModel
    architecture: ModelArchitecture
    progress: Progress | None = field(default=None, compare=False, repr=False)

    @cached_property
    def weighed(self) -> Weighed:
        """The weights as the model is published; read when they are asked for first."""
        return weigh(self, self.progress)

    def weighed_as(self, scheme: str) -> Weighed:
        """Return the weights in a scheme that the model need not be published in.

        Raises:
            KvgaugeError: the scheme is not known, or the model's tensors are not.
        """
        return _weighed_as(Identity(self), scheme)

    @cached_property
    def families(self) -> ModelWeights | None:
        """The tensors of the model by shape, whatever they are stored as; None: not known.

        Raises:
            KvgaugeError: the shapes can't be understood; says why.
        """
        return read_families(self.raw)

    @cached_property
    def converted(self) -> ModelArchitecture:
        """The model as engines that load GGUF know it: of a config, what its conversion would state.

        Raises:
            KvgaugeError: there is no conversion of such a config.
        """
        if is_gguf(self.raw.config):
            return self.architecture
        from kvgauge.readers.gguf import read_metadata  # noqa: PLC0415 - few engines ask
        from kvgauge.readers.gguf.from_config import metadata_of_config  # noqa: PLC0415

        found = read_metadata(metadata_of_config(self.raw.config))
        ignored = tuple(note for note in found.notes if note.code == "gguf_window_unused")
        notes = (*self.architecture.notes, *ignored)
        return replace(found, notes=notes, fields=self.architecture.fields)

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


@lru_cache(maxsize=32)
def _weighed_as(model: Identity[Model], scheme: str) -> Weighed:
    return weigh_as(model.of, scheme)


ModelLike = str | PathLike[str] | Mapping[str, object] | Model


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
