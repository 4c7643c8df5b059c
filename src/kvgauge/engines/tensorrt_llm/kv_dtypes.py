"""The word of ``kv_cache_config.dtype``, ``auto`` included, as the format of the cache."""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import canonical_dtype
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
from kvgauge.errors import InvalidRequestError

#: The words that TensorRT-LLM takes, and the format each names.
KV_WORDS = {
    "auto": "auto", "fp8": "fp8_e4m3", "nvfp4": "nvfp4", "float16": "f16", "bfloat16": "bf16", "int8": "int8",
}  # fmt: skip


def known_word(word: str) -> str:
    """Return a word as TensorRT-LLM writes it.

    Raises:
        InvalidRequestError: TensorRT-LLM takes no such word; names those it takes.

    >>> known_word("FP8"), known_word("bf16")
    ('fp8', 'bfloat16')
    """
    name = word.strip().lower()
    if name in KV_WORDS:
        return name
    canonical = canonical_dtype(name)  # raises for a word of no engine
    same = [known for known, form in KV_WORDS.items() if form == canonical]
    if same:
        return same[0]
    raise InvalidRequestError(
        f"kv_cache_dtype {word!r} is not known to tensorrt-llm",
        hint=f"one of: {', '.join(KV_WORDS)}",
        field="kv_dtype",
    )


def model_dtype(architecture: ModelArchitecture, settings: TrtllmSettings) -> str:
    """Return the dtype of activations: as told, else the model's; fp32 checkpoints run in 16 bit."""
    own = settings.dtype or architecture.model_dtype
    return "bf16" if own == "f32" else own


def kv_format(architecture: ModelArchitecture, settings: TrtllmSettings) -> str:
    """Return the canonical format: under ``auto`` what the checkpoint asks for, fp8 or nvfp4, else its dtype.

    Raises:
        InvalidRequestError: no such word.
    """
    form = KV_WORDS[known_word(settings.kv_dtype)]
    if form != "auto":
        return form
    asked = architecture.prescribed_kv_dtype
    return asked if asked in ("fp8_e4m3", "nvfp4") else model_dtype(architecture, settings)
