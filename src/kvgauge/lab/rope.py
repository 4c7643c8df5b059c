"""Rotary position embedding: which angle each pair of a head's values is turned by at each position.

Sources: RoFormer (arXiv 2104.09864); Llama 3.1's scaling as Transformers 5 computes it
(``modeling_rope_utils``: long wavelengths are stretched, short ones kept, those between mixed).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi

import numpy as np

from kvgauge.errors import FeatureUnsupportedError, InvalidFieldError
from kvgauge.lab.arrays import Floats

DEFAULT_BASE = 10_000.0


@dataclass(frozen=True, slots=True)
class Rope:
    """How positions are turned into angles.

    Args:
        base: frequency base, ``rope_theta``.
        kind: ``default``, ``linear`` or ``llama3``.
        factor: what wavelengths are stretched by.
        low, high: ``low_freq_factor`` and ``high_freq_factor`` of llama3.
        old_tokens: ``original_max_position_embeddings`` of llama3.
    """

    base: float = DEFAULT_BASE
    kind: str = "default"
    factor: float = 1.0
    low: float = 1.0
    high: float = 4.0
    old_tokens: float = 8192.0

    def frequencies(self, width: int) -> Floats:
        """Return radians per position of each of the ``width / 2`` pairs."""
        plain = self.base ** -(np.arange(0, width, 2, dtype=np.float64) / width)
        if self.kind != "llama3":
            return plain / self.factor
        wavelengths = 2 * pi / plain
        mix = np.clip((self.old_tokens / wavelengths - self.low) / (self.high - self.low), 0, 1)
        return (1 - mix) * plain / self.factor + mix * plain

    def turns(self, first: int, count: int, width: int) -> tuple[Floats, Floats]:
        """Return cosines and sines for ``count`` positions from ``first``, each [count, width]."""
        angles = np.outer(np.arange(first, first + count), self.frequencies(width))
        both = np.concatenate([angles, angles], axis=-1)
        return np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)


def turn(vectors: Floats, turns: tuple[Floats, Floats]) -> Floats:
    """Return vectors [..., tokens, width] turned; value i is turned together with value i + width / 2."""
    cosines, sines = turns
    half = vectors.shape[-1] // 2
    partner = np.concatenate([-vectors[..., half:], vectors[..., :half]], axis=-1)
    turned: Floats = vectors * cosines + partner * sines
    return turned


def read_rope(config: Mapping[str, object]) -> Rope:
    """Return what a config says: ``rope_theta`` and ``rope_scaling``, or ``rope_parameters`` of newer files.

    Raises:
        FeatureUnsupportedError: a kind that is not run here. InvalidFieldError: an impossible number.
    """
    said = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(said, Mapping):
        raise InvalidFieldError(
            "rope_scaling is no object", hint="see the model's page", field="rope_scaling"
        )
    part = said.get("partial_rotary_factor", config.get("partial_rotary_factor"))
    if part not in (None, 1):
        raise FeatureUnsupportedError(
            "heads that are turned in part are not run here",
            hint="kvgauge size and explain answer for the others",
            field="partial_rotary_factor",
        )
    base = _number(said.get("rope_theta", config.get("rope_theta")), "rope_theta", DEFAULT_BASE)
    kind = said.get("rope_type", said.get("type", "default"))
    if kind in (None, "default"):
        return Rope(base)
    if kind not in ("linear", "llama3"):
        raise FeatureUnsupportedError(
            f"positions of the kind {kind} are not run here",
            hint="default, linear or llama3",
            field="rope_type",
        )
    factor = _number(said.get("factor"), "factor", 1.0)
    if kind == "linear":
        return Rope(base, "linear", factor)
    old = said.get("original_max_position_embeddings", config.get("max_position_embeddings"))
    low, high = (
        _number(said.get(f"{end}_freq_factor"), f"{end}_freq_factor", 1.0) for end in ("low", "high")
    )
    if low >= high:
        raise InvalidFieldError(
            "low_freq_factor is not below high_freq_factor", hint="see the model's page", field="rope_scaling"
        )
    return Rope(base, "llama3", factor, low, high, _number(old, "original_max_position_embeddings", 8192.0))


def _number(value: object, name: str, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
        raise InvalidFieldError(f"{name} is no positive number", hint="see the model's page", field=name)
    return float(value)
