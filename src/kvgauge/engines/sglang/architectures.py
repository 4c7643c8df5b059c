"""What SGLang decides by the name of a model's class, as tables: pools, backends, images, state.

Source: ``configs/model_config.py``, ``arg_groups/overrides.py`` and ``arg_groups/model_overrides`` of SGLang
0.5.23; the lists of older versions by ``versions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kvgauge.architecture import ModelArchitecture

_GEMMA4 = (
    "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration",
    "DiffusionGemmaForBlockDiffusion",
)  # fmt: skip
_MIMO_V2 = ("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM")
_DEEPSEEK_V4 = ("DeepseekV4ForCausalLM", "DeepseekV4ForCausalLMDSpark")
_STEP = ("Step3p5ForCausalLM", "Step3p7ForConditionalGeneration")
_NEMOTRON_H = ("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "NemotronH_Omni_Reasoning_V3")
_QWEN35 = (
    "Qwen3NextForCausalLM", "Qwen3_5MoeForConditionalGeneration", "Qwen3_5ForConditionalGeneration",
    "InternS2PreviewForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
)  # fmt: skip
_MINIMAX_M3 = (
    "MiniMaxM3SparseForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration",
    "MiniMaxM3ForCausalLM",
)
_INKLING = ("InklingForConditionalGeneration",)

_EARLY_DEEPSEEK = (
    "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "KimiK25ForConditionalGeneration",
    "MistralLarge3ForCausalLM",
    "PixtralForConditionalGeneration", "GlmMoeDsaForCausalLM", "HYV4ForCausalLM", "LongcatFlashForCausalLM",
    "Dots3NoteForCausalLM", "KimiK3ForConditionalGeneration",
)  # fmt: skip

_POOLS_058 = frozenset({"Llama4ForConditionalGeneration", "GptOssForCausalLM", "MiMoV2FlashForCausalLM"})
_POOLS_059 = _POOLS_058 | {"Step3p5ForCausalLM"}
_POOLS_0512 = _POOLS_059 | {*_DEEPSEEK_V4, *_MIMO_V2, *_GEMMA4[:2], "LagunaForCausalLM"}
_POOLS_0514 = _POOLS_0512 | {*_GEMMA4[:3], *_STEP}
_POOLS = _POOLS_0514 | {
    *_GEMMA4, "GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM", "IQuestQ1ForCausalLM", "MellumForCausalLM",
    "MuseGlimmerForCausalLM", "MuseGlimmerForConditionalGeneration", *_INKLING, "UnlimitedOCRForCausalLM",
    "BeamForCausalLM", "EmbeddingGemma2Model",
}  # fmt: skip
#: Architectures whose window layers have a pool of their own, by set of versions.
WINDOW_POOLS: tuple[frozenset[str], ...] = (
    frozenset(), _POOLS_058, _POOLS_059, _POOLS_0514, _POOLS
)  # fmt: skip

#: Model types that tell a class of the tables where a file states none (text parts, GGUF).
_CLASS_OF_TYPE = {
    "gpt_oss": "GptOssForCausalLM", "gpt-oss": "GptOssForCausalLM",
    "llama4": "Llama4ForConditionalGeneration",
    "llama4_text": "Llama4ForConditionalGeneration", "gemma4": "Gemma4ForCausalLM",
    "gemma4_text": "Gemma4ForCausalLM", "mimo_v2_flash": "MiMoV2FlashForCausalLM",
    "mimo2": "MiMoV2FlashForCausalLM",
    "step3p5": "Step3p5ForCausalLM", "deepseek_v4": "DeepseekV4ForCausalLM",
    "deepseek4": "DeepseekV4ForCausalLM",
    "laguna": "LagunaForCausalLM", "qwen3_next": "Qwen3NextForCausalLM", "qwen3next": "Qwen3NextForCausalLM",
    "qwen3_5_text": "Qwen3_5ForCausalLM", "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
    "qwen35": "Qwen3_5ForCausalLM",
    "qwen35moe": "Qwen3_5MoeForCausalLM", "nemotron_h": "NemotronHForCausalLM",
    "nemotron_h_moe": "NemotronHForCausalLM",
    "falcon_h1": "FalconH1ForCausalLM", "falcon-h1": "FalconH1ForCausalLM", "lfm2": "Lfm2ForCausalLM",
    "lfm2moe": "Lfm2MoeForCausalLM", "lfm2_moe": "Lfm2MoeForCausalLM",
    "granitehybrid": "GraniteMoeHybridForCausalLM",
    "granitemoehybrid": "GraniteMoeHybridForCausalLM", "kimi_linear": "KimiLinearForCausalLM",
    "kimi-linear": "KimiLinearForCausalLM", "mamba": "MambaForCausalLM", "mamba2": "Mamba2ForCausalLM",
}  # fmt: skip

#: Architectures whose state layers SGLang runs.
STATE_ARCHITECTURES = frozenset({
    *_QWEN35, *_NEMOTRON_H, "Qwen3_5MoeForCausalLM", "Qwen3_5ForCausalLM", "Qwen4ExpForConditionalGeneration",
    "MiniCPMV4_6ForConditionalGeneration", "MiniCPMV4_7ForConditionalGeneration", "KimiLinearForCausalLM",
    "KimiK3ForConditionalGeneration", "BailingMoeV2_5ForCausalLM", "BailingMoeV3ForCausalLM",
    "BailingMoeV3VLForConditionalGeneration", "FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM",
    "JetNemotronForCausalLM", "JetVLMForConditionalGeneration", "Lfm2ForCausalLM", "Lfm2MoeForCausalLM",
    "Lfm2VlForConditionalGeneration", "ZayaForCausalLM", "Glm5NextForConditionalGeneration",
    "NemotronH_Nano_VL_V2", "NemotronH_Nano_Omni_Reasoning_V3", "MambaForCausalLM", "Mamba2ForCausalLM",
    "FalconMambaForCausalLM", "MiniCPMForCausalLM", "MiniCPMSALAForCausalLM", "GigaChat35ForCausalLM",
    *_INKLING,
})  # fmt: skip
#: Of those, the ones whose radix cache keeps no snapshots in slots of its own.
_NO_EXTRA_BUFFER = frozenset({
    "JetNemotronForCausalLM", "JetVLMForConditionalGeneration", "Lfm2ForCausalLM", "Lfm2MoeForCausalLM",
    "Lfm2VlForConditionalGeneration", "ZayaForCausalLM", "NemotronH_Nano_VL_V2",
    "NemotronH_Nano_Omni_Reasoning_V3",
    "MambaForCausalLM", "Mamba2ForCausalLM", "FalconMambaForCausalLM", "MiniCPMForCausalLM",
    "MiniCPMSALAForCausalLM", "InternS2MobiusForConditionalGeneration", "GigaChat35ForCausalLM",
})  # fmt: skip

#: Architectures whose latents are kept as such; of others it is not known.
LATENT_ARCHITECTURES = frozenset({
    "DeepseekV2ForCausalLM", *_EARLY_DEEPSEEK, "Glm4MoeLiteForCausalLM", "Glm5NextForConditionalGeneration",
    "DotsVLMForCausalLM", "GigaChat35ForCausalLM", "MiniCPM3ForCausalLM", "DeepseekVL2ForCausalLM",
    "KimiVLForConditionalGeneration", "KimiLinearForCausalLM", "BailingMoeV2_5ForCausalLM",
    "BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration", "BailingMoeForCausalLM",
    "SarvamMLAForCausalLM",
})  # fmt: skip

#: Nested models whose images and sound are off unless asked for.
_IMAGES_OFF = frozenset({
    "Gemma3ForConditionalGeneration", "Llama4ForConditionalGeneration", "Step3VLForConditionalGeneration",
    *_INKLING,
})  # fmt: skip
#: Models with towers whose configs are flat, or state none.
_IMAGES_ON = frozenset({
    "DeepseekVL2ForCausalLM", "Grok1VForCausalLM", "LlavaLlamaForCausalLM", "LlavaMistralForCausalLM",
    "LlavaQwenForCausalLM", "LlavaVidForCausalLM", "MiniCPMO", "MiniCPMV", "MultiModalityCausalLM",
    "Qwen2VLForConditionalGeneration", "Qwen2_5_VLForConditionalGeneration", "Phi4MMForCausalLM",
    "InternVLChatModel", "Qwen2AudioForConditionalGeneration", "DotsOCRForCausalLM", "DotsVLMForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration", "WhisperForConditionalGeneration",
})  # fmt: skip
#: Model types whose class fills a tower in, whose fields have other names than those that are read.
_TYPES_WITH_TOWER = frozenset({"step3p7"})
#: Multimodal models whose prefill is captured all the same.
_GRAPHED_IMAGES = frozenset({
    "MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3SparseForCausalLM",
    "Cohere2VisionForConditionalGeneration",
    "Glm5NextForConditionalGeneration", "InternS2MobiusForConditionalGeneration",
    "PaddleOCRVLForConditionalGeneration", "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
    "Qwen4ExpForConditionalGeneration", "MuseGlimmerForConditionalGeneration",
    "MuseSparkForConditionalGeneration",
    "KimiK3ForConditionalGeneration", "KimiK25ForConditionalGeneration", *_INKLING,
})  # fmt: skip
#: Of types that are captured although they run Kimi delta attention.
GRAPHED_DELTA = frozenset({"Glm5NextForConditionalGeneration"})


class Backends(NamedTuple):
    """Attention backends by compute capability: SM100, SM90, other; None is the general rule."""

    sm100: str | None = None
    sm90: str | None = None
    other: str | None = None


_BY_ARCHITECTURE: Mapping[tuple[str, ...], Backends] = {
    _EARLY_DEEPSEEK: Backends("trtllm_mla"),
    ("GptOssForCausalLM", "Llama4ForConditionalGeneration", "Llama4ForCausalLM"): Backends(
        "trtllm_mha", "fa3", "triton"
    ),
    _GEMMA4[:3]: Backends("trtllm_mha", "triton", "triton"),
    (*_GEMMA4[3:], "EmbeddingGemma2Model"): Backends("triton", "triton", "triton"),
    _NEMOTRON_H: Backends("trtllm_mha"),
    _MIMO_V2: Backends("fa4"),
    (*_STEP, "Step3p7FlashForCausalLM"): Backends("fa4", "fa3"),
    ("Lfm2ForCausalLM", "Lfm2MoeForCausalLM", "GraniteMoeHybridForCausalLM"): Backends("flashinfer"),
    ("FalconH1ForCausalLM", "JetNemotronForCausalLM", "JetVLMForConditionalGeneration",
     "MiniCPMV4_6ForConditionalGeneration", "MiniCPMV4_7ForConditionalGeneration"): Backends("triton"),
    ("Exaone4ForCausalLM", "ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM", "Olmo2ForCausalLM"): Backends(
        "trtllm_mha", "fa3", "fa3"
    ),
    _MINIMAX_M3: Backends("fa4", "fa3"),
}  # fmt: skip
BACKENDS = {name: row for names, row in _BY_ARCHITECTURE.items() for name in names}
#: On SM100 these page by 64 only beside drafting or without a radix cache.
PAGED_WITH_DRAFTS = frozenset((*_QWEN35, "Qwen4ExpForConditionalGeneration"))
#: Pages of 128 tokens, which their sparse blocks need, unless told.
PAGE_128 = frozenset(_MINIMAX_M3)
#: Attention sinks, which FlashInfer does not run.
SINKS = frozenset(
    {"GptOssForCausalLM", "GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM", "IQuestQ1ForCausalLM"}
)
#: Draft steps, branches and tokens where none is told; the rest takes 3, 1, 4.
WIDE_DRAFTS = frozenset({"LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM"})
#: Decode graphs grow to the limit of requests on large Hopper cards.
GRAPHS_TO_LIMIT = frozenset({"Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"})


def class_name(architecture: ModelArchitecture) -> str:
    """Return the class that the tables are asked for: the file's, else the one of its type."""
    known = architecture.architecture or architecture.model_type
    return _CLASS_OF_TYPE.get(known, known)


def is_multimodal(architecture: ModelArchitecture, *, asked: bool = False) -> bool:
    """Whether the engine takes a model for one with images or sound: nested, or listed.

    Args:
        asked: ``--enable-multimodal``.
    """
    name = class_name(architecture)
    dimensions = dict(architecture.dimensions)
    if name in _IMAGES_OFF and not asked:
        return False
    if name == "MiMoV2ForCausalLM" and not ("vision_config" in dimensions and "audio_config" in dimensions):
        return False
    nested = "text_config" in dimensions or architecture.model_type in _TYPES_WITH_TOWER
    return nested or name in _IMAGES_ON


def captures_images(architecture: ModelArchitecture) -> bool:
    """Whether prefill of a multimodal model is captured."""
    return class_name(architecture) in _GRAPHED_IMAGES


def has_extra_buffer(name: str) -> bool:
    """Whether snapshots for the radix cache lie in slots of their own."""
    return name in STATE_ARCHITECTURES and name not in _NO_EXTRA_BUFFER


def tower_size(architecture: ModelArchitecture) -> tuple[int, int] | None:
    """Return (layers, hidden size) of the image tower as the engine reads them, or None without a tower.

    Only ``num_hidden_layers`` and ``hidden_size`` are read; a tower that names them otherwise counts as
    the usual one of 24 layers of 1,024.
    """
    dimensions = dict(architecture.dimensions)
    if "vision_config" not in dimensions and architecture.model_type not in _TYPES_WITH_TOWER:
        return None
    return (
        dimensions.get("vision_config.num_hidden_layers", 24),
        dimensions.get("vision_config.hidden_size", 1024),
    )
