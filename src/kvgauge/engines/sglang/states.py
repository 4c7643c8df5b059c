"""Slots of recurrent state: bytes of one, how many there are, how many a running request holds.

Source: ``configs/mamba_utils.py`` (shapes, dtypes) and ``mem_cache/kv_cache_configurator.py`` (slots) of
SGLang 0.5.23; older solutions of the budget from the wheels named in ``versions``.
"""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import canonical_dtype, row_bytes
from kvgauge.engines.base import rank_vectors
from kvgauge.engines.sglang.architectures import STATE_ARCHITECTURES, class_name, has_extra_buffer
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.versions import SglangRules
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.layers import STATE_KINDS, LayerCache, Mechanism, Role, Stream
from kvgauge.units import GIB
from kvgauge.values import dataclass

_MECHANISMS = frozenset({
    Mechanism.MAMBA1, Mechanism.MAMBA2, Mechanism.GATED_DELTA_NET, Mechanism.KIMI_DELTA, Mechanism.LIGHTNING,
    Mechanism.SHORT_CONVOLUTION,
})  # fmt: skip
#: Convolution columns are 16 bit, whatever the model dtype (``SGLANG_MAMBACONV_DTYPE``).
CONV_DTYPE = "bf16"
#: The config field that is asked for the dtype of the state; others of like names are not.
_ASKED_FIELD = "mamba_ssm_dtype"
_ASKED_DTYPES = frozenset({"f32", "bf16", "f16"})
_BASE_SLOTS = 3
#: Slots of 0.5.4 to 0.5.9 where nothing says how many.
_FIXED_SLOTS = 512


@dataclass(frozen=True, slots=True)
class StateRules:
    """The state of one request on the stage that holds most of it.

    Args:
        slot_bytes: of one slot; 0 without state.
        slots_per_request: that a running request holds.
        draft_tokens: states that are kept of each running request while drafts are verified.
        stage_bytes: of one slot, by pipeline stage.
    """

    slot_bytes: int
    slots_per_request: int
    draft_tokens: int
    stage_bytes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StatePool:
    """Slots, and what is left for tokens, in GiB as the engine counts it."""

    slots: int | None
    left_gib: float


def state_rules(
    architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules, stages: tuple[range, ...],
    draft_tokens: int,
) -> StateRules:  # fmt: skip
    """Return the state of one request.

    Raises:
        FeatureUnsupportedError: a recurrence that SGLang does not run, or ranks that do not divide it.
    """
    layers = [layer for layer in architecture.layers if layer.kind in STATE_KINDS]
    if not layers:
        return StateRules(0, 1, 0)
    name = class_name(architecture)
    if rules.state_slots == "none" or (name and name not in STATE_ARCHITECTURES):
        raise FeatureUnsupportedError(
            f"sglang {rules.version} runs no recurrent layers of {name or 'this model'}",
            hint="--engine theory says what must be kept",
            field="engine",
        )
    sizes = {layer.index: _layer_bytes(architecture, layer, settings) for layer in layers}
    by_stage = tuple(sum(size for index, size in sizes.items() if index in stage) for stage in stages)
    return StateRules(max(by_stage), _slots_per_request(name, settings, rules), draft_tokens, by_stage)


def _layer_bytes(architecture: ModelArchitecture, layer: LayerCache, settings: SglangSettings) -> int:
    if layer.mechanism not in _MECHANISMS:
        raise FeatureUnsupportedError(
            f"sglang keeps no state of the kind {layer.mechanism.value}",
            hint="--engine theory says what must be kept",
            field="engine",
        )
    state = state_dtype(architecture, settings)
    ranks = settings.attention_ranks
    size = 0
    for stream in layer.streams:
        vectors = rank_vectors(stream.vectors, stream.shard, ranks, stream.role)
        dtype = state if stream.role is Role.RECURRENT else CONV_DTYPE
        size += row_bytes(
            dtype, stream.role, vectors, stream_width(layer.mechanism, layer.streams, stream), stream.columns
        )
    return size


def stream_width(mechanism: Mechanism, streams: tuple[Stream, ...], stream: Stream) -> int:
    """Return a head's width: a delta net with a convolution over values alone is given columns of Q and K."""
    convolutions = [one for one in streams if one.role is Role.CONV]
    alone = mechanism is Mechanism.GATED_DELTA_NET and len(convolutions) == 1
    if not alone or stream.role is not Role.CONV:
        return stream.width
    state = next(one for one in streams if one.role is Role.RECURRENT)
    return stream.width + 2 * (state.width // stream.width)


def state_dtype(architecture: ModelArchitecture, settings: SglangSettings) -> str:
    """Return the dtype of the state: as told, else the config's, else fp32."""
    if settings.state_dtype is not None:
        return settings.state_dtype
    for path, value in architecture.fields:
        if path.rpartition(".")[2] == _ASKED_FIELD and isinstance(value, str):
            try:
                asked = canonical_dtype(value)
            except InvalidRequestError:
                continue
            if asked in _ASKED_DTYPES:
                return asked
    return "f32"


def _slots_per_request(name: str, settings: SglangSettings, rules: SglangRules) -> int:
    if not settings.radix_cache:
        return 1
    buffered = settings.state_strategy in ("extra_buffer", "extra_buffer_lazy") or (
        settings.state_strategy == "auto" and settings.overlap and has_extra_buffer(name)
    )
    if not buffered or not rules.slot_extra:
        return _BASE_SLOTS
    single = not settings.overlap or settings.state_strategy == "extra_buffer_lazy"
    return _BASE_SLOTS + (1 if single else rules.slot_extra)


def state_pool(
    rest_gib: float, state: StateRules, settings: SglangSettings, rules: SglangRules, requests: int | None
) -> StatePool:
    """Return the slots of a budget, and the GiB left for tokens.

    Args:
        rest_gib: left after weights and slack.
        requests: limit of running requests that was told or goes with drafting.
    """
    if not state.slot_bytes:
        return StatePool(None, rest_gib)
    groups = settings.attention_groups
    per_group = max(1, requests // groups) if requests is not None else None
    size, drafts = state.slot_bytes, state.draft_tokens
    if rules.state_slots == "padded_by_draft":
        return _with_drafts_in_slots(rest_gib, state, settings, per_group)
    if rules.state_slots == "plain":
        # 0.5.8 to 0.5.13 set states under verification aside first, for as many requests as may run.
        rest_gib -= size * (per_group or 0) * drafts / GIB
        drafts = 0
    if settings.max_state_slots is not None:
        slots = settings.max_state_slots // groups
        held = min(per_group or 0, slots // state.slots_per_request)
    elif rules.state_slots == "given" or (not settings.radix_cache and per_group is not None):
        slots = held = per_group or _FIXED_SLOTS
    else:
        budget = rest_gib * settings.state_ratio / (1 + settings.state_ratio) * GIB
        slots = _solved(budget, state, rules)
        held = min(per_group or 0, slots // state.slots_per_request)
    pad = 1 if rules.state_slots == "padded" else 0
    left = rest_gib
    if drafts:
        left -= size * (held + pad) * drafts / GIB
    return StatePool(max(0, slots), left - (slots + pad) * size / GIB)


def _solved(budget: float, state: StateRules, rules: SglangRules) -> int:
    """Solve the budget of states for their slots, the padding slot and states under verification included."""
    size, drafts = state.slot_bytes, state.draft_tokens
    if rules.state_slots == "plain" or not drafts:
        pad = size if rules.state_slots == "padded" else 0
        return int((budget - pad) // size)
    share = size * (1 + drafts / state.slots_per_request)
    pad = size * (1 + drafts) if rules.state_slots == "padded" else 0
    return int((budget - pad) // share)


def _with_drafts_in_slots(
    rest_gib: float, state: StateRules, settings: SglangSettings, per_group: int | None
) -> StatePool:
    """0.5.4 to 0.5.7: every slot is as large as its own state and one a drafted token."""
    share = state.slot_bytes * (1 + state.draft_tokens)
    if settings.radix_cache:
        budget = rest_gib * settings.state_ratio / (1 + settings.state_ratio) * GIB
        slots = int(budget // state.slot_bytes // (1 + state.draft_tokens))
    else:
        slots = settings.max_state_slots or per_group or _FIXED_SLOTS
    slots //= settings.attention_groups
    return StatePool(slots, rest_gib - slots * share / GIB)
