"""vLLM as an engine of the commands: options and flags become settings, plans become answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import Demand, Experts, PlainEngine, RequestedDtypes
from kvgauge.engines.pools import Pool, PoolGroup
from kvgauge.engines.releases import refuse_value
from kvgauge.engines.setup import PLAIN_SETUP, Setup
from kvgauge.engines.versions import known_version
from kvgauge.engines.vllm.demand import group_demands, reserved
from kvgauge.engines.vllm.devices import DEFAULT_GPU, GpuClass
from kvgauge.engines.vllm.flags import parse_flags, stated_settings
from kvgauge.engines.vllm.kv_dtypes import KV_WORDS, known_word, model_dtype, version_word
from kvgauge.engines.vllm.launch import DTYPE_WORDS, launch_command
from kvgauge.engines.vllm.notes import assumed_notes
from kvgauge.engines.vllm.planning import plan
from kvgauge.engines.vllm.pool import VllmPlan
from kvgauge.engines.vllm.settings import Speculation, VllmSettings
from kvgauge.engines.vllm.states import state_dtypes
from kvgauge.engines.vllm.versions import NEWEST, parse_version, rules_for
from kvgauge.engines.vllm_weights import shard_policy
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.sharding import ShardPolicy
from kvgauge.values import dataclass
from kvgauge.workload import Workload

#: Settings that options say too: field -> name of the option.
_OPTIONS = {
    "tensor": "tp",
    "pipeline": "pp",
    "data": "dp",
    "decode_context": "dcp",
    "kv_dtype": "kv_dtype",
    "state_dtype": "state_dtype",
    "max_model_tokens": "max_model_len",
    "kv_memory_bytes": "kv_memory",
    "utilization": "utilization",
}


class VllmEngine(PlainEngine):
    """vLLM, from 0.6 on."""

    name = "vllm"

    def resolve_version(self, version: str | None) -> tuple[str | None, tuple[Note, ...]]:
        """Return the version, and a note where it is newer than what is known.

        Raises:
            InvalidRequestError: not a version.
            FeatureUnsupportedError: older than what is known.
        """
        return known_version(self.name, version, NEWEST, rules_for, parse_version)

    def told(self, args: str) -> Mapping[str, object]:
        """Return what the flags say of options."""
        stated = stated_settings(args)
        found = {option: stated[name] for name, option in _OPTIONS.items() if name in stated}
        ranks = int(str(stated.get("tensor", 1))) * int(str(stated.get("data", 1)))
        if stated.get("expert_parallel") and ranks > 1:
            found["ep"] = ranks  # experts are spread over the tensor ranks of all replicas
        speculation = stated.get("speculation")
        if isinstance(speculation, Speculation):
            found["mtp"] = speculation.tokens if speculation.uses_mtp else 0
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
        """Return the blocks that these sequences take.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: this version, card or dtype can't hold the model.
        """
        found = self.capacity(architecture, workload, dtypes, version=version, args=args, setup=setup)
        groups = (*architecture.groups, *(architecture.mtp_groups if workload.mtp else ()))
        demands = group_demands(found.plan, architecture, groups)
        return Demand(
            demands.groups,
            found.dtypes,
            found.notes,
            found.details,
            demands.kept,
            demands.used,
            reserved(found.plan),
            equal_context_ranks=True,
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
    ) -> VllmCapacity:
        """Return what a pool becomes under this load.

        Raises:
            InvalidRequestError: a flag is malformed.
            FeatureUnsupportedError: this version, card or dtype can't hold the model.
        """
        settings = settings_of(workload, dtypes, version=version, args=args, setup=setup)
        settings = _as_released(architecture, settings)
        told_sequences = settings.max_sequences
        found, settings = _planned(architecture, settings, workload)
        if workload.shared_prefix_tokens and not found.schedule.prefix_caching:
            raise FeatureUnsupportedError(
                "vllm shares no prefix here: prefix caching is off",
                hint="leave --shared-prefix out, or turn it on with --enable-prefix-caching",
                field="shared-prefix",
            )
        return VllmCapacity(
            found, settings, architecture, workload, args, setup.reserve_tokens, told_sequences
        )

    def host_weight_bytes(self, args: str) -> int:
        """Return what ``--cpu-offload-gb`` says."""
        return parse_flags(args).host_weight_bytes

    def shard_policy(self, architecture: ModelArchitecture, setup: Setup, experts: Experts) -> ShardPolicy:
        """Return how vLLM cuts and pads weights."""
        return shard_policy(
            model_type=architecture.model_type,
            compute_capability=_gpu(setup).capability or (9, 0),
            expert_activation=experts.activation,
            num_experts=experts.count,
            model_dtype=architecture.model_dtype,
            version=setup.engine_version,
        )


def settings_of(
    workload: Workload, dtypes: RequestedDtypes, *, version: str | None, args: str, setup: Setup
) -> VllmSettings:
    """Return the settings that options and flags make; the flags win.

    Raises:
        InvalidRequestError: K and V in two dtypes, or a malformed flag.
        FeatureUnsupportedError: a flag whose effect is not known.
    """
    if dtypes.k != dtypes.v:
        raise InvalidRequestError(
            "vllm keeps K and V in one dtype", hint="give one --kv-dtype", field="kv_dtype"
        )
    spread = setup.parallelism
    reserve = workload.context_tokens if setup.reserve_tokens is None else setup.reserve_tokens
    base = VllmSettings(
        version=version,
        gpu=_gpu(setup),
        tensor=spread.tensor,
        pipeline=spread.pipeline,
        data=spread.data,
        decode_context=spread.context,
        expert_parallel=spread.expert > 1,
        kv_dtype="auto" if setup.kv_word is None else known_word(setup.kv_word),
        max_model_tokens=max(1, reserve) if setup.reserve_tokens != 0 else 0,
        speculation=Speculation(workload.mtp) if workload.mtp else Speculation(),
        state_dtype=dtypes.state,
        kv_memory_bytes=setup.kv_memory_bytes or None,
        utilization=setup.utilization,
    )
    return parse_flags(args, base)


def _as_released(architecture: ModelArchitecture, settings: VllmSettings) -> VllmSettings:
    """Return the settings in words that the version's flags take.

    Raises:
        FeatureUnsupportedError: a flag takes no such word in this version.
    """
    for flag, word in (
        ("--mamba-ssm-cache-dtype", DTYPE_WORDS.get(settings.state_dtype or "", settings.state_dtype)),
        ("--mamba-cache-dtype", DTYPE_WORDS.get(settings.conv_dtype or "", settings.conv_dtype)),
        ("--mamba-cache-mode", settings.state_cache_mode),
    ):
        if word is not None:
            refuse_value("vllm", flag, word, settings.version)
    word = version_word(architecture, settings.kv_dtype, settings.dtype, settings.version)
    return settings if word == settings.kv_dtype else replace(settings, kv_dtype=word)


def _planned(
    architecture: ModelArchitecture, settings: VllmSettings, workload: Workload
) -> tuple[VllmPlan, VllmSettings]:
    """Return the plan for a load; more sequences than the default are allowed as the launch command does."""
    found = plan(architecture, settings)
    each = -(-workload.sequences // settings.data)
    if settings.max_sequences is not None or each <= found.schedule.sequences:
        return found, settings
    allowed = replace(settings, max_sequences=each)
    return plan(architecture, allowed), allowed


def _gpu(setup: Setup) -> GpuClass:
    card = setup.card
    return DEFAULT_GPU if card is None else GpuClass(card.name, card.capability, card.memory_bytes)


@dataclass(frozen=True)
class VllmCapacity:
    """A plan of vLLM under one load.

    Args:
        told_tokens: longest request as an option or a flag says it; 0: the engine's to choose.
        told_sequences: sequences of a replica as a flag says them.
    """

    plan: VllmPlan
    settings: VllmSettings
    architecture: ModelArchitecture
    workload: Workload
    args: str
    told_tokens: int | None = None
    told_sequences: int | None = None

    @property
    def needed_bytes(self) -> int:
        """The least pool of the fullest rank that holds the load and starts: one longest request has room."""
        plan = self.plan
        blocks = self._blocks + plan.reserved_blocks
        if not plan.fits_length:  # else the engine shortens the longest request instead of not starting
            blocks = max(blocks, plan.blocks_per_request + plan.rules.held_back_blocks)
        return plan.stage_bytes_per_block * blocks

    @property
    def _blocks(self) -> int:
        load = self.workload
        sequences = -(-load.sequences // self.settings.data)
        return self.plan.blocks_of_load(load.context_tokens, sequences, load.shared_prefix_tokens)

    @property
    def dtypes(self) -> RequestedDtypes:
        """The formats of the cache, canonical."""
        own = model_dtype(self.architecture, self.settings.dtype)
        form = KV_WORDS[self.plan.kv_dtype]
        kv = own if form == "auto" else form
        return RequestedDtypes(kv, kv, state_dtypes(self.architecture, self.settings), None)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What nothing says and had to be assumed."""
        return assumed_notes(self.plan.assumed)

    @property
    def details(self) -> dict[str, object]:
        """Blocks, groups, and the settings that they follow from."""
        plan, schedule = self.plan, self.plan.schedule
        return {
            "block_size_tokens": plan.block_size_tokens,
            "bytes_per_block": plan.pool_bytes_per_block,
            "blocks_per_request": plan.blocks_per_request,
            "blocks": self._blocks,
            "groups": [group.to_dict() for group in plan.groups],
            "kv_cache_dtype": plan.kv_dtype,
            "attention_backends": list(plan.backends),
            "max_model_len": schedule.max_model_tokens,
            "max_num_batched_tokens": schedule.batched_tokens,
            "max_num_seqs": schedule.sequences,
            "in_flight_tokens": schedule.in_flight_tokens,
            "prefix_caching": schedule.prefix_caching,
            "gpu": self.settings.gpu.name,
        }

    @property
    def max_sequences(self) -> int | None:
        """Sequences of every replica, where a flag says them."""
        most = self.told_sequences
        return None if most is None else most * self.settings.data

    @property
    def max_context_tokens(self) -> int | None:
        """The longest request, where a flag says it."""
        return self.told_tokens or None

    def with_sequences(self, count: int) -> VllmCapacity:
        """Return the plan under another number of sequences."""
        load = replace(self.workload, sequences=count)
        told = replace(self.settings, max_sequences=self.told_sequences)
        found, settings = self.plan, self.settings
        if settings != told or -(-count // told.data) > found.schedule.sequences:
            found, settings = _planned(self.architecture, told, load)
        return replace(self, plan=found, settings=settings, workload=load)

    def pool(self, available_bytes: int) -> Pool:
        """Return blocks, tokens and concurrency of a budget on every rank."""
        plan = self.plan
        found = plan.pool(available_bytes)
        longest = plan.with_longest(found.max_model_tokens) if plan.fits_length else plan
        return Pool(
            available_bytes,
            found.num_blocks,
            plan.block_size_tokens,
            plan.pool_bytes_per_block,
            longest.blocks_per_request,
            longest.bytes_per_request,
            found.capacity_tokens,
            found.max_concurrency,
            max_running_requests=plan.schedule.sequences,
            groups=tuple(
                PoolGroup(g.kind, g.num_layers, g.block_size_tokens, g.page_bytes, g.blocks_per_request)
                for g in longest.groups
            ),
        )

    def budget(self, available_bytes: int) -> int:
        """Return the bytes of the pool: those of the blocks that a flag gives instead of a budget."""
        given = self.plan.num_blocks_override
        return available_bytes if given is None else given * self.plan.stage_bytes_per_block

    def allocated_bytes(self, available_bytes: int) -> tuple[int, ...]:
        """Return the bytes of the blocks on a rank, by pipeline stage."""
        blocks = self.plan.pool(available_bytes).num_blocks
        return tuple(blocks * size for size in self.plan.stage_blocks)

    def admission(self, available_bytes: int) -> tuple[Note, ...]:
        """Return why vLLM would not start as told: more sequences than blocks of a hybrid."""
        found = self.plan.pool(available_bytes)
        if not found.sequences_exceed_blocks or not found.num_blocks:
            return ()
        most, blocks = f"{self.plan.schedule.sequences:,}", f"{found.num_blocks:,}"
        text = f"vllm does not start a hybrid with up to {most} sequences on {blocks} blocks"
        return (Note("sequences_exceed_blocks", "warning", text, (("sequences", most), ("blocks", blocks))),)

    def launch_command(self, model: str, available_bytes: int) -> str:
        """Return the line that starts vLLM for this load."""
        blocks = self.plan.pool(available_bytes).num_blocks if self.admission(available_bytes) else None
        return launch_command(model, self.settings, self.workload, self.plan, self.args, blocks)


ENGINE = VllmEngine()
__all__ = ["ENGINE", "VllmCapacity", "VllmEngine", "settings_of"]
