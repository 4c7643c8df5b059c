"""Checkpoints made up for tests: tensors of a config's families, quantised as the common layouts do it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path

from kvgauge.readers.hf.weights import read_weights
from kvgauge.sources.safetensors import DTYPE_BITS, Checkpoint, TensorInfo
from kvgauge.weights import ModelWeights, TensorFamily

#: Tensor name -> (dtype word of the format, shape).
Tensors = dict[str, tuple[str, tuple[int, ...]]]

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 3, "hidden_size": 256,
    "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 384,
    "torch_dtype": "bfloat16", "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
TIED = {**LLAMA, "tie_word_embeddings": True}
MOE = {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 2,
    "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 128, "num_experts": 8,
    "num_experts_per_tok": 2, "decoder_sparse_step": 1, "mlp_only_layers": [], "head_dim": 32,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 384, "torch_dtype": "bfloat16",
    "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 3,
    "first_k_dense_replace": 1, "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 128,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_layer_freq": 1,
    "num_attention_heads": 8, "num_key_value_heads": 8, "q_lora_rank": 64, "kv_lora_rank": 64,
    "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32, "vocab_size": 384,
    "num_nextn_predict_layers": 1, "torch_dtype": "bfloat16", "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
}  # fmt: skip


def weights_of(config: dict) -> ModelWeights:
    found = read_weights(config)
    assert found is not None
    return found


def tensors_of(config: dict, *, tied: bool = False) -> Tensors:
    """Return the plain checkpoint of a config; ``tied`` writes heads that are the embedding too."""
    weights = weights_of(config)
    found: Tensors = {}
    for family in (*weights.families, *weights.mtp_families):
        if not family.tied_to or tied:
            found |= {name: ("BF16", shape) for name, shape in _members(family)}
    return found


def _members(family: TensorFamily) -> Iterable[tuple[str, tuple[int, ...]]]:
    shape = (family.num_experts, *family.shape) if family.stacked else family.shape
    experts = range(family.num_experts) if family.num_experts and not family.stacked else (0,)
    for layer in family.layers or (0,):
        for expert in experts:
            yield family.name.replace("{layer}", str(layer)).replace("{expert}", str(expert)), shape


Quantiser = Callable[[str, int, int], Tensors]


def quantised(tensors: Tensors, scheme: Quantiser) -> Tensors:
    """Quantise the matrices of the layers' projections."""
    found: Tensors = {}
    for name, (dtype, shape) in tensors.items():
        module = name.removesuffix(".weight")
        if "_proj" in module and name.endswith(".weight") and len(shape) == 2:
            found |= scheme(module, *shape)
        else:
            found[name] = (dtype, shape)
    return found


def gptq(module: str, out: int, into: int, bits: int = 4, group: int = 64) -> Tensors:
    return {
        f"{module}.qweight": ("I32", (into * bits // 32, out)),
        f"{module}.qzeros": ("I32", (into // group, out * bits // 32)),
        f"{module}.scales": ("F16", (into // group, out)),
        f"{module}.g_idx": ("I32", (into,)),
    }


def gptq3(module: str, out: int, into: int) -> Tensors:
    return gptq(module, out, into, bits=3)


def awq(module: str, out: int, into: int) -> Tensors:
    return {
        f"{module}.qweight": ("I32", (into, out // 8)),
        f"{module}.qzeros": ("I32", (into // 64, out // 8)),
        f"{module}.scales": ("F16", (into // 64, out)),
    }


def fp8_blocks(module: str, out: int, into: int) -> Tensors:
    return {
        f"{module}.weight": ("F8_E4M3", (out, into)),
        f"{module}.weight_scale_inv": ("F32", (-(-out // 128), -(-into // 128))),
    }


def fp8_static(module: str, out: int, into: int) -> Tensors:
    return {
        f"{module}.weight": ("F8_E4M3", (out, into)),
        f"{module}.weight_scale": ("F32", ()),
        f"{module}.input_scale": ("F32", ()),
    }


def modelopt_nvfp4(module: str, out: int, into: int) -> Tensors:
    return {
        f"{module}.weight": ("U8", (out, into // 2)),
        f"{module}.weight_scale": ("F8_E4M3", (out, into // 16)),
        f"{module}.weight_scale_2": ("F32", ()),
        f"{module}.input_scale": ("F32", ()),
    }


def compressed_nvfp4(module: str, out: int, into: int) -> Tensors:
    return {
        f"{module}.weight_packed": ("U8", (out, into // 2)),
        f"{module}.weight_scale": ("F8_E4M3", (out, into // 16)),
        f"{module}.weight_global_scale": ("F32", (1,)),
        f"{module}.input_global_scale": ("F32", (1,)),
    }


def compressed_int4(module: str, out: int, into: int) -> Tensors:
    """Symmetric, so no tensor but the config or the hidden size tells the bits."""
    return {
        f"{module}.weight_packed": ("I32", (out, into // 8)),
        f"{module}.weight_scale": ("BF16", (out, into // 64)),
        f"{module}.weight_shape": ("I64", (2,)),
    }


def compressed_int8(module: str, out: int, into: int) -> Tensors:
    return {f"{module}.weight": ("I8", (out, into)), f"{module}.weight_scale": ("BF16", (out, 1))}


def bnb_nf4(module: str, out: int, into: int) -> Tensors:
    return {
        f"{module}.weight": ("U8", (out * into // 2, 1)),
        f"{module}.weight.absmax": ("U8", (out * into // 64,)),
        f"{module}.weight.quant_map": ("F32", (16,)),
        f"{module}.weight.nested_absmax": ("F32", (out * into // 64 // 256,)),
        f"{module}.weight.nested_quant_map": ("F32", (256,)),
        f"{module}.weight.quant_state.bitsandbytes__nf4": ("U8", (93,)),
    }


def deepseek_fp4(module: str, out: int, into: int) -> Tensors:
    return {f"{module}.weight": ("I8", (out, into // 2)), f"{module}.scale": ("F8_E8M0", (out, into // 32))}


def mlx4(module: str, out: int, into: int) -> Tensors:
    return {
        f"{module}.weight": ("U32", (out, into // 8)),
        f"{module}.scales": ("BF16", (out, into // 64)),
        f"{module}.biases": ("BF16", (out, into // 64)),
    }


def num_bytes(tensors: Tensors) -> int:
    return sum(math.prod(shape) * DTYPE_BITS[dtype] // 8 for dtype, shape in tensors.values())


def checkpoint(tensors: Tensors) -> Checkpoint:
    infos = (
        TensorInfo(name, dtype, shape, math.prod(shape) * DTYPE_BITS[dtype] // 8)
        for name, (dtype, shape) in tensors.items()
    )
    return Checkpoint(tuple(infos), ("model.safetensors",), {})


def file_bytes(tensors: Tensors, *, data: bool = True) -> bytes:
    """Return a safetensors file of zeros; without ``data`` its header alone."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    begin = 0
    for name, (dtype, shape) in tensors.items():
        end = begin + math.prod(shape) * DTYPE_BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + (bytes(begin) if data else b"")


def split_files(tensors: Tensors, count: int, stem: str = "model") -> dict[str, bytes]:
    """Return a split set with its index."""
    parts: list[Tensors] = [{} for _ in range(count)]
    for number, (name, tensor) in enumerate(tensors.items()):
        parts[number % count][name] = tensor
    names = [f"{stem}-{number + 1:05}-of-{count:05}.safetensors" for number in range(count)]
    index = {
        "metadata": {"total_size": num_bytes(tensors)},
        "weight_map": {name: file for file, part in zip(names, parts, strict=True) for name in part},
    }
    files = {file: file_bytes(part) for file, part in zip(names, parts, strict=True)}
    return {**files, f"{stem}.safetensors.index.json": json.dumps(index).encode()}


def write(folder: Path, files: dict[str, bytes], config: dict | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder
