"""``learn quantised``: every cache format on keys and values, bytes against the error of the output."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvgauge.architecture import Note
from kvgauge.lab.limits import MAX_SEED, bounded
from kvgauge.lab.quantised.errors import FormatRow, channel_spread, compare_formats
from kvgauge.lab.quantised.samples import Sample, SampleShape, make_sample, model_sample

_SHAPE = SampleShape(num_tokens=128, num_heads=8, num_kv_heads=2, head_dim=128)
_MODEL_TOKENS = 128


@dataclass(frozen=True, slots=True)
class SampleRows:
    """Every format on one sample.

    Args:
        name: ``even``, all channels alike; ``outliers``, some channels of K large; ``shipped_model``, what
            the small model that ships computes on a text of its own.
        num_layers: whose heads stand side by side.
        num_kv_heads: of one layer.
        key_spread, value_spread: the largest channel's size over the middle one's.
    """

    name: str
    num_tokens: int
    num_layers: int
    num_kv_heads: int
    head_dim: int
    key_spread: float
    value_spread: float
    rows: tuple[FormatRow, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        named = {name: getattr(self, name) for name in self.__slots__ if name != "rows"}
        return {**named, "formats": [row.to_dict() for row in self.rows]}


@dataclass(frozen=True, slots=True)
class QuantisedAnswer:
    """The answer of ``learn quantised``."""

    shape: SampleShape
    seed: int
    samples: tuple[SampleRows, ...]
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_quantised/1`` object."""
        shape = self.shape
        return {
            "schema": "kvgauge.learn_quantised/1",
            "request": {
                "context_tokens": shape.num_tokens,
                "num_heads": shape.num_heads,
                "num_kv_heads": shape.num_kv_heads,
                "head_dim": shape.head_dim,
                "outliers": shape.num_outliers,
                "outlier_factor": shape.outlier_factor,
                "seed": self.seed,
            },
            "samples": [sample.to_dict() for sample in self.samples],
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_quantised(
    *,
    tokens: int | str | None = None,
    head_dim: int | None = None,
    outliers: int | None = None,
    seed: int | None = None,
    offline: bool = False,
) -> QuantisedAnswer:
    """Store the same K and V in every format that the head's width allows.

    Args:
        outliers: channels of each KV head whose keys are ten times as large.

    Raises:
        InvalidRequestError: a number is out of range.
    """
    width = bounded(head_dim, _SHAPE.head_dim, 1, 256, "head-dim")
    shape = replace(
        _SHAPE,
        num_tokens=bounded(tokens, _SHAPE.num_tokens, 1, 2048, "tokens"),
        head_dim=width,
        num_outliers=bounded(outliers, min(_SHAPE.num_outliers, width), 1, width, "outliers"),
    )
    number = bounded(seed, 0, 0, MAX_SEED, "seed")
    samples = {
        "even": make_sample(replace(shape, num_outliers=0), number),
        "outliers": make_sample(shape, number),
        "shipped_model": model_sample(_MODEL_TOKENS, number),
    }
    return QuantisedAnswer(shape, number, tuple(_compared(*sample) for sample in samples.items()))


def _compared(name: str, sample: Sample) -> SampleRows:
    tokens, all_heads, width = sample.keys.shape
    layers = sample.num_layers
    spread = channel_spread(sample.keys), channel_spread(sample.values)
    return SampleRows(name, tokens, layers, all_heads // layers, width, *spread, compare_formats(sample))
