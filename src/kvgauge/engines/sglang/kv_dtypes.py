"""The word of ``--kv-cache-dtype``, ``auto`` included, as the format of the cache."""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import canonical_dtype
from kvgauge.engines.setup import Card
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.versions import SglangRules
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.layers import LayerKind

#: The words that SGLang takes (0.5.23, ``mem_cache/kv_cache_dtype.py``), and the format each names.
KV_WORDS = {
    "auto": "auto", "bf16": "bf16", "bfloat16": "bf16", "fp8_e5m2": "fp8_e5m2", "fp8_e4m3": "fp8_e4m3",
    "mxfp8": "mxfp8", "nvfp4": "nvfp4", "fp4_mx_block16": "nvfp4", "fp4_e2m1": "nvfp4",
}  # fmt: skip
_BLACKWELL = 10
_NVFP4_MAJORS = (10, 12)


def known_word(word: str) -> str:
    """Return a word as SGLang writes it.

    Raises:
        InvalidRequestError: SGLang takes no such word; names those it takes.

    >>> known_word("BF16"), known_word("fp8")
    ('bf16', 'fp8_e4m3')
    """
    name = word.strip().lower()
    if name in KV_WORDS:
        return name
    canonical = canonical_dtype(name)  # raises for a word of no engine
    same = [known for known, form in KV_WORDS.items() if form == canonical]
    if same:
        return same[0]
    raise InvalidRequestError(
        f"--kv-cache-dtype {word!r} is not known to sglang",
        hint=f"one of: {', '.join(KV_WORDS)}",
        field="kv_dtype",
    )


def refuse_nvfp4(word: str, card: Card) -> None:
    """Refuse an nvfp4 cache off Blackwell, as SGLang does from 0.5.16 on, which first takes the word.

    Source: ``handle_kv4_compatibility`` of the released wheels.

    Raises:
        FeatureUnsupportedError: the card is of NVIDIA, and none of those.
    """
    if word == "nvfp4" and card.capability is not None and card.capability[0] not in _NVFP4_MAJORS:
        raise FeatureUnsupportedError(
            f"sglang keeps no nvfp4 cache on {card.name or 'the card'}: "
            "it asks for compute capability 10 or 12",
            hint="--engine-args '--kv-cache-dtype fp4_mx_block16' keeps 4 bits there too",
            field="kv_dtype",
        )


def option_word(word: str, architecture: ModelArchitecture) -> str:
    """Return the engine's word for an option's: ``auto`` where that is the model's own dtype.

    Raises:
        InvalidRequestError: SGLang takes no such word.
    """
    name = word.strip().lower()
    own = name not in KV_WORDS and canonical_dtype(name) == architecture.model_dtype
    return "auto" if own and architecture.prescribed_kv_dtype is None else known_word(word)


def model_dtype(architecture: ModelArchitecture, settings: SglangSettings) -> str:
    """Return the dtype of activations: as told, else the model's; fp32 checkpoints run in 16 bit."""
    own = settings.dtype or architecture.model_dtype
    return "bf16" if own == "f32" and settings.dtype is None else own


def kv_format(architecture: ModelArchitecture, settings: SglangSettings, rules: SglangRules) -> str:
    """Return the format of the cache: ``mxfp8`` or a canonical dtype.

    Under ``auto`` a checkpoint that asks for fp8 gets it. DeepSeek-V4 is kept in fp8; sparse latents in fp8
    on Blackwell and in bf16 elsewhere, whatever the checkpoint asks for.

    Raises:
        InvalidRequestError: no such word.
        FeatureUnsupportedError: the model can't be kept in it.
    """
    word = known_word(settings.kv_dtype)
    kinds = {layer.kind for layer in architecture.layers}
    if LayerKind.COMPRESSED in kinds:
        return _one_of(word, "fp8_e4m3", "a compressed cache")
    if LayerKind.INDEX in kinds and LayerKind.LATENT in kinds:
        default = "fp8_e4m3" if settings.gpu.major >= _BLACKWELL else "bf16"
        return _one_of(word, default, "a sparse latent cache")
    if word != "auto":
        return KV_WORDS[word]
    asked = architecture.prescribed_kv_dtype if rules.checkpoint_kv else None
    return "fp8_e4m3" if asked == "fp8_e4m3" else model_dtype(architecture, settings)


def _one_of(word: str, default: str, what: str) -> str:
    form = default if word == "auto" else KV_WORDS[word]
    if form not in ("bf16", "fp8_e4m3"):
        raise FeatureUnsupportedError(
            f"sglang keeps {what} in bf16 or fp8_e4m3, not in {word}",
            hint="--kv-cache-dtype auto picks one of them",
            field="kv_dtype",
        )
    return form
