"""The word of ``--kv-cache-dtype``, ``auto`` included, as the format of the cache."""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import canonical_dtype
from kvgauge.engines.releases import released_word, takes_value
from kvgauge.engines.vllm.devices import GpuClass
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.layers import LayerKind

#: The words that vLLM takes (0.33.0, ``config/cache.py``) and whose bytes are known; the format each names.
KV_WORDS = {
    "auto": "auto", "float16": "f16", "bfloat16": "bf16",
    "fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2", "fp8_inc": "fp8_e4m3",
    "fp8_ds_mla": "fp8_ds_mla", "nvfp4_ds_mla": "nvfp4_ds_mla", "nvfp4": "nvfp4", "nvfp4_4over6": "nvfp4",
    "int8_per_token_head": "int8_per_token_head", "fp8_per_token_head": "fp8_per_token_head",
    "int4_per_token_head": "int4_per_token_head",
    "turboquant_k8v4": "turboquant_k8v4", "turboquant_4bit_nc": "turboquant_4bit_nc",
    "turboquant_k3v4_nc": "turboquant_k3v4_nc", "turboquant_3bit_nc": "turboquant_3bit_nc",
}  # fmt: skip

KV_FLAG = "--kv-cache-dtype"
PER_TOKEN_HEAD = frozenset({"int8_per_token_head", "fp8_per_token_head", "int4_per_token_head"})
#: Formats of latents alone.
_LATENT_ONLY = frozenset({"fp8_ds_mla", "nvfp4_ds_mla"})
#: Formats that no latent is kept in.
_NEVER_LATENT = ("nvfp4", "turboquant_k8v4", "turboquant_4bit_nc", "turboquant_k3v4_nc", "turboquant_3bit_nc")
#: What a ModelOpt checkpoint may prescribe; other schemes leave the model dtype.
_PRESCRIBED = frozenset({"fp8_e4m3", "nvfp4"})
_DSA_FP8_MAJOR, _FLASHMLA_MAJOR = 10, 9


def model_dtype(architecture: ModelArchitecture, dtype: str | None) -> str:
    """Return the dtype of activations: as told, else the model's; vLLM runs fp32 checkpoints in 16 bit."""
    own = dtype or architecture.model_dtype
    return "bf16" if own == "f32" and dtype is None else own


def is_fp8(word: str) -> bool:
    """Whether a word asks for one byte an element, whatever its float format."""
    return KV_WORDS[word] in ("fp8_e4m3", "fp8_e5m2")


def known_word(word: str) -> str:
    """Return a word as vLLM writes it.

    Raises:
        InvalidRequestError: vLLM takes no such word; names those it takes.
        FeatureUnsupportedError: vLLM takes it, and what it keeps is not known here.

    >>> known_word("FP8_E4M3"), known_word("bf16")
    ('fp8_e4m3', 'bfloat16')
    """
    name = word.strip().lower()
    if name in KV_WORDS:
        return name
    if takes_value("vllm", KV_FLAG, name, None):
        raise FeatureUnsupportedError(
            f"what vllm keeps in {name} is not known",
            hint=f"one of: {', '.join(KV_WORDS)}",
            field="kv_dtype",
        )
    canonical = canonical_dtype(name)  # raises for a word of no engine
    same = [known for known, form in KV_WORDS.items() if form == canonical]
    if same:
        return "bfloat16" if canonical == "bf16" else same[0]
    raise InvalidRequestError(
        f"--kv-cache-dtype {word!r} is not known to vllm",
        hint=f"one of: {', '.join(KV_WORDS)}",
        field="kv_dtype",
    )


def version_word(architecture: ModelArchitecture, word: str, dtype: str | None, version: str | None) -> str:
    """Return the word by which a version takes what ``word`` names.

    Args:
        dtype: of activations, where a flag says it.

    Raises:
        FeatureUnsupportedError: it takes none for it.
    """
    return released_word("vllm", KV_FLAG, word, KV_WORDS, version, model_dtype(architecture, dtype) or "")


def resolve_word(architecture: ModelArchitecture, word: str, gpu: GpuClass) -> str:
    """Return the word that holds after ``auto`` and the model's own wishes are looked at.

    Only ModelOpt checkpoints are asked for a KV dtype; DeepSeek-V4 turns fp8 and ``auto`` into its packed
    record. Sparse latents: SM100 turns ``auto`` into fp8; on SM90 ``fp8`` as given by a user picks FlashMLA
    and its records of 656 bytes, while ``fp8_e4m3``, as a checkpoint prescribes it, is refused by that
    backend and falls to plain rows of 576.

    Raises:
        InvalidRequestError: no such word.
        FeatureUnsupportedError: the model can't be kept in it.
    """
    word = known_word(word)
    kinds = {layer.kind for layer in architecture.layers}
    sparse = LayerKind.INDEX in kinds and LayerKind.LATENT in kinds
    if word == "auto":
        asked = architecture.modelopt_kv_dtype or ""
        if asked in _PRESCRIBED:
            word = asked
        elif sparse and gpu.major == _DSA_FP8_MAJOR:
            word = "fp8_e4m3"
    elif word == "fp8" and sparse and gpu.major == _FLASHMLA_MAJOR:
        word = "fp8_ds_mla"
    if LayerKind.COMPRESSED in kinds and word in ("auto", "fp8", "fp8_e4m3"):
        word = "fp8_ds_mla"
    _check_latents(word, kinds)
    return word


def _check_latents(word: str, kinds: set[LayerKind]) -> None:
    latent = LayerKind.LATENT in kinds or LayerKind.COMPRESSED in kinds
    if (latent and word in _NEVER_LATENT) or (LayerKind.COMPRESSED in kinds and word in PER_TOKEN_HEAD):
        raise FeatureUnsupportedError(
            f"vllm keeps no latent in {word}",
            hint="fp8, auto or nvfp4_ds_mla can hold one",
            field="kv_dtype",
        )
    if word in _LATENT_ONLY and not latent:
        raise FeatureUnsupportedError(
            f"{word} packs latents, of which this model has none",
            hint="fp8 or nvfp4 suit it",
            field="kv_dtype",
        )
