"""Softmax of scores that arrive in pieces: a running maximum and a running sum (arXiv 1805.02867).

What was summed under an older maximum is scaled down when a larger one comes, so the result is that of the
whole row, whatever the pieces.
"""

from __future__ import annotations

import numpy as np

from kvgauge.lab.flash.memory import Floats


class OnlineSoftmax:
    """The softmax-weighted mean of values, for ``num_rows`` queries, one tile of keys at a time."""

    def __init__(self, num_rows: int, width: int) -> None:
        self.maximum = np.full((num_rows, 1), -np.inf)
        self.total = np.zeros((num_rows, 1))
        self.mixed = np.zeros((num_rows, width))

    @property
    def num_elements(self) -> int:
        """Elements that it holds: a maximum, a sum and a row of outputs for each query."""
        return self.maximum.size + self.total.size + self.mixed.size

    def add(self, scores: Floats, values: Floats) -> None:
        """Take in scores (rows, keys), -inf where a key may not be seen, and values (keys, width)."""
        maximum = np.maximum(self.maximum, scores.max(axis=1, keepdims=True))
        # A row that has seen no key yet has no maximum to be measured from.
        base = np.where(np.isneginf(maximum), 0.0, maximum)
        kept = np.exp(self.maximum - base)
        weights = np.exp(scores - base)
        self.total = self.total * kept + weights.sum(axis=1, keepdims=True)
        self.mixed = self.mixed * kept + weights @ values
        self.maximum = maximum

    @property
    def result(self) -> Floats:
        """The weighted means (rows, width); a row that saw no key is NaN."""
        with np.errstate(invalid="ignore"):
            return self.mixed / self.total
