"""The ``weights`` of an answer: bytes by part and rank, and what a scheme that was asked for costs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kvgauge.architecture import ModelArchitecture
from kvgauge.stored_weights import PartBytes, StoredWeights
from kvgauge.values import dataclass
from kvgauge.weights import ModelWeights
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from kvgauge.engines.base import Offload
    from kvgauge.engines.llamacpp_weights import GgufLayout, GgufPlacement
    from kvgauge.quantiser_commands import Command
    from kvgauge.sharding import RankTensor, ShardPolicy
    from kvgauge.weight_schemes import Scheme
    from kvgauge.what_if import AdviceRow


#: Loaded weights may be a little less than those of the file: what is tied or repeated there.
LOADED_AT_LEAST = 0.98


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


@dataclass(frozen=True)
class WeightAnswer:
    """The ``weights`` of an answer.

    Args:
        mtp: the multi-token-prediction module is loaded too.
        grade: ``exact`` from shapes, rules and headers; ``assumed`` where a scheme is asked for that the
            checkpoint does not have, or only a total is stated.
        policy: how the engine cuts and pads weights; None: evenly.
        offload: layers of a GGUF on devices; None: all on one.
        elsewhere: on none of the devices: only the shapes are of use.
    """

    stored: StoredWeights
    architecture: ModelArchitecture
    parallelism: Parallelism
    mtp: bool = False
    grade: str = "exact"
    what_if: WhatIf | None = None
    layout: GgufLayout | None = None
    policy: ShardPolicy | None = None
    offload: Offload | None = None
    elsewhere: bool = False

    @cached_property
    def total_bytes(self) -> int:
        """Bytes of the whole model once, a tied head once, multi-token prediction where asked for."""
        if self.elsewhere:
            return 0
        return self.stored.num_bytes + (self.stored.mtp_bytes if self.mtp else 0)

    @property
    def because(self) -> str:
        """What the bytes follow from, for an allocation."""
        count = self.stored.num_parameters
        return f"{f'{count:,} parameters' if count else 'tensors'}, {self.stored.scheme or 'as stored'}"

    @cached_property
    def placement(self) -> tuple[tuple[str, int], ...]:
        """(place, bytes) of a GGUF as llama.cpp places it, on one GPU unless told otherwise; empty elsewhere.

        The embedding stays on the host; where it is the head too, the GPU has a second copy.
        """
        placed = self.gguf
        if placed is None:
            return ()
        devices = ((f"gpu:{number}", size) for number, size in enumerate(placed.device_bytes))
        return (*devices, ("host", placed.host_bytes))

    @cached_property
    def gguf(self) -> GgufPlacement | None:
        """The weights of a GGUF as llama.cpp places them; None of other engines."""
        if self.layout is None:
            return None
        from kvgauge.engines.base import Offload  # noqa: PLC0415 - as below
        from kvgauge.engines.llamacpp_weights import gguf_placement, in_ggml_names  # noqa: PLC0415 - GGUF

        told = self.offload or Offload()
        return gguf_placement(
            in_ggml_names(self.stored),
            self.layout,
            offloaded=told.layers,
            shares=told.shares,
            host_expert_blocks=told.host_expert_blocks,
            overrides=told.overrides,
            mtp=self.mtp,
        )

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
        if self.elsewhere:
            return (0,) * (self.parallelism.pipeline * self.parallelism.tensor)
        if self.parallelism.num_gpus == self.parallelism.expert == 1 and self.policy is None:
            return (self.total_bytes,)
        if self.offload is not None:  # what lies on the host is on no device
            return tuple(size for place, size in self.placement if place != "host")
        from kvgauge.weight_ranks import THEORY, rank_bytes  # noqa: PLC0415 - one GPU needs no split

        return rank_bytes(
            self.stored,
            self.parallelism,
            num_layers=self.architecture.num_layers,
            policy=self.policy or THEORY,
            mtp=self.mtp,
        )

    def rank_tensors(self, stage: int) -> tuple[RankTensor, ...]:
        """Return the tensors of the first rank of a pipeline stage."""
        from kvgauge.weight_ranks import THEORY, rank_tensors  # noqa: PLC0415 - only explanations ask

        return rank_tensors(
            self.stored,
            self.parallelism,
            num_layers=self.architecture.num_layers,
            policy=self.policy or THEORY,
            stage=stage,
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
            "placement": [{"place": place, "bytes": size} for place, size in self.placement] or None,
            "what_if": self.what_if.to_dict() if self.what_if else None,
        }
