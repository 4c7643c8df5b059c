"""``plan``: an architecture and the engine's settings become groups, pages and the blocks of a request."""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.ranks import refuse_ranks
from kvgauge.engines.vllm.blocks import align_hybrid, checkpoint_pages, choose_block
from kvgauge.engines.vllm.cache_spec import CacheSpec
from kvgauge.engines.vllm.grouping import SpecGroup, block_bytes, group_layers
from kvgauge.engines.vllm.kv_dtypes import resolve_word
from kvgauge.engines.vllm.pool import VllmPlan
from kvgauge.engines.vllm.requests import RequestRules
from kvgauge.engines.vllm.schedule import Schedule, schedule
from kvgauge.engines.vllm.settings import DRAFTLESS_METHODS, VllmSettings
from kvgauge.engines.vllm.specs import first_engine_specs, layer_specs
from kvgauge.engines.vllm.versions import LATENTS_SINCE, VllmRules, rules_for
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import LayerKind
from kvgauge.workload import pipeline_stages

#: Compute capabilities on which backends and blocks were confirmed.
_CHECKED = frozenset({(8, 0), (9, 0), (10, 0)})


def plan(architecture: ModelArchitecture, settings: VllmSettings) -> VllmPlan:
    """Return what vLLM sets aside for a model under these settings.

    Raises:
        FeatureUnsupportedError: this version, card, dtype or layout can't hold the model.
        InvalidRequestError: a setting is malformed.
        MissingFieldError: nothing says how long a request may be.
    """
    rules = rules_for(settings.version)
    _check(architecture, settings, rules)
    word = resolve_word(architecture, settings.kv_dtype, settings.gpu)
    scheduled = schedule(architecture, settings, rules)
    choice = choose_block(architecture, settings, rules, word)
    checkpoints, grain = checkpoint_pages(architecture, settings, rules)
    specs = layer_specs(architecture, settings, word, choice.block_tokens)
    if rules.engine_v0:
        specs = first_engine_specs(specs, rules)
    specs = align_hybrid(specs, choice, scheduled, rules, grain, settings.state_block_tokens)
    groups = group_layers(
        specs,
        rules,
        hybrid_manager=_hybrid_manager(architecture, settings),
        block_first=any(layer.kind is LayerKind.COMPRESSED for layer in architecture.layers),
    )
    stages = _stages(groups, architecture.num_layers, settings.pipeline)
    return VllmPlan(
        rules,
        scheduled,
        _request_rules(architecture, settings, scheduled, checkpoints),
        word,
        _global_block(specs, choice.block_tokens),
        groups,
        tuple(tuple(sum(s.page_bytes for s in part) for part in stage) for stage in stages),
        block_bytes([group.specs for group in groups], rules),
        tuple(block_bytes(stage, rules) for stage in stages),
        choice.backends,
        settings.num_blocks_override,
        settings.max_model_tokens == 0,
        settings.enforce_eager,
        _assumed(settings, rules),
        settings.tensor,
    )


def _hybrid_manager(architecture: ModelArchitecture, settings: VllmSettings) -> bool:
    """Whether kinds have blocks of their own; chunked layers beside drafting ones do not."""
    if settings.hybrid_manager is not None:
        return settings.hybrid_manager
    speculation = settings.speculation
    drafts = speculation.tokens and speculation.method not in DRAFTLESS_METHODS
    return not (drafts and any(layer.kind is LayerKind.CHUNKED for layer in architecture.layers))


def _check(architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules) -> None:
    if architecture.encoder_only:
        raise FeatureUnsupportedError(
            "this model keeps no cache, and vllm sets none aside",
            hint="it is an encoder; --engine theory says the same",
            field="engine",
        )
    kinds = {layer.kind for layer in architecture.layers}
    if LayerKind.LATENT in kinds and not rules.latents:
        raise FeatureUnsupportedError(
            f"how vllm {rules.version} keeps latents is not known, only from {LATENTS_SINCE} on",
            hint=f"--engine vllm@{LATENTS_SINCE} or a later version",
            field="engine",
        )
    refuse_ranks(architecture, settings.tensor, settings.pipeline)


def _request_rules(
    architecture: ModelArchitecture, settings: VllmSettings, scheduled: Schedule, checkpoints: int
) -> RequestRules:
    speculation = settings.speculation
    modules = len({layer.index for layer in architecture.mtp_layers}) if speculation.uses_mtp else 0
    return RequestRules(
        scheduled.in_flight_tokens,
        scheduled.state_cache_mode,
        speculation.tokens,
        checkpoints if scheduled.state_cache_mode == "align" else 0,
        max(0, modules - 1),
        settings.decode_context * settings.prefill_context,
        max(scheduled.batched_tokens, architecture.encoder_tokens or 0),
    )


def _global_block(specs: tuple[CacheSpec, ...], chosen: int) -> int:
    """Return the block after alignment: of the attention layers, which grow with it."""
    return next((spec.block_tokens for spec in specs if spec.can_rescale), chosen)


def _stages(
    groups: tuple[SpecGroup, ...], num_layers: int, stages: int
) -> tuple[tuple[tuple[CacheSpec, ...], ...], ...]:
    """Return the layers of each group by pipeline stage; drafting layers lie on the last."""
    result: list[tuple[tuple[CacheSpec, ...], ...]] = []
    ranges = pipeline_stages(num_layers, stages)
    for number, stage in enumerate(ranges):
        end = stage.stop if number < len(ranges) - 1 else 1 << 62
        result.append(tuple(tuple(s for s in g.specs if stage.start <= s.index < end) for g in groups))
    return tuple(result)


def _assumed(settings: VllmSettings, rules: VllmRules) -> tuple[str, ...]:
    """Return codes of what no rule or flag says: blocks off the checked cards, layers of an unknown draft."""
    codes: list[str] = []
    if settings.gpu.capability not in _CHECKED and not rules.engine_v0:
        codes.append("block_size")
    speculation = settings.speculation
    drafts = speculation.tokens and speculation.method not in DRAFTLESS_METHODS
    if drafts and not speculation.uses_mtp and speculation.drafter is None:
        codes.append("drafter_layers")
    if "--kv-transfer-config" in settings.ignored_flags:
        codes.append("kv_connector")
    return tuple(codes)
