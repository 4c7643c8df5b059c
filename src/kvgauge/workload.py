"""The load a model is sized for, and how it is spread over devices."""

from __future__ import annotations

from itertools import pairwise

from kvgauge.errors import InvalidRequestError
from kvgauge.layers import Axis
from kvgauge.units import MAX_SEQUENCES, MAX_TOKENS
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class Workload:
    """What is held at once.

    Args:
        context_tokens: tokens of one sequence.
        sequences: sequences held at once.
        encoder_tokens: encoder positions of one sequence, held by cross-attention.
        image_tokens: image or video positions held by cross-attention.
        shared_prefix_tokens: tokens that all sequences share, kept once.
        mtp: speculative tokens; 0 leaves multi-token-prediction layers out.
    """

    context_tokens: int
    sequences: int = 1
    encoder_tokens: int = 0
    image_tokens: int = 0
    shared_prefix_tokens: int = 0
    mtp: int = 0

    def __post_init__(self) -> None:
        bounds = {
            "context": (self.context_tokens, 0, MAX_TOKENS),
            "sequences": (self.sequences, 1, MAX_SEQUENCES),
            "encoder-tokens": (self.encoder_tokens, 0, MAX_TOKENS),
            "image-tokens": (self.image_tokens, 0, MAX_TOKENS),
            "shared-prefix": (self.shared_prefix_tokens, 0, MAX_TOKENS),
            "mtp": (self.mtp, 0, 64),
        }
        for name, (value, low, high) in bounds.items():
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidRequestError(
                    f"--{name} must be a whole number from {low} to {high}, not {value!r}", field=name
                )
        if self.shared_prefix_tokens > self.context_tokens:
            raise InvalidRequestError(
                f"--shared-prefix {self.shared_prefix_tokens} is longer than the context of "
                f"{self.context_tokens} tokens that it belongs to",
                hint="a prefix is a part of each sequence",
                field="shared-prefix",
            )

    def tokens_on(self, axis: Axis) -> int:
        """Return the tokens of one sequence along an axis."""
        if axis is Axis.ENCODER:
            return self.encoder_tokens
        if axis is Axis.IMAGE:
            return self.image_tokens
        return self.context_tokens


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Ranks of each kind. ``context`` is decode context parallelism inside the tensor ranks."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 1
    context: int = 1

    def __post_init__(self) -> None:
        names = ("tp", "pp", "dp", "ep", "dcp")
        values = (self.tensor, self.pipeline, self.data, self.expert, self.context)
        for name, value in zip(names, values, strict=True):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 4096:
                raise InvalidRequestError(f"--{name} must be a whole number from 1 to 4096", field=name)
        if self.tensor % self.context:
            raise InvalidRequestError(
                f"--dcp {self.context} does not divide --tp {self.tensor}",
                hint="decode context parallelism works inside the tensor-parallel ranks",
                field="dcp",
            )

    @property
    def num_gpus(self) -> int:
        """Devices of all replicas; expert and context parallelism use the same ones."""
        return self.tensor * self.pipeline * self.data


def pipeline_stages(num_layers: int, stages: int) -> tuple[range, ...]:
    """Return the layers of each pipeline stage.

    Layers that are left over go one each to the stages before the last, from the back
    (vLLM ``distributed/utils.py`` get_pp_indices).

    >>> [len(stage) for stage in pipeline_stages(30, 4)]
    [7, 8, 8, 7]
    """
    sizes = [num_layers // stages] * stages
    for offset in range(2, num_layers % stages + 2):
        sizes[-offset] += 1
    bounds = [0]
    for size in sizes:
        bounds.append(bounds[-1] + size)
    return tuple(range(start, stop) for start, stop in pairwise(bounds))
