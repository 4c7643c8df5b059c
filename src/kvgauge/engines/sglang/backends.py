"""Which attention backend SGLang picks, and the page that it needs.

Source: ``arg_groups/model_override_base.py`` (general rule), ``arg_groups/overrides.py`` (pages) of 0.5.23.
"""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.sglang.architectures import (
    BACKENDS,
    PAGE_128,
    PAGED_WITH_DRAFTS,
    SINKS,
    class_name,
)
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.versions import SglangRules
from kvgauge.layers import LayerCache, LayerKind, Role
from kvgauge.values import dataclass

COMPRESSED_PAGE, SPARSE_PAGE = 256, 64
_SM100, _SM90 = 10, 9
#: Backend -> (pages that it takes, the one that it is given otherwise).
_PAGES = {
    "flashmla": ((64,), 64),
    "trtllm_mla": ((32, 64), 64),
    "cutedsl_mla": ((32, 64), 64),
    "cutlass_mla": ((128,), 128),
    "trtllm_mha": ((16, 32, 64, 128), 64),
    "hpc_ops": ((64,), 64),
}


@dataclass(frozen=True, slots=True)
class Attention:
    """The backend of a model, and its page.

    Args:
        sparse: an index picks the latents that are read.
        raw_sparse: their fp8 rows lie without scales.
    """

    backend: str
    page_tokens: int
    sparse: bool = False
    raw_sparse: bool = False


def attention_of(architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules) -> Attention:
    """Return what runs a model's attention on this card."""
    kinds = {layer.kind for layer in architecture.layers}
    told = settings.attention_backend
    if LayerKind.COMPRESSED in kinds:
        return Attention("dsv4", COMPRESSED_PAGE)
    if LayerKind.INDEX in kinds and LayerKind.LATENT in kinds:
        return Attention(told or "dsa", SPARSE_PAGE, sparse=True, raw_sparse=_raw_sparse(settings, rules))
    latent = LayerKind.LATENT in kinds
    name = class_name(architecture)
    backend = told or settings.decode_backend or _default(architecture, settings, name, latent=latent)
    return Attention(backend, _page(settings, name, backend, latent=latent))


def _raw_sparse(settings: SglangSettings, rules: SglangRules) -> bool:
    """Whether fp8 rows of a sparse latent are plain: TensorRT-LLM's kernels on Blackwell read those."""
    default = "trtllm" if settings.gpu.major >= _SM100 and rules.sparse_raw else "flashmla_kv"
    chosen = {settings.sparse_prefill_backend or default, settings.sparse_decode_backend or default}
    return "trtllm" in chosen or chosen == {"tilelang"}


def _default(architecture: ModelArchitecture, settings: SglangSettings, name: str, *, latent: bool) -> str:
    major = settings.gpu.major
    row = BACKENDS.get(name)
    named = None if row is None else {_SM100: row.sm100, _SM90: row.sm90}.get(major, row.other)
    if named is not None:
        return named
    if major == _SM100 and name in PAGED_WITH_DRAFTS:
        drafts = settings.speculation.on or not settings.radix_cache
        return "trtllm_mha" if drafts else "triton"
    if latent:
        return {_SM90: "fa3", _SM100: "flashinfer"}.get(major, "triton")
    chained = (settings.speculation.top_k or 1) == 1
    if major == _SM90 and chained:
        return "fa3"
    if major == _SM100 and chained:
        return "fa4" if _unequal_widths(architecture.layers) else "trtllm_mha"
    return "triton" if name in SINKS else "flashinfer"


def _unequal_widths(layers: tuple[LayerCache, ...]) -> bool:
    return any(
        len({stream.width for stream in layer.streams if stream.role in (Role.KEY, Role.VALUE)}) > 1
        for layer in layers
    )


def _page(settings: SglangSettings, name: str, backend: str, *, latent: bool) -> int:
    page = settings.page_size_tokens
    if page is None and name in PAGE_128 and settings.gpu.major in (_SM90, _SM100):
        page = 128
    page = page or 1
    told = {backend, settings.decode_backend, settings.prefill_backend, settings.attention_backend}
    for one in sorted(word for word in told if word):
        if one == "fa4" and not latent and settings.gpu.major == _SM100:
            return 128
        if one in _PAGES:
            taken, given = _PAGES[one]
            page = page if page in taken else given
    return page
