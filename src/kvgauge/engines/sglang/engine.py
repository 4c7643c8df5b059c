"""SGLang as an engine of the commands: options and flags become settings, plans become answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import Demand, Experts, PlainEngine, RequestedDtypes
from kvgauge.engines.releases import refuse_value, released_word
from kvgauge.engines.serving_cards import gpu_of
from kvgauge.engines.serving_weights import shard_policy
from kvgauge.engines.setup import PLAIN_SETUP, Setup
from kvgauge.engines.sglang.capacity import SglangCapacity
from kvgauge.engines.sglang.demand import group_demands, reserved
from kvgauge.engines.sglang.flags import parse_flags
from kvgauge.engines.sglang.kv_dtypes import KV_WORDS, model_dtype, option_word, refuse_nvfp4
from kvgauge.engines.sglang.launch import DTYPE_WORDS
from kvgauge.engines.sglang.planning import pipeline_stages
from kvgauge.engines.sglang.settings import SglangSettings, SglangSpeculation
from kvgauge.engines.sglang.versions import NEWEST, parse_version, rules_for
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
    "context_tokens": "max_model_len",
    "mem_fraction": "utilization",
}
#: Algorithms that draft with the model's own multi-token-prediction layers where no draft model is named.
_OWN_DRAFTS = ("NEXTN", "EAGLE")
_STEPS = 3
#: Rows of embedding and head are padded up to a multiple of it.
_VOCABULARY_MULTIPLE = 64


class SglangEngine(PlainEngine):
    """SGLang, from 0.4.3 on."""

    name = "sglang"

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
        plain, settings = SglangSettings(), parse_flags(args)
        found: dict[str, object] = {
            option: getattr(settings, name)
            for name, option in _OPTIONS.items()
            if getattr(settings, name) != getattr(plain, name)
        }
        if settings.tensor > 1:
            found["tp"] = settings.attention_ranks
        if settings.data > 1:
            found["dp"] = settings.data
        if settings.attention_groups > 1:
            found.setdefault("ep", settings.tensor)  # experts are cut over the ranks of all groups
        drafts = settings.speculation
        if drafts.algorithm in _OWN_DRAFTS and not drafts.model:
            found["mtp"] = _STEPS if drafts.steps is None else drafts.steps
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
        """Return the pages and slots that these sequences take.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: this version, card or dtype can't hold the model.
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
    ) -> SglangCapacity:
        """Return what a pool becomes under this load.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: this version, card or dtype can't hold the model.
        """
        settings = settings_of(architecture, workload, dtypes, version=version, args=args, setup=setup)
        if workload.shared_prefix_tokens and not settings.radix_cache:
            raise FeatureUnsupportedError(
                "sglang shares no prefix here: its radix cache is off",
                hint="leave out --shared-prefix or --disable-radix-cache",
                field="shared-prefix",
            )
        return SglangCapacity.of(settings, architecture, workload, args)

    def host_weight_bytes(self, args: str) -> int:
        """Return what ``--cpu-offload-gb`` says."""
        return parse_flags(args).host_weight_bytes

    def shard_policy(self, architecture: ModelArchitecture, setup: Setup, experts: Experts) -> ShardPolicy:
        """Return how SGLang cuts weights, as far as it is known."""
        del setup, experts
        return shard_policy(architecture, vocabulary_multiple=_VOCABULARY_MULTIPLE, stages=pipeline_stages)


def settings_of(
    architecture: ModelArchitecture,
    workload: Workload,
    dtypes: RequestedDtypes,
    *,
    version: str | None,
    args: str,
    setup: Setup,
) -> SglangSettings:
    """Return the settings that options and flags make; the flags win.

    Raises:
        InvalidRequestError: K and V in two dtypes, or a malformed flag.
        FeatureUnsupportedError: a flag or ranks whose effect is not known.
    """
    if dtypes.k != dtypes.v:
        raise InvalidRequestError(
            "sglang keeps K and V in one dtype", hint="give one --kv-dtype", field="kv_dtype"
        )
    spread = setup.parallelism
    if spread.context > 1:
        raise FeatureUnsupportedError(
            "what sglang keeps under decode context parallelism is not known",
            hint="leave --dcp out",
            field="dcp",
        )
    # replicas that share their experts are attention groups inside as many tensor ranks
    groups = spread.data > 1 and spread.expert == spread.tensor * spread.data
    reserve = workload.context_tokens if setup.reserve_tokens is None else setup.reserve_tokens
    settings = parse_flags(
        args,
        SglangSettings(
            version=version,
            gpu=gpu_of(setup.card),
            tensor=spread.expert if groups else spread.tensor,
            pipeline=spread.pipeline,
            data=spread.data,
            expert=spread.expert,
            dp_attention=groups,
            kv_dtype="auto" if setup.kv_word is None else option_word(setup.kv_word, architecture),
            context_tokens=max(1, reserve) if setup.reserve_tokens != 0 else None,
            speculation=SglangSpeculation("NEXTN", workload.mtp, 1) if workload.mtp else SglangSpeculation(),
            state_dtype=dtypes.state,
            mem_fraction=setup.utilization,
        ),
    )
    settings = _as_released(architecture, settings)
    if setup.card is not None:
        refuse_nvfp4(settings.kv_dtype, setup.card)
    if (settings.attention_ranks, settings.data) != (spread.tensor, spread.data):
        raise InvalidRequestError(
            "attention groups need their ranks beside them among the engine's flags",
            hint="--engine-args '--tp-size 8 --dp-size 8 --enable-dp-attention', and no --tp or --dp",
            field="engine-args",
        )
    return settings


def _as_released(architecture: ModelArchitecture, settings: SglangSettings) -> SglangSettings:
    """Return the settings in words that the version's flags take.

    Raises:
        FeatureUnsupportedError: a flag takes no such word in this version.
    """
    own, version = model_dtype(architecture, settings) or "", settings.version
    word = released_word("sglang", "--kv-cache-dtype", settings.kv_dtype, KV_WORDS, version, own)
    if settings.state_dtype is not None:
        state = DTYPE_WORDS.get(settings.state_dtype, settings.state_dtype)
        refuse_value("sglang", "--mamba-ssm-dtype", state, version)
    if settings.speculation.on:
        refuse_value("sglang", "--speculative-algorithm", settings.speculation.algorithm, version)
    return replace(settings, kv_dtype=word)


ENGINE = SglangEngine()
__all__ = ["ENGINE", "SglangCapacity", "SglangEngine", "settings_of"]
