"""TensorRT-LLM as an engine of the commands: options and flags become settings, plans become answers."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import Demand, Experts, PlainEngine, RequestedDtypes
from kvgauge.engines.serving_weights import shard_policy
from kvgauge.engines.setup import PLAIN_SETUP, Setup
from kvgauge.engines.tensorrt_llm.capacity import TrtllmCapacity
from kvgauge.engines.tensorrt_llm.demand import group_demands, reserved
from kvgauge.engines.tensorrt_llm.flags import parse_flags
from kvgauge.engines.tensorrt_llm.kv_dtypes import known_word
from kvgauge.engines.tensorrt_llm.planning import pipeline_stages
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
from kvgauge.engines.tensorrt_llm.versions import NEWEST, parse_version, rules_for
from kvgauge.engines.versions import known_version
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.sharding import ShardPolicy
from kvgauge.workload import Workload

#: Settings that options say too: field -> name of the option.
_OPTIONS = {
    "pipeline": "pp",
    "expert": "ep",
    "kv_dtype": "kv_dtype",
    "state_dtype": "state_dtype",
    "max_seq_tokens": "max_model_len",
    "free_fraction": "utilization",
}


class TrtllmEngine(PlainEngine):
    """TensorRT-LLM, from 0.8 on."""

    name = "tensorrt-llm"

    def resolve_version(self, version: str | None) -> tuple[str | None, tuple[Note, ...]]:
        """Return the version, and a note where it is newer than what is known.

        Raises:
            InvalidRequestError: not a version.
            FeatureUnsupportedError: older than what is known.
        """
        return known_version(self.name, version, NEWEST, rules_for, parse_version)

    def told(self, args: str) -> Mapping[str, object]:
        """Return what the flags say of options; attention groups count as replicas, each with its own cache.

        Raises:
            InvalidRequestError: a flag is malformed.
        """
        plain, settings = TrtllmSettings(), parse_flags(args)
        found: dict[str, object] = {
            option: getattr(settings, name)
            for name, option in _OPTIONS.items()
            if getattr(settings, name) != getattr(plain, name)
        }
        if settings.tensor > 1:
            found["tp"] = settings.attention_ranks
        if settings.attention_dp:
            found["dp"] = settings.tensor
            found.setdefault("ep", settings.tensor)  # experts are cut over the ranks of all groups
        if settings.mtp:
            found["mtp"] = settings.draft_tokens
        return found

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
        """Return the blocks and states that these sequences take.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: this version or dtype can't hold the model.
        """
        found = self.capacity(architecture, workload, dtypes, version=version, args=args, setup=setup)
        demands = group_demands(found.plan, architecture, mtp=bool(workload.mtp))
        return Demand(
            demands.groups,
            found.dtypes,
            found.notes,
            found.details,
            demands.kept,
            demands.used,
            reserved(found.plan),
            stages=found.plan.stage_layers,
        )

    def capacity(
        self,
        architecture: ModelArchitecture,
        workload: Workload,
        dtypes: RequestedDtypes,
        *,
        version: str | None = None,
        args: str = "",
        setup: Setup = PLAIN_SETUP,
    ) -> TrtllmCapacity:
        """Return what a pool becomes under this load.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: this version or dtype can't hold the model.
        """
        settings = settings_of(workload, dtypes, version=version, args=args, setup=setup)
        if workload.shared_prefix_tokens and not settings.block_reuse:
            raise FeatureUnsupportedError(
                "tensorrt-llm shares no prefix here: its blocks are not reused",
                hint="leave --shared-prefix out, or enable_block_reuse=false",
                field="shared-prefix",
            )
        return TrtllmCapacity.of(settings, architecture, workload, args, setup.parallelism.data)

    def shard_policy(self, architecture: ModelArchitecture, setup: Setup, experts: Experts) -> ShardPolicy:
        """Return how TensorRT-LLM cuts weights, as far as it is known."""
        del setup, experts
        return shard_policy(architecture, vocabulary_multiple=1, stages=pipeline_stages)


def settings_of(
    workload: Workload, dtypes: RequestedDtypes, *, version: str | None, args: str, setup: Setup
) -> TrtllmSettings:
    """Return the settings that options and flags make; the flags win.

    Raises:
        InvalidRequestError: K and V in two dtypes, or a malformed flag.
        FeatureUnsupportedError: a flag or ranks whose effect is not known.
    """
    if dtypes.k != dtypes.v:
        raise InvalidRequestError(
            "tensorrt-llm keeps K and V in one dtype", hint="give one --kv-dtype", field="kv_dtype"
        )
    spread = setup.parallelism
    if spread.context > 1:
        raise FeatureUnsupportedError(
            "what tensorrt-llm keeps under decode context parallelism is not known",
            hint="leave --dcp out",
            field="dcp",
        )
    # replicas that share their experts are attention groups, one a tensor rank
    groups = spread.data > 1 and spread.tensor == 1 and spread.expert == spread.data
    if spread.data > 1 and spread.expert > spread.tensor and not groups:
        raise FeatureUnsupportedError(
            "replicas of tensorrt-llm share experts only where attention has one rank in each",
            hint="--tp 1 with --ep as large as --dp, or an --ep that divides --tp",
            field="ep",
        )
    reserve = workload.context_tokens if setup.reserve_tokens is None else setup.reserve_tokens
    settings = parse_flags(
        args,
        TrtllmSettings(
            version=version,
            tensor=spread.data if groups else spread.tensor,
            pipeline=spread.pipeline,
            expert=spread.expert,
            attention_dp=groups,
            kv_dtype="auto" if setup.kv_word is None else known_word(setup.kv_word),
            max_seq_tokens=max(1, reserve) if setup.reserve_tokens != 0 else None,
            state_dtype=dtypes.state,
            draft_tokens=workload.mtp,
            mtp=bool(workload.mtp),
            free_fraction=setup.utilization,
        ),
    )
    if settings.attention_dp and (settings.attention_ranks, settings.tensor) != (spread.tensor, spread.data):
        raise InvalidRequestError(
            "attention groups need their ranks beside them among the engine's flags",
            hint="--engine-args '--tp_size 8 --enable_attention_dp', and no --tp or --dp",
            field="engine-args",
        )
    return settings


ENGINE = TrtllmEngine()
__all__ = ["ENGINE", "TrtllmCapacity", "TrtllmEngine", "settings_of"]
