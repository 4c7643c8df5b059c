"""``plan``: an architecture and the engine's settings become bytes a token, pages, state and defaults."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.ranks import refuse_ranks
from kvgauge.engines.sglang.architectures import LATENT_ARCHITECTURES, WIDE_DRAFTS, class_name
from kvgauge.engines.sglang.backends import attention_of
from kvgauge.engines.sglang.cells import CellRules, LayerCell, has_window_pool, layer_cells, token_bytes
from kvgauge.engines.sglang.compressed import compressed_cell
from kvgauge.engines.sglang.kv_dtypes import kv_format, model_dtype
from kvgauge.engines.sglang.memory import memory_defaults
from kvgauge.engines.sglang.pool import Drafts, SglangPlan, StageCell
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.states import state_rules
from kvgauge.engines.sglang.versions import SglangRules, rules_for
from kvgauge.errors import FeatureUnsupportedError, MissingFieldError
from kvgauge.layers import LayerKind

_DEFAULT_RATIO, _COMPRESSED_RATIO = 0.8, 0.1
#: Draft steps, branches, tokens where none is told.
_DRAFTS, _WIDE = Drafts(3, 1, 4), Drafts(5, 4, 8)
_NGRAM_TOKENS = 12
#: First version that keeps compressed caches as known here.
COMPRESSED_SINCE = "0.5.12"


def plan(architecture: ModelArchitecture, settings: SglangSettings) -> SglangPlan:
    """Return what SGLang sets aside for a model under these settings.

    Raises:
        FeatureUnsupportedError: this version, dtype or layout can't hold the model.
        InvalidRequestError: a setting is malformed.
        MissingFieldError: nothing says how long a request may be.
    """
    rules = rules_for(settings.version)
    _check(architecture, settings, rules)
    drafts = drafting(architecture, settings)
    attention = attention_of(architecture, settings, rules)
    form = kv_format(architecture, settings, rules)
    stages = pipeline_stages(architecture.num_layers, settings.pipeline)
    stages = (*stages[:-1], range(stages[-1].start, 1 << 62))
    words = CellRules(form, model_dtype(architecture, settings), settings, attention, rules)
    compressed = any(layer.kind is LayerKind.COMPRESSED for layer in architecture.layers)
    two_pools = compressed or has_window_pool(architecture, settings, rules)
    ratio = settings.window_ratio or (_COMPRESSED_RATIO if compressed else _DEFAULT_RATIO)
    cells = () if compressed else layer_cells(architecture, words)
    told = replace(settings, speculation=replace(settings.speculation, draft_tokens=drafts.tokens or None))
    return SglangPlan(
        rules,
        settings,
        memory_defaults(architecture, told, rules),
        attention,
        form,
        _context(architecture, settings),
        () if compressed else _stage_cells(architecture, words, stages, cells),
        state_rules(architecture, settings, rules, stages, drafts.tokens),
        _window(architecture) if two_pools else None,
        ratio,
        drafts,
        tuple(
            compressed_cell(architecture, attention.page_tokens, stage, drafts=bool(drafts.tokens))
            for stage in stages
        )
        if compressed
        else (),
        _assumed(architecture, settings, form),
        cells,
        stages,
    )


def pipeline_stages(num_layers: int, stages: int) -> tuple[range, ...]:
    """Return the layers of each stage: those that are left over go one each to the last stages.

    >>> [len(stage) for stage in pipeline_stages(30, 4)]
    [7, 7, 8, 8]
    """
    base, rest = divmod(num_layers, stages)
    bounds = [rank * base + max(0, rank - (stages - rest)) for rank in range(stages + 1)]
    return tuple(range(start, stop) for start, stop in pairwise(bounds))


def drafting(architecture: ModelArchitecture, settings: SglangSettings) -> Drafts:
    """Return steps, branches and verified tokens of drafting, as told or as the engine chooses them."""
    speculation = settings.speculation
    if not speculation.on:
        return Drafts()
    if speculation.algorithm == "NGRAM":
        return Drafts(0, 1, speculation.draft_tokens or _NGRAM_TOKENS)
    wide = class_name(architecture) in WIDE_DRAFTS and speculation.algorithm != "STANDALONE"
    chosen = _WIDE if wide else _DRAFTS
    steps, top_k, tokens = chosen
    if speculation.steps is not None:
        steps, top_k = speculation.steps, speculation.top_k or 1
        tokens = steps + 1
    if not speculation.shares_slots or top_k > 1:
        tokens = speculation.draft_tokens or tokens
    return Drafts(steps, top_k, steps + 1 if speculation.shares_slots and top_k == 1 else tokens)


def _check(architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules) -> None:
    if architecture.encoder_only:
        raise FeatureUnsupportedError(
            "this model keeps no cache, and sglang sets none aside",
            hint="it is an encoder; --engine theory says the same",
            field="engine",
        )
    if architecture.is_encoder_decoder:
        raise FeatureUnsupportedError(
            "how sglang keeps encoder-decoder models is not known",
            hint="--engine theory says what must be kept",
            field="engine",
        )
    refuse_ranks(architecture, settings.tensor, settings.pipeline, settings.attention_ranks)
    compressed = any(layer.kind is LayerKind.COMPRESSED for layer in architecture.layers)
    if compressed and rules.window_architectures < 3:
        raise FeatureUnsupportedError(
            f"how sglang {rules.version} keeps compressed caches is not known, "
            f"only from {COMPRESSED_SINCE} on",
            hint=f"--engine sglang@{COMPRESSED_SINCE} or a later version",
            field="engine",
        )


def _context(architecture: ModelArchitecture, settings: SglangSettings) -> int:
    limit = settings.context_tokens or architecture.context_limit_tokens
    if limit is None:
        raise MissingFieldError(
            "the config does not say how long a sequence may be, which sglang bounds requests by",
            hint="--context-length says it",
            field="max_position_embeddings",
        )
    return limit


def _window(architecture: ModelArchitecture) -> int | None:
    return max((layer.window_tokens or 0 for layer in architecture.layers), default=0) or None


def _stage_cells(
    architecture: ModelArchitecture, words: CellRules, stages: tuple[range, ...], cells: tuple[LayerCell, ...]
) -> tuple[StageCell, ...]:
    result: list[StageCell] = []
    for stage in stages:
        own = [cell for cell in cells if cell.index in stage]
        full = tuple(cell for cell in own if not cell.window)
        window = tuple(cell for cell in own if cell.window)
        found = StageCell(
            token_bytes(full, words.form),
            token_bytes(window, words.form),
            len(full),
            len(window),
            sum(cell.unpriced_bytes for cell in own),
            0 if words.rules.index_budgeted else sum(cell.index_bytes for cell in own),
        )
        result.append(_with_drafts(architecture, words, found, full or window) if own else found)
    return tuple(result)


def _with_drafts(
    architecture: ModelArchitecture, words: CellRules, stage: StageCell, cells: tuple[LayerCell, ...]
) -> StageCell:
    """Add drafting layers: as large as the target's own, or of the draft's own shape."""
    speculation = words.settings.speculation
    if speculation.has_own_shape and speculation.drafter is not None:
        own = token_bytes(layer_cells(speculation.drafter, words), words.form)
        return replace(stage, full_bytes=stage.full_bytes + own)
    if not speculation.shares_slots:
        return stage
    if speculation.drafter is not None:
        count = len(layer_cells(speculation.drafter, words))
    else:
        count = len({layer.index for layer in architecture.mtp_layers}) or 1
    if stage.num_window_layers and stage.num_layers:
        return _with_window_drafts(architecture, stage, count)
    layers = stage.num_layers + stage.num_window_layers
    priced = [cell.index_bytes if words.rules.index_budgeted else 0 for cell in cells]
    rows = stage.full_bytes + stage.window_bytes - sum(priced)
    drafted = int(rows * count / layers) + count * max(priced, default=0)
    return replace(stage, full_bytes=stage.full_bytes + drafted)


def _with_window_drafts(architecture: ModelArchitecture, stage: StageCell, count: int) -> StageCell:
    sliding = sum(layer.kind is LayerKind.SLIDING for layer in architecture.mtp_layers)
    windows = min(sliding, count)
    full = count - windows
    per_full = stage.full_bytes // stage.num_layers
    per_window = stage.window_bytes // stage.num_window_layers
    return replace(
        stage,
        full_bytes=stage.full_bytes + full * per_full,
        window_bytes=stage.window_bytes + windows * per_window,
        num_layers=stage.num_layers + full,
        num_window_layers=stage.num_window_layers + windows,
    )


def _assumed(architecture: ModelArchitecture, settings: SglangSettings, form: str) -> tuple[str, ...]:
    """Return codes of what no rule or flag says."""
    codes: list[str] = []
    speculation = settings.speculation
    named = bool(speculation.model) or speculation.has_own_shape
    if speculation.on and speculation.drafter is None and named:
        codes.append("drafter_layers")
    latent = any(layer.kind is LayerKind.LATENT for layer in architecture.layers)
    if latent and class_name(architecture) not in LATENT_ARCHITECTURES:
        codes.append("latent")
    if form == "nvfp4":
        codes.append("nvfp4_workspace")
    return tuple(codes)
