"""Theory: what must be kept, whatever the engine.

K and V in the KV dtype, latents and records as one vector, index keys in their own format, state in
the dtype that the config declares (else fp32), convolution in the model dtype with kernel - 1 columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.architecture import LayerGroup, ModelArchitecture, Note
from kvgauge.dtypes import display_dtype
from kvgauge.engines.base import Demand, GroupDemand, PlainEngine, RequestedDtypes, StreamDemand
from kvgauge.engines.setup import PLAIN_SETUP, Setup
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.layers import Role, Stream
from kvgauge.workload import Parallelism, Workload

if TYPE_CHECKING:
    from kvgauge.engines.theory_pool import TheoryCapacity


def resolve_dtypes(
    architecture: ModelArchitecture, asked: RequestedDtypes
) -> tuple[RequestedDtypes, tuple[Note, ...]]:
    """Fill in ``auto``: what the checkpoint prescribes for K and V, else the model dtype."""
    auto = architecture.prescribed_kv_dtype or architecture.model_dtype
    resolved = RequestedDtypes(asked.k or auto, asked.v or auto, asked.state, asked.index)
    notes: list[Note] = []
    if architecture.prescribed_kv_dtype and not (asked.k and asked.v):
        word = display_dtype(architecture.prescribed_kv_dtype)
        notes.append(
            Note(
                "kv_dtype_prescribed",
                "info",
                f"the checkpoint asks for a {word} KV cache ({architecture.prescribed_by})",
                (("dtype", word), ("field", architecture.prescribed_by)),
            )
        )
    return resolved, tuple(notes)


def stream_dtype(stream: Stream, dtypes: RequestedDtypes, model_dtype: str) -> str:
    """Return the canonical dtype that a stream is kept in.

    Raises:
        InvalidRequestError: K and V dtypes differ where one latent serves as both.
    """
    match stream.role:
        case Role.KEY:
            return dtypes.k or model_dtype
        case Role.VALUE:
            return dtypes.v or model_dtype
        case Role.INDEX:
            return dtypes.index or stream.declared_dtype or model_dtype
        case Role.RECURRENT:
            return dtypes.state or stream.declared_dtype or "f32"
        case Role.COMPRESSOR | Role.CONV:
            return stream.declared_dtype or model_dtype
    if dtypes.k != dtypes.v:
        raise InvalidRequestError(
            f"K in {dtypes.k} and V in {dtypes.v}: this model keeps one latent that is both",
            hint="give one --kv-dtype",
            field="kv_dtype",
        )
    return dtypes.k or model_dtype


def untouched_note(
    architecture: ModelArchitecture, asked: RequestedDtypes, groups: tuple[GroupDemand, ...]
) -> tuple[Note, ...]:
    """Say which streams a requested KV dtype leaves alone."""
    if asked.k is None and asked.v is None:
        return ()
    kept: dict[str, str] = {}
    for demand in groups:
        for stream in demand.streams:
            if stream.role in (Role.RECURRENT, Role.CONV, Role.INDEX, Role.COMPRESSOR):
                kept[stream.role.value] = display_dtype(stream.dtype)
            elif stream.role is Role.ROPE and stream.dtype == "fp8_ds_mla":
                kept["rope"] = "bf16"
    if not kept:
        return ()
    text = ", ".join(f"{role} in {dtype}" for role, dtype in kept.items())
    return (Note("kv_dtype_partial", "info", f"the KV dtype does not touch: {text}", (("streams", text),)),)


class TheoryEngine(PlainEngine):
    """The engine-free answer."""

    name = "theory"

    def resolve_version(self, version: str | None) -> tuple[str | None, tuple[Note, ...]]:
        """Theory has no version."""
        if version:
            raise InvalidRequestError("theory has no versions", hint="write --engine theory", field="engine")
        return None, ()

    def demand(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None = None,
        args: str = "",
        setup: Setup = PLAIN_SETUP,
    ) -> Demand:
        """Return every stream as the config describes it."""
        del setup
        if args.strip():
            raise InvalidRequestError("theory takes no --engine-args", field="engine-args")
        resolved, notes = resolve_dtypes(architecture, dtypes)
        groups = tuple(
            _group_demand(group, resolved, architecture.model_dtype)
            for group in (*architecture.groups, *(architecture.mtp_groups if workload.mtp else ()))
        )
        return Demand(groups, resolved, (*notes, *untouched_note(architecture, dtypes, groups)))

    def capacity(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None = None,
        args: str = "",
        setup: Setup = PLAIN_SETUP,
    ) -> TheoryCapacity:
        """Return what a room holds by the rule of thumb ``W + K + 0.1 W``.

        Raises:
            FeatureUnsupportedError: more than one pipeline stage, or context parallelism.
        """
        from kvgauge.engines.theory_pool import TheoryCapacity  # noqa: PLC0415 - only a fit has a pool

        _one_stage(setup.parallelism)
        found = self.demand(architecture, workload, dtypes, version=version, args=args)
        return TheoryCapacity(found, workload, setup.parallelism)


def _one_stage(spread: Parallelism) -> None:
    for word, ranks in (("pp", spread.pipeline), ("dcp", spread.context)):
        if ranks > 1:
            raise FeatureUnsupportedError(
                f"the rule of thumb knows no --{word}",
                hint="--engine vllm plans stages and context parallelism",
                field=word,
            )


def _group_demand(group: LayerGroup, dtypes: RequestedDtypes, model_dtype: str) -> GroupDemand:
    streams = tuple(StreamDemand.of(s, stream_dtype(s, dtypes, model_dtype)) for s in group.streams)
    return GroupDemand(group, streams)


ENGINE = TheoryEngine()
