"""Attention backends: which of them vLLM picks for a layer, and what blocks their kernels take.

A table by card and kind of layer, in vLLM's order of preference (0.33.0, ``platforms/cuda.py`` and the
backends' own ``supports`` checks, confirmed for SM80, SM90 and SM100). Rows of other cards are assumed.
"""

from __future__ import annotations

from kvgauge.engines.vllm.devices import GpuClass
from kvgauge.engines.vllm.kv_dtypes import PER_TOKEN_HEAD, is_fp8
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.values import dataclass

#: The block that vLLM starts from.
START_BLOCK = 16
_WIDE_HEAD = 256
_R1_LATENT = 576


@dataclass(frozen=True, slots=True)
class Backend:
    """One backend.

    Args:
        kernel_block: the smallest block its kernels take; larger ones are multiples of it.
        majors: compute capabilities (major) that it runs on; empty is any.
        fp8: how it takes an fp8 cache: "native" needs SM89, "any" does not, "none" refuses.
        sinks: takes layers with attention sinks.
        wide: takes heads wider than 256.
        latent_width: the only latent it takes; 0 is any.
        per_token_head: takes scales for each token and head.
        nvfp4: takes nvfp4.
    """

    name: str
    kernel_block: int = 16
    majors: tuple[int, ...] = ()
    fp8: str = "any"
    sinks: bool = False
    wide: bool = False
    latent_width: int = 0
    per_token_head: bool = False
    nvfp4: bool = False


_TRITON = Backend("TRITON_ATTN", fp8="native", sinks=True, wide=True, per_token_head=True)
_TURBOQUANT = Backend("TURBOQUANT", 32)

#: Plain attention, best first.
_ATTENTION = (
    Backend("FLASHINFER", majors=(10,), nvfp4=True),
    Backend("FLASH_ATTN", majors=(9,), sinks=True),
    Backend("FLASH_ATTN", majors=(8, 10, 12), fp8="none"),
    Backend("FLASH_ATTN", majors=(10,), sinks=True),
    Backend("FLASHINFER", majors=(8,)),
    Backend("FLASHINFER", majors=(12,), nvfp4=True),
    _TRITON,
)
#: Types whose prefix attends both ways, or heads wider than 256: Triton, from 0.33 with a partner.
_PREFIX = (
    Backend("TRITON_FLASHINFER", 64, majors=(10,), sinks=True, wide=True),
    Backend("TRITON_FLASH_ATTN", majors=(9,), fp8="none", sinks=True, wide=True),
    _TRITON,
)
_WIDE_FP8 = Backend("TRITON_FLASH_ATTN", 64, majors=(9,), sinks=True, wide=True)

#: Latents, best first.
_LATENT = (
    Backend("FLASHINFER_MLA", 32, majors=(10,), latent_width=_R1_LATENT),
    Backend("FLASH_ATTN_MLA", majors=(9,), fp8="none"),
    Backend("FLASHMLA", 64, majors=(9, 10), latent_width=_R1_LATENT),
    Backend("CUTLASS_MLA", 128, majors=(10,), latent_width=_R1_LATENT),
    Backend("TRITON_MLA", fp8="native", per_token_head=True),
)
#: Sparse latents beside an index: the packing of a word follows from the backend.
SPARSE_BLOCK = 64
_SPARSE_MAJORS = (9, 10, 12)
BLOCK_INDEX_BLOCK = 128

#: Model types whose layers have attention sinks (a learned logit; no cache of its own).
SINK_TYPES = frozenset({"gpt_oss"})
#: Architectures whose image or prefix tokens attend both ways.
PREFIX_ARCHITECTURES = frozenset(
    {"Gemma3ForConditionalGeneration", "Gemma4ForConditionalGeneration", "PaliGemmaForConditionalGeneration"}
)


def _takes(backend: Backend, word: str, gpu: GpuClass, *, sinks: bool, width: int, latent: bool) -> bool:
    if backend.majors and gpu.major not in backend.majors:
        return False
    if (sinks and not backend.sinks) or (width > _WIDE_HEAD and not latent and not backend.wide):
        return False
    if latent and backend.latent_width not in (0, width):
        return False
    if word in PER_TOKEN_HEAD:
        return backend.per_token_head
    if word.startswith("nvfp4"):
        return backend.nvfp4
    return not is_fp8(word) or backend.fp8 == "any" or (backend.fp8 == "native" and gpu.has_native_fp8)


def pick(
    table: tuple[Backend, ...],
    word: str,
    gpu: GpuClass,
    *,
    sinks: bool = False,
    width: int = 0,
    latent: bool = False,
    block_tokens: int | None = None,
    named: str | None = None,
) -> Backend:
    """Return the first backend of a table that takes the layer, or the one that the user named.

    Raises:
        FeatureUnsupportedError: none does.
    """
    fitting = [b for b in table if _takes(b, word, gpu, sinks=sinks, width=width, latent=latent)]
    if named is not None:
        fitting = [b for b in fitting if b.name == named.upper()] or fitting
    if not fitting:
        raise FeatureUnsupportedError(
            f"vllm has no attention backend that keeps a {word} cache of this model on {card_name(gpu)}",
            hint="--kv-cache-dtype bfloat16 runs on every card" if word != "auto" else "",
            field="kv_dtype",
        )
    if block_tokens is None:
        return fitting[0]
    taking = [b for b in fitting if block_tokens % b.kernel_block == 0]
    if not taking:
        smallest = min(b.kernel_block for b in fitting)
        raise FeatureUnsupportedError(
            f"no attention backend of vllm takes blocks of {block_tokens} tokens for this model",
            hint=f"--block-size takes multiples of {smallest}",
            field="block-size",
        )
    return taking[0]


def attention_backend(
    word: str,
    gpu: GpuClass,
    *,
    sinks: bool,
    width: int,
    prefix: bool,
    composite: bool,
    block_tokens: int | None,
    named: str | None = None,
) -> Backend:
    """Return the backend of plain attention layers whose widest head has ``width`` elements."""
    if word.startswith("turboquant"):
        return _TURBOQUANT
    wide = width > _WIDE_HEAD
    table: tuple[Backend, ...] = _ATTENTION
    if wide or prefix:
        table = _PREFIX if composite else (_TRITON,)
        if composite and wide:
            table = (_PREFIX[0], _PREFIX[1], _WIDE_FP8, _TRITON)
    return pick(table, word, gpu, sinks=sinks, width=width, block_tokens=block_tokens, named=named)


def latent_backend(
    word: str, gpu: GpuClass, *, width: int, block_tokens: int | None, named: str | None = None
) -> Backend:
    """Return the backend of latents of ``width`` elements."""
    return pick(_LATENT, word, gpu, width=width, latent=True, block_tokens=block_tokens, named=named)


def check_sparse(gpu: GpuClass) -> None:
    """Refuse sparse latents where no backend runs them.

    Raises:
        FeatureUnsupportedError: names the cards that can.
    """
    if gpu.capability is not None and gpu.major not in _SPARSE_MAJORS:
        raise FeatureUnsupportedError(
            f"vllm has no backend for sparse latent attention on {card_name(gpu)}",
            hint="Hopper and Blackwell cards run it",
            field="gpu",
        )


def card_name(gpu: GpuClass) -> str:
    """Return a card as messages name it."""
    capability = ".".join(map(str, gpu.capability)) if gpu.capability else "?"
    return f"{gpu.name or 'this card'} (compute capability {capability})"
