"""What a model weighs, from the best that is known of it: its tensors, else its config's shapes and scheme.

Weights that can't be known are None with a note that says why; a cache is sized without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.errors import KvgaugeError
from kvgauge.readers import is_gguf
from kvgauge.sources import RawModel
from kvgauge.stored_weights import PartBytes, StoredWeights
from kvgauge.workload import Parallelism


class Weighed(NamedTuple):
    """The weights of a model, or why there are none."""

    stored: StoredWeights | None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class WeightAnswer:
    """The ``weights`` of an answer.

    Args:
        mtp: the multi-token-prediction module is loaded too.
        grade: ``exact`` from shapes, rules and headers; ``assumed`` where a scheme is asked for that the
            checkpoint does not have, or only a total is stated.
    """

    stored: StoredWeights
    architecture: ModelArchitecture
    parallelism: Parallelism
    mtp: bool = False
    grade: str = "exact"

    @cached_property
    def total_bytes(self) -> int:
        """Bytes of the whole model once, a tied head once, multi-token prediction where asked for."""
        return self.stored.num_bytes + (self.stored.mtp_bytes if self.mtp else 0)

    @property
    def because(self) -> str:
        """What the bytes follow from, for an allocation."""
        return f"{self.stored.num_parameters:,} parameters, {self.stored.scheme or 'as stored'}"

    @cached_property
    def by_part(self) -> tuple[PartBytes, ...]:
        """The parts that make up ``total_bytes``."""
        return self.stored.by_part(mtp=self.mtp)

    @cached_property
    def per_rank_bytes(self) -> tuple[int, ...]:
        """One entry a rank (pipeline stage x tensor ranks + tensor rank), replication included.

        Raises:
            FeatureUnsupportedError: a shape can't be divided this way.
        """
        if self.parallelism.num_gpus == 1:
            return (self.total_bytes,)
        from kvgauge.weight_ranks import THEORY, rank_bytes  # noqa: PLC0415 - one GPU needs no split

        return rank_bytes(
            self.stored,
            self.parallelism,
            num_layers=self.architecture.num_layers,
            policy=THEORY,
            mtp=self.mtp,
        )

    def to_dict(self) -> dict[str, object]:
        """Return the ``weights`` object of the contract."""
        stored = self.stored
        return {
            "total_bytes": self.total_bytes,
            "num_parameters": stored.num_parameters,
            "num_active_parameters": stored.num_active_parameters,
            "by_part": [
                {
                    "part": row.part.value,
                    "num_parameters": row.num_parameters,
                    "dtype": row.dtype,
                    "bytes": row.num_bytes,
                }
                for row in self.by_part
            ],
            "per_rank_bytes": list(self.per_rank_bytes),
            "grade": self.grade,
            "source": stored.source,
            "scheme": stored.scheme,
            "mtp_bytes": stored.mtp_bytes,
            "checkpoint_bytes": stored.file_bytes,
        }


def answer_weights(
    model: Weighable, parallelism: Parallelism, *, scheme: str | None, mtp: bool
) -> tuple[WeightAnswer | None, tuple[Note, ...]]:
    """Return the weights of an answer and what to say about them.

    Args:
        scheme: a quantisation asked for with ``--weights``; None is the one that the model has.

    Raises:
        KvgaugeError: the scheme is not known or not possible, or a shape can't be divided over the ranks.
    """
    if scheme is None:
        stored, notes = model.weighed
        grade = "exact" if stored is None or stored.source != "index" else "assumed"
    else:
        stored, notes = weigh_as(model.raw, model.architecture, scheme)
        grade = "assumed"
    if stored is None:
        return None, notes
    answer = WeightAnswer(stored, model.architecture, parallelism, mtp=mtp, grade=grade)
    _ = answer.per_rank_bytes  # refuses an impossible split now, not when it is printed
    return answer, notes


class Weighable(Protocol):
    """A model whose weights can be asked for."""

    @property
    def raw(self) -> RawModel: ...  # noqa: D102
    @property
    def architecture(self) -> ModelArchitecture: ...  # noqa: D102
    @property
    def weighed(self) -> Weighed: ...  # noqa: D102


def weigh_as(raw: RawModel, architecture: ModelArchitecture, scheme: str) -> Weighed:
    """Return the weights in a scheme that the model is not published in."""
    raise NotImplementedError


def weigh(raw: RawModel, architecture: ModelArchitecture) -> Weighed:
    """Return the weights of a model as it is published."""
    try:
        stored = _from_gguf(raw) if is_gguf(raw.config) else _from_config(raw, architecture)
    except KvgaugeError as error:
        return Weighed(None, (_unknown(error.message),))
    if stored is None:
        return Weighed(
            None, (_unknown(f"the tensors of {architecture.model_type or 'this type'} are not known"),)
        )
    return Weighed(stored, stored.notes)


def _unknown(why: str) -> Note:
    text = f"the weights are not counted: {why}"
    return Note("weights_unknown", "warning", text, (("why", why),))


def _from_config(raw: RawModel, architecture: ModelArchitecture) -> StoredWeights | None:
    from kvgauge.readers.hf.weights import read_weights  # noqa: PLC0415 - one dialect is loaded
    from kvgauge.stored_weights import StoredFamily  # noqa: PLC0415
    from kvgauge.weight_formats import plain  # noqa: PLC0415

    weights = read_weights(raw.config)
    if weights is None:
        return None
    own = plain(architecture.model_dtype)
    return StoredWeights(
        tuple(StoredFamily(f, own) for f in weights.families),
        tuple(StoredFamily(f, own) for f in weights.mtp_families),
        "config",
        weights.num_parameters,
        weights.num_active_parameters,
        architecture.model_dtype,
        weights.notes,
    )


def _from_gguf(raw: RawModel) -> StoredWeights | None:
    return None
