"""What a forward pass really makes and holds: each activation noted when it is made, and when it is freed."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from kvgauge.lab.arrays import Floats
from kvgauge.lab.life import KEPT, LIVES, Peak

_KEPT_NAMES = frozenset(life.name for life in LIVES if life.fate in KEPT)


@dataclass(frozen=True, slots=True)
class Made:
    """An activation as it was made.

    Args:
        dimensions: of its array, without the axis of sequences.
        held_bytes: what the layer held at that moment, itself included, the cache left out.
    """

    name: str
    dimensions: tuple[int, ...]
    size_bytes: int
    held_bytes: int

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "name": self.name,
            "dimensions": list(self.dimensions),
            "bytes": self.size_bytes,
            "held_bytes": self.held_bytes,
        }


class Ledger:
    """Notes what layers make. Handed to ``Decoder.forward`` as ``watch``.

    An array is held until nothing refers to it: the interpreter says when that is.
    """

    def __init__(self) -> None:
        self.layers: dict[int, list[Made]] = {}
        self._alive: dict[int, int] = {}
        self._refs: dict[int, weakref.ref[Floats]] = {}

    def __call__(self, layer: int, name: str, array: Floats) -> None:
        """Note an activation."""
        if name not in _KEPT_NAMES and id(array) not in self._alive:
            self._note_birth(array)
        held = sum(self._alive.values())
        self.layers.setdefault(layer, []).append(Made(name, array.shape[1:], array.nbytes, held))

    def _note_birth(self, array: Floats) -> None:
        key = id(array)
        self._alive[key] = array.nbytes
        self._refs[key] = weakref.ref(array, lambda _: self._note_death(key))

    def _note_death(self, key: int) -> None:
        self._alive.pop(key, None)
        self._refs.pop(key, None)


def measured_peak(made: list[Made]) -> Peak:
    """Return the most that was held at once, and what was made at that moment."""
    most = max(made, key=lambda one: one.held_bytes)
    return Peak(most.held_bytes, most.name)
