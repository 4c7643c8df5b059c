"""One forward pass watched: the activations of a few layers, kept to be looked at."""

from __future__ import annotations

from dataclasses import dataclass, field

from kvgauge.lab.arrays import Floats


@dataclass
class Trace:
    """Keeps what layers make. Handed to ``Decoder.forward`` as ``watch``.

    Args:
        layers: those that are kept.
    """

    layers: frozenset[int]
    _kept: dict[tuple[int, str], Floats] = field(default_factory=dict)

    def __call__(self, layer: int, name: str, array: Floats) -> None:
        """Keep an activation of a layer that is asked for."""
        if layer in self.layers:
            self._kept[layer, name] = array

    def of(self, layer: int, name: str) -> Floats:
        """Return an activation of the one sequence, without the axis of sequences."""
        found: Floats = self._kept[layer, name][0]
        return found
