"""Bytes against error: each format on the keys alone, on the values alone, on both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvgauge.dtypes import row_bytes
from kvgauge.lab.codes import Floats
from kvgauge.lab.quantised.formats import FORMATS, CacheFormat
from kvgauge.lab.quantised.samples import Sample, attend
from kvgauge.layers import Role


@dataclass(frozen=True, slots=True)
class FormatRow:
    """One format on one sample. Errors are root mean squares, relative to that of what they disturb.

    Args:
        counted_bytes: K and V as they lie in the arrays, scales included.
        core_bytes: what the core's table says; None where it has no such format.
        bf16_ratio: bytes against those of bf16.
        key_error, value_error: of the stored numbers.
        output_error_keys, output_error_values, output_error_both: of the attention's output, where that
            part is stored so and the rest in float32.
    """

    name: str
    scaling: str
    counted_bytes: int
    core_bytes: int | None
    bf16_ratio: float
    key_error: float
    value_error: float
    output_error_keys: float
    output_error_values: float
    output_error_both: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


def compare_formats(sample: Sample) -> tuple[FormatRow, ...]:
    """Return every format that can hold a head of this width, in the order of ``FORMATS``."""
    true = attend(sample, sample.keys, sample.values)
    width = sample.keys.shape[-1]
    return tuple(_row(form, sample, true) for form in FORMATS if width % form.multiple == 0)


def _row(form: CacheFormat, sample: Sample, true: Floats) -> FormatRow:
    stored_keys, stored_values = form.encode(sample.keys), form.encode(sample.values)
    keys, values = form.decode(stored_keys), form.decode(stored_values)
    counted = stored_keys.num_bytes + stored_values.num_bytes
    return FormatRow(
        form.name,
        form.scaling.value,
        counted,
        _core_bytes(form, sample),
        counted / (2 * (sample.keys.size + sample.values.size)),
        relative_rms(keys - sample.keys, sample.keys),
        relative_rms(values - sample.values, sample.values),
        relative_rms(attend(sample, keys, sample.values) - true, true),
        relative_rms(attend(sample, sample.keys, values) - true, true),
        relative_rms(attend(sample, keys, values) - true, true),
    )


def _core_bytes(form: CacheFormat, sample: Sample) -> int | None:
    if form.core_dtype is None:
        return None
    _, heads, width = sample.keys.shape
    rows = (row_bytes(form.core_dtype, role, heads, width) for role in (Role.KEY, Role.VALUE))
    return sample.num_tokens * sum(rows)


def relative_rms(difference: Floats, true: Floats) -> float:
    """Return the root mean square of a difference over that of the truth; 0 where both are nothing.

    >>> relative_rms(np.array([3.0], np.float32), np.array([4.0], np.float32))
    0.75
    """
    scale = float(np.sqrt(np.mean(np.square(true, dtype=np.float64))))
    error = float(np.sqrt(np.mean(np.square(difference, dtype=np.float64))))
    return error / scale if scale else error


def channel_spread(rows: Floats) -> float:
    """Return how much larger the largest channel of (tokens, heads, width) is than the middle one, in rms.

    >>> channel_spread(np.array([[[1.0, 2.0, 8.0]]], np.float32))
    4.0
    """
    sizes = np.sqrt(np.mean(np.square(rows, dtype=np.float64), axis=0)).ravel()
    middle = float(np.median(sizes))
    return float(sizes.max() / middle) if middle else 1.0
