"""The block size: what the backends take, then the alignment of hybrids to their largest state.

Source: ``platforms/interface.py`` of vLLM 0.33.0 (``update_block_size_for_backend``, hybrid alignment).
"""

from __future__ import annotations

from dataclasses import replace
from math import lcm

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm.backends import (
    BLOCK_INDEX_BLOCK,
    PREFIX_ARCHITECTURES,
    SINK_TYPES,
    SPARSE_BLOCK,
    START_BLOCK,
    attention_backend,
    check_sparse,
    latent_backend,
)
from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind
from kvgauge.engines.vllm.compressed import COMPRESSED_BLOCK
from kvgauge.engines.vllm.schedule import Schedule
from kvgauge.engines.vllm.settings import VllmSettings
from kvgauge.engines.vllm.versions import VllmRules
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import STATE_KINDS, LayerKind, Mechanism, Role
from kvgauge.values import dataclass

#: Tokens between the states that FlashInfer's gated delta net hands over in prefill.
_CHECKPOINT_GRAIN = 64
_FLASHINFER_DELTA_WIDTH = 128
#: Architectures whose Kimi delta attention hands a state over in prefill.
_KDA_CHECKPOINTS = frozenset({"KimiK3ForConditionalGeneration", "KimiK3ForCausalLM"})


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """Backends and the block that they lead to.

    Args:
        kernel_block: smallest block of the first attention backend.
        common_multiple: what blocks of every backend are multiples of.
    """

    backends: tuple[str, ...]
    kernel_block: int
    common_multiple: int
    block_tokens: int


def choose_block(
    architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules, word: str
) -> BlockChoice:
    """Return the block of attention layers before hybrids are aligned.

    Raises:
        FeatureUnsupportedError: no backend keeps this cache on this card, or takes the asked block.
    """
    kinds = {layer.kind for layer in architecture.layers}
    asked = settings.block_size_tokens
    if rules.engine_v0:
        return BlockChoice((), asked or START_BLOCK, 1, asked or START_BLOCK)
    if LayerKind.COMPRESSED in kinds:
        return BlockChoice(("FLASHMLA_SPARSE_DSV4",), COMPRESSED_BLOCK, COMPRESSED_BLOCK, COMPRESSED_BLOCK)
    if LayerKind.LATENT in kinds and LayerKind.INDEX in kinds:
        check_sparse(settings.gpu)
        return _fixed("MLA_SPARSE", SPARSE_BLOCK, asked)
    if LayerKind.BLOCK_INDEX in kinds:
        return _fixed("BLOCK_SPARSE", BLOCK_INDEX_BLOCK, asked)
    has_states = bool(kinds & STATE_KINDS)
    steady = None if has_states else asked
    if LayerKind.LATENT in kinds:
        backend = latent_backend(
            word,
            settings.gpu,
            width=_width(architecture, LayerKind.LATENT),
            block_tokens=steady,
            named=settings.attention_backend,
        )
    elif kinds & _ATTENTION:
        backend = attention_backend(
            word,
            settings.gpu,
            sinks=architecture.model_type in SINK_TYPES,
            width=_width(architecture, *_ATTENTION),
            prefix=_attends_both_ways(architecture, settings),
            composite=rules.composite_gemma,
            block_tokens=steady,
            named=settings.attention_backend,
        )
    else:
        return BlockChoice((), START_BLOCK, 1, asked or START_BLOCK)
    block = asked or max(START_BLOCK, backend.kernel_block)
    return BlockChoice((backend.name,), backend.kernel_block, backend.kernel_block, block)


_ATTENTION = frozenset({LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED, LayerKind.CROSS})


def _fixed(name: str, kernel: int, asked: int | None) -> BlockChoice:
    if asked is not None and asked % kernel:
        raise FeatureUnsupportedError(
            f"no attention backend of vllm takes blocks of {asked} tokens for this model",
            hint=f"--block-size takes multiples of {kernel}",
            field="block-size",
        )
    return BlockChoice((name,), kernel, kernel, asked or kernel)


def _attends_both_ways(architecture: ModelArchitecture, settings: VllmSettings) -> bool:
    return architecture.architecture in PREFIX_ARCHITECTURES and not settings.language_model_only


def _width(architecture: ModelArchitecture, *kinds: LayerKind) -> int:
    """Return the widest head; a latent counts with its rope part."""
    widths = [0]
    for layer in architecture.layers:
        if layer.kind not in kinds:
            continue
        if layer.kind is LayerKind.LATENT:
            widths.append(sum(stream.width for stream in layer.streams))
        else:
            widths += [stream.width for stream in layer.streams]
    return max(widths)


def checkpoint_pages(
    architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules
) -> tuple[int, int]:
    """Return (pages that prefill checkpoints add to a request, grain in tokens of those states).

    Mamba-2 always hands one over; a gated delta net where FlashInfer's prefill kernels run (SM90, and SM100
    and SM120 with keys of 128); Kimi's delta attention in the model code of K3.
    """
    if not rules.state_checkpoint:
        return 0, 1
    mechanisms = {layer.mechanism for layer in architecture.layers}
    if Mechanism.GATED_DELTA_NET in mechanisms:
        if not _flashinfer_delta(architecture, settings, rules):
            return 0, 1
        return 1, _CHECKPOINT_GRAIN
    kimi = Mechanism.KIMI_DELTA in mechanisms and architecture.architecture in _KDA_CHECKPOINTS
    return int(kimi or Mechanism.MAMBA2 in mechanisms), 1


def _flashinfer_delta(architecture: ModelArchitecture, settings: VllmSettings, rules: VllmRules) -> bool:
    major = settings.gpu.major
    if major not in rules.delta_majors:
        return False
    return major == 9 or _key_width(architecture) == _FLASHINFER_DELTA_WIDTH


def _key_width(architecture: ModelArchitecture) -> int:
    """Width of a key head of the gated delta net: its convolution runs over two of them."""
    for layer in architecture.layers:
        if layer.mechanism is Mechanism.GATED_DELTA_NET:
            conv = [s.width for s in layer.streams if s.role is Role.CONV]
            return conv[0] // 2
    return 0


def align_hybrid(
    specs: tuple[CacheSpec, ...],
    choice: BlockChoice,
    plan: Schedule,
    rules: VllmRules,
    grain: int,
    state_block: int | None = None,
) -> tuple[CacheSpec, ...]:
    """Grow the block until an attention page holds the largest state, and pad states to that page.

    Without state layers, or without attention beside them, the specs stay as they are but for the block of
    a state.
    """
    states = [spec for spec in specs if spec.kind is SpecKind.RECURRENT]
    if not states:
        return specs
    paged = [spec for spec in specs if spec.can_rescale and spec.kind is not SpecKind.INDEX]
    block = choice.block_tokens
    page = max(spec.page_bytes for spec in states)
    if paged:
        token = max(spec.token_bytes for spec in paged)
        block = _hybrid_block(
            page, token, any(s.kind is SpecKind.LATENT for s in paged), choice, plan, rules, grain
        )
        page = max(page, block * token)
    own = block if plan.state_cache_mode in ("align", "all") else plan.max_model_tokens
    if state_block is not None and plan.state_cache_mode == "all":
        own = state_block
    return tuple(_aligned(spec, block, own, page) for spec in specs)


def _hybrid_block(
    state_page: int,
    token: int,
    latent: bool,
    choice: BlockChoice,
    plan: Schedule,
    rules: VllmRules,
    grain: int,
) -> int:
    step = max(choice.kernel_block, choice.block_tokens)
    if latent:
        step = max(step, rules.mla_hybrid_multiple)
    if plan.state_cache_mode == "align" and rules.state_alignment:
        step = lcm(step, grain)
    block = step * -(-state_page // (step * token))
    block = -(-block // choice.common_multiple) * choice.common_multiple
    return max(block, choice.block_tokens)


def _aligned(spec: CacheSpec, block: int, state_block: int, page: int) -> CacheSpec:
    if spec.kind is SpecKind.RECURRENT:
        return replace(spec, block_tokens=state_block, page_bytes=page)
    return spec.with_block(block) if spec.can_rescale else spec
