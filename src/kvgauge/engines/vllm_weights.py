"""How vLLM 0.33 cuts weights: what its layers pad, hold twice or refuse.

Sources (package vllm==0.33.0): model_executor/layers/vocab_parallel_embedding.py, layers/fused_moe/oracle/*,
layers/quantization/utils/fp8_utils.py, models/*.
"""

from __future__ import annotations

from types import MappingProxyType

from kvgauge.sharding import ExpertPadding, ShardPolicy

#: DEFAULT_VOCAB_PADDING_SIZE.
VOCABULARY_MULTIPLE = 64

#: Types whose class builds embedding and head on every pipeline stage, whichever needs them.
_BOTH_EVERYWHERE = frozenset(
    {
        "bloom", "chatglm", "falcon", "falcon_mamba", "gpt2", "gptj", "gpt_oss", "granitemoe",
        "granitemoehybrid", "granitemoeshared", "internlm2", "jamba", "mamba", "mamba2", "minicpm",
        "minicpm3", "mixtral", "nemotron_h", "olmoe", "opt", "orion", "phimoe", "qwen2_moe", "qwen3_moe",
        "qwen3_next", "qwen3_vl_moe", "qwen3_vl_moe_text", "stablelm", "zamba2",
    }
)  # fmt: skip
#: Types whose class builds the embedding on every stage and the head on the last.
_EMBEDDING_EVERYWHERE = frozenset(
    {
        "cohere", "cohere2", "gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "gemma4",
        "gemma4_text", "lfm2", "lfm2_moe", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text",
    }
)  # fmt: skip

#: Types whose class keeps router matrices in fp32, and those that do where no kernel for it is.
_WIDE_ROUTER = frozenset(
    {
        "ernie4_5_moe", "glm4_moe", "mimo_v2_flash", "minimax_m2", "minimax_m3", "minimax_m3_vl_text",
        "step3p5",
    }
)  # fmt: skip
_WIDE_ROUTER_WITHOUT_KERNEL = frozenset({"nemotron_h"})
#: Decay parameters (mamba_mixer2.py, qwen_gdn_linear_attn.py) and index keys (deepseek_v2.py: joined with a
#: projection that is not quantised) as they are loaded.
_HELD_AS = {
    "A_log": "f32",
    "indexer.k_norm.weight": "f32",
    "indexer.k_norm.bias": "f32",
    "indexer.wk.weight": "bf16",
}

#: Tensors that a class holds whole on every rank: a plain ``nn.Embedding`` (whisper.py).
_WHOLE = MappingProxyType({"whisper": ("decoder.embed_tokens.weight",)})

#: Activations that the TensorRT-LLM kernels of unquantised experts know (trtllm_bf16_moe.py).
_TRTLLM_ACTIVATIONS = frozenset({"silu", "swish", "relu2"})
_TRTLLM_EXPERTS = 2048
_BLACKWELL, _HOPPER = 10, 9
#: From here on Hopper is taken to run MXFP4 experts in Triton.
_TRITON_EXPERTS = "0.20.0.dev0"


def shard_policy(
    *,
    model_type: str = "",
    compute_capability: tuple[int, int] = (9, 0),
    expert_activation: str = "silu",
    num_experts: int = 0,
    model_dtype: str = "",
    version: str | None = None,
) -> ShardPolicy:
    """Return the policy of vLLM 0.33 for a model on a device.

    Args:
        model_type: of the language model.
        compute_capability: of the device; experts are padded for the kernels that it has.
        expert_activation: ``hidden_act`` of the experts.
        num_experts: routed experts.
        model_dtype: canonical dtype of the model; ``--dtype auto`` loads a 32-bit model in 16 bits
            (config/model.py).
        version: whose kernels are taken; None: the newest known.
    """
    from kvgauge.engines.vllm.versions import parse_version  # noqa: PLC0415 - its package needs this module

    hopper_pads = version is not None and parse_version(version) < parse_version(_TRITON_EXPERTS)
    return ShardPolicy(
        vocabulary_multiple=VOCABULARY_MULTIPLE,
        pads_vocabulary=False,
        whole_tiles=True,
        held_as=MappingProxyType(_HELD_AS),
        whole=_WHOLE.get(model_type, ()),
        loaded_as=MappingProxyType({"f32": "bf16"} if model_dtype == "f32" else {}),
        wide_router=model_type in _WIDE_ROUTER
        or (model_type in _WIDE_ROUTER_WITHOUT_KERNEL and compute_capability[0] not in (_HOPPER, _BLACKWELL)),
        refines_expert_tiles=True,
        whole_expert_groups=True,
        whole_towers=False,
        expert_padding=MappingProxyType(
            _expert_padding(compute_capability[0], expert_activation, num_experts, hopper_pads=hopper_pads)
        ),
        loads_tied_projections=True,
        embedding_everywhere=model_type in _BOTH_EVERYWHERE | _EMBEDDING_EVERYWHERE,
        head_everywhere=model_type in _BOTH_EVERYWHERE,
    )


def _expert_padding(
    major: int, activation: str, num_experts: int, *, hopper_pads: bool = False
) -> dict[str, ExpertPadding]:
    """Return what the expert kernels need, the first backend in order that the device supports.

    MXFP4: Triton on Hopper pads to 64; TensorRT-LLM (Blackwell) and Marlin (Ampere) to 128 and the hidden
    size to 256 (oracle/mxfp4.py). Unquantised: TensorRT-LLM on Blackwell pads to 128 (oracle/unquantized.py).

    Args:
        hopper_pads: Hopper runs Marlin too: logs of 0.10 to 0.19 show weights and pools of its layout, though
            Triton's kernels came with vLLM in some of them.
    """
    in_triton = major == _HOPPER and not hopper_pads
    padding = {"mxfp4": ExpertPadding(64, 1) if in_triton else ExpertPadding(128, 256)}
    if major == _BLACKWELL and activation in _TRTLLM_ACTIVATIONS and num_experts <= _TRTLLM_EXPERTS:
        padding |= dict.fromkeys(("bf16", "f16"), ExpertPadding(128, 1))
    return padding
