"""What a model weighs, from the best that is known of it: its tensors, else its config's shapes and scheme.

Weights that can't be known are None with a note that says why; a cache is sized without them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.errors import FeatureUnsupportedError, KvgaugeError
from kvgauge.readers import is_gguf
from kvgauge.sources import RawModel
from kvgauge.stored_weights import PartBytes, StoredWeights
from kvgauge.weights import ModelWeights
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from collections.abc import Callable

    from kvgauge.quantiser_commands import Command
    from kvgauge.sources.weight_files import Progress
    from kvgauge.weight_schemes import Scheme
    from kvgauge.what_if import AdviceRow


@dataclass(frozen=True)
class WhatIf:
    """A quantisation that was asked for: what it keeps, what that costs, and how it is made."""

    model_id: str
    scheme: Scheme
    weights: ModelWeights
    model_dtype: str

    @cached_property
    def advice(self) -> tuple[AdviceRow, ...]:
        """What is sensitive, part by part."""
        from kvgauge.what_if import sensitivity  # noqa: PLC0415 - few ask

        return sensitivity(self.weights, self.scheme, self.model_dtype)

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        """The quantisers' commands."""
        from kvgauge.quantiser_commands import quantiser_commands  # noqa: PLC0415 - few ask

        return quantiser_commands(self.model_id, self.weights, self.scheme, self.model_dtype)

    def to_dict(self) -> dict[str, object]:
        """Return the ``what_if`` object."""
        return {
            "scheme": self.scheme.text,
            "advice": [
                {
                    "part": row.part.value,
                    "advice": row.advice,
                    "kept": row.is_kept,
                    "num_parameters": row.num_parameters,
                    "bytes": row.num_bytes,
                    "bytes_unquantised": row.bytes_now,
                    "keeping_costs_bytes": row.keeping_costs_bytes,
                    "source": row.source,
                }
                for row in self.advice
            ],
            "commands": [
                {
                    "tool": command.tool,
                    "language": command.language,
                    "text": command.text,
                    "ignore": list(command.ignore),
                }
                for command in self.commands
            ],
        }


class Weighed(NamedTuple):
    """The weights of a model, or why there are none."""

    stored: StoredWeights | None
    notes: tuple[Note, ...] = ()
    what_if: WhatIf | None = None


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
    what_if: WhatIf | None = None

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
            "what_if": self.what_if.to_dict() if self.what_if else None,
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
        stored, notes, what_if = model.weighed
        grade = "exact" if stored is None or stored.source != "index" else "assumed"
    else:
        stored, notes, what_if = weigh_as(model.raw, model.architecture, scheme)
        grade = "assumed"
    if stored is None:
        return None, notes
    answer = WeightAnswer(stored, model.architecture, parallelism, mtp, grade, what_if)
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


def weigh_as(raw: RawModel, architecture: ModelArchitecture, word: str) -> Weighed:
    """Return the weights in a scheme that the model need not be published in.

    Raises:
        KvgaugeError: the scheme is not known, or the model's tensors are not.
    """
    from kvgauge.what_if import parse_scheme, reweigh  # noqa: PLC0415 - few ask

    scheme = parse_scheme(word)
    weights = _families(raw)
    if weights is None:
        raise FeatureUnsupportedError(
            f"--weights {word[:40]}: the tensors of {architecture.model_type or 'this type'} are not known",
            hint="leave --weights out",
            field="weights",
        )
    stored = reweigh(weights, scheme, architecture.model_dtype)
    asked = WhatIf(raw.id, scheme, weights, architecture.model_dtype)
    return Weighed(stored, stored.notes, asked)


def weigh(raw: RawModel, architecture: ModelArchitecture, progress: Progress | None = None) -> Weighed:
    """Return the weights of a model as it is published.

    Args:
        progress: told of weight files as their headers are read.

    Raises:
        DamagedFileError: a weight file that the user named is damaged.
    """
    if is_gguf(raw.config):
        return _weighed(lambda: _from_gguf(raw), architecture)
    held = Weighed(None) if raw.overrides else _from_files(raw, architecture, progress)
    if held.stored is not None:
        return held
    stored, notes, _ = _weighed(lambda: _from_config(raw, architecture), architecture)
    return Weighed(stored, (*held.notes, *notes))


def _weighed(read: Callable[[], StoredWeights | None], architecture: ModelArchitecture) -> Weighed:
    """Return what is read, or a note that says why it can't be."""
    try:
        stored = read()
    except KvgaugeError as error:
        return Weighed(None, (_unknown(error.message),))
    if stored is None:
        kind = architecture.model_type or "this type"
        return Weighed(None, (_unknown(f"the tensors of {kind} are not known"),))
    return Weighed(stored, stored.notes)


def _from_files(raw: RawModel, architecture: ModelArchitecture, progress: Progress | None) -> Weighed:
    """Return the weights that lie beside the config, or none with notes."""
    found = raw.weight_files.read(progress) if raw.weight_files is not None else None
    if found is None:
        return Weighed(None)
    from kvgauge.file_weights import weights_from_files  # noqa: PLC0415 - few models have files

    try:
        weights = _families(raw)
    except KvgaugeError:
        weights = None  # the tensors speak for themselves
    stored, notes = weights_from_files(found, weights, architecture.num_layers, architecture.model_dtype)
    return Weighed(stored, notes)


def _unknown(why: str) -> Note:
    text = f"the weights are not counted: {why}"
    return Note("weights_unknown", "info", text, (("why", why),))


def _families(raw: RawModel) -> ModelWeights | None:
    from kvgauge.readers.hf.weights import read_weights  # noqa: PLC0415 - one dialect is loaded

    return read_weights(raw.config)


def _from_config(raw: RawModel, architecture: ModelArchitecture) -> StoredWeights | None:
    from kvgauge.readers.hf.schemes import stored_weights  # noqa: PLC0415 - one dialect is loaded

    weights = _families(raw)
    if weights is None:
        return None
    stored = stored_weights(weights, raw.config, raw.quantization, architecture.model_dtype)
    return replace(
        stored,
        num_parameters=weights.num_parameters,
        num_active_parameters=weights.num_active_parameters,
    )


def _from_gguf(raw: RawModel) -> StoredWeights | None:
    return None
