"""The tensor families that a config implies, looked up by the names that a checkpoint gives its tensors.

A checkpoint's names may have another beginning than the model class's (``language_model.model.layers`` for
``model.language_model.layers``); inside a layer they agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from kvgauge.readers.tensor_names import TensorPlace
from kvgauge.weights import ModelWeights, Part, TensorFamily, WeightShard

_TOWERS = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})
_LAYER = "{layer}."
_Table = Mapping[str, tuple[TensorFamily, ...]]


class ConfigTensors:
    """Families of a config by name; none where the model type is not known."""

    def __init__(self, weights: ModelWeights | None, kv_heads: int = 0) -> None:
        self._kv_heads = kv_heads
        self._weights = weights or ModelWeights(())
        self._found: dict[str, tuple[TensorFamily, ...]] = {}

    def family(self, place: TensorPlace) -> TensorFamily | None:
        """Return the family of the matrix that a tensor belongs to, of its layer where there are several."""
        found = self._found.get(place.template)
        if found is None:
            found = self._found[place.template] = self._look_up(place)
        if not found:
            return None
        return next((family for family in found if place.layer in family.layers), found[0])

    def is_mtp(self, place: TensorPlace) -> bool:
        """Whether the config counts a tensor to multi-token prediction."""
        return any(
            place.layer in family.layers or not family.layers
            for name in _names(place)
            for family in self._mtp.get(name, ())
        )

    @cached_property
    def kv_heads(self) -> int:
        """KV heads that a cut keeps whole; 0 where not known."""
        own = self._weights.families
        units = max((f.shard_units for f in own if f.shard is WeightShard.KV_HEADS), default=0)
        return units or self._kv_heads

    @cached_property
    def active_experts(self) -> int:
        """Experts that one token uses; 0 where not known."""
        return max((family.num_active_experts for family in self._weights.families), default=0)

    @cached_property
    def is_tied(self) -> bool:
        """Whether the head is the embedding."""
        return any(f.part is Part.LM_HEAD and f.tied_to for f in self._weights.families)

    def _look_up(self, place: TensorPlace) -> tuple[TensorFamily, ...]:
        main: _Table = {} if place.is_mtp else self._main
        for name in _names(place):
            found = (*main.get(name, ()), *self._mtp.get(name, ()))
            if found:
                return found
        if place.is_mtp or place.part in _TOWERS:
            return ()
        return next((self._ends[end] for name in _names(place) if (end := _end(name)) in self._ends), ())

    @cached_property
    def _main(self) -> _Table:
        return _by(self._weights.families, lambda family: family.name)

    @cached_property
    def _mtp(self) -> _Table:
        return _by(self._weights.mtp_families, lambda family: family.name)

    @cached_property
    def _ends(self) -> _Table:
        own = (family for family in self._weights.families if family.part not in _TOWERS)
        return _by(own, lambda family: _end(family.name))


def _by(families: Iterable[TensorFamily], key: Callable[[TensorFamily], str]) -> _Table:
    table: dict[str, list[TensorFamily]] = {}
    for family in families:
        table.setdefault(key(family), []).append(family)
    return {name: tuple(found) for name, found in table.items()}


def _names(place: TensorPlace) -> tuple[str, ...]:
    """Return the names that a config may give the tensor, or the matrix that it goes with."""
    if place.suffix == "bias":
        return (place.template,)
    return tuple(dict.fromkeys((place.template, f"{place.module}.weight", place.module)))


def _end(name: str) -> str:
    """Return what follows the layer's number; of other names, their last two words."""
    _, layer, rest = name.partition(_LAYER)
    return rest if layer else ".".join(name.rsplit(".", 2)[-2:])
