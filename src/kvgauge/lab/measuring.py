"""The activations of a real forward pass, held against what was computed of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.lab.cache import Cache
from kvgauge.lab.folder import Folder
from kvgauge.lab.ledger import Ledger, Made, measured_peak
from kvgauge.lab.life import Activation, Peak, held_at


@dataclass(frozen=True, slots=True)
class Measured:
    """A pass through layers of one shape as the decoder ran it.

    Args:
        layers: how many there are; each made the same.
        made: what the first of them made, in order.
        differences: names whose dimensions, bytes or bytes held are others than computed.
    """

    layers: int
    made: tuple[Made, ...]
    peak: Peak
    differences: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "layers": self.layers,
            "activations": [one.to_dict() for one in self.made],
            "peak": self.peak.to_dict(),
            "differences": list(self.differences),
        }


@dataclass(frozen=True, slots=True)
class Run:
    """A prefill and a decode step of a model."""

    prefill: Ledger
    decode: Ledger
    cache: Cache


def run_measured(folder: Folder, tokens: int) -> Run:
    """Run a prefill of ``tokens`` tokens, and a decode step whose token is the last of as many."""
    decoder = folder.decoder
    ids = np.arange(tokens)[None] % folder.config.vocabulary
    prefill, decode, cache = Ledger(), Ledger(), decoder.new_cache()
    decoder.forward(ids, decoder.new_cache(), watch=prefill, last_only=True)
    if tokens > 1:
        decoder.forward(ids[:, :-1], cache, last_only=True)
    decoder.forward(ids[:, -1:], cache, watch=decode, last_only=True)
    return Run(prefill, decode, cache)


def compare(ledger: Ledger, indices: tuple[int, ...], predicted: tuple[Activation, ...]) -> Measured:
    """Hold what layers made against what was computed."""
    held = held_at(predicted, flash=False)
    said = {one.life.name: (one.dimensions, one.size_bytes, held.get(one.life.name)) for one in predicted}
    differences: dict[str, None] = {}
    for index in indices:
        seen = {one.name: (one.dimensions, one.size_bytes, one.held_bytes) for one in ledger.layers[index]}
        differences |= {name: None for name in {*said, *seen} if said.get(name) != seen.get(name)}
    first = ledger.layers[indices[0]]
    return Measured(len(indices), tuple(first), measured_peak(first), tuple(sorted(differences)))
