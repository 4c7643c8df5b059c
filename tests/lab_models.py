"""Small decoders whose weights any machine makes alike, with the logits that Transformers gives for them."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

from kvgauge.lab.folder import Folder, open_folder, save_folder
from support import ROOT

GOLDEN = ROOT / "tests/golden/lab_decoder_transformers_5.24.0.jsonl"

_LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 23, "hidden_size": 16,
    "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False, "torch_dtype": "float32", "attention_bias": False, "mlp_bias": False,
}  # fmt: skip
_QWEN3 = {
    **{k: v for k, v in _LLAMA.items() if k != "mlp_bias"}, "model_type": "qwen3", "head_dim": 8,
    "architectures": ["Qwen3ForCausalLM"],
}  # fmt: skip
_SCALED = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip

CONFIGS: dict[str, dict] = {
    "llama_gqa": _LLAMA,
    "llama_mha_bias_tied": {
        **_LLAMA, "num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
    },
    "llama_mqa": {**_LLAMA, "num_key_value_heads": 1},
    "llama3_scaled": {**_LLAMA, "rope_theta": 500000.0, "rope_scaling": _SCALED},
    "llama_linear": {**_LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
    "llama_new_fields": {**_LLAMA, "rope_parameters": {**_SCALED, "rope_theta": 1e6}},
    "qwen3_gqa": _QWEN3,
    "qwen3_tied_wide_heads": {**_QWEN3, "tie_word_embeddings": True, "head_dim": 12, "num_key_value_heads": 1},
}  # fmt: skip

TOKENS, PROMPT, SEQUENCES = 9, 4, 3


def ids(sequences: int = SEQUENCES, tokens: int = TOKENS, vocabulary: int = 23) -> np.ndarray:
    return (hashed("ids", (sequences, tokens)) * 1e6).astype(np.int64) % vocabulary


def hashed(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in [0, 1) from a name alone, by whole-number arithmetic."""
    count = int(np.prod(shape))
    x = np.arange(count, dtype=np.uint64) + np.uint64(zlib.crc32(name.encode()))
    for factor in (0x9E3779B1, 0x85EBCA77):
        x = (x * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
        x ^= x >> np.uint64(15)
    return (x.astype(np.float64) / 2**32).reshape(shape)


def tensors(config: dict) -> dict[str, np.ndarray]:
    """The weights of a config: norms around one, all else around zero."""
    h, heads, kv = config["hidden_size"], config["num_attention_heads"], config["num_key_value_heads"]
    d, inner = config.get("head_dim", h // heads), config["intermediate_size"]
    shapes = {"model.embed_tokens.weight": (config["vocab_size"], h), "model.norm.weight": (h,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], h)
    attention = {"q": (heads * d, h), "k": (kv * d, h), "v": (kv * d, h), "o": (h, heads * d)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        shapes |= {f"{prefix}{n}_layernorm.weight": (h,) for n in ("input", "post_attention")}
        linear = {f"{prefix}self_attn.{n}_proj": s for n, s in attention.items()}
        mlp = {"gate": (inner, h), "up": (inner, h), "down": (h, inner)}
        linear_mlp = {f"{prefix}mlp.{n}_proj": s for n, s in mlp.items()}
        shapes |= {f"{name}.weight": shape for name, shape in (linear | linear_mlp).items()}
        if config.get("attention_bias"):
            shapes |= {f"{name}.bias": shape[:1] for name, shape in linear.items()}
        if config.get("mlp_bias"):
            shapes |= {f"{name}.bias": shape[:1] for name, shape in linear_mlp.items()}
        if config["model_type"] == "qwen3":
            shapes |= {f"{prefix}self_attn.{n}_norm.weight": (d,) for n in "qk"}
    return {name: _weights(name, shape) for name, shape in shapes.items()}


def _weights(name: str, shape: tuple[int, ...]) -> np.ndarray:
    values = hashed(name, shape)
    return (0.5 + values if "norm" in name else 1.2 * (values - 0.5)).astype(np.float32)


def make(path: Path, name: str) -> Folder:
    """Write the folder of a config and open it."""
    save_folder(path, CONFIGS[name], tensors(CONFIGS[name]))
    return open_folder(path)


def golden() -> dict[str, np.ndarray]:
    """Name -> logits [sequences, tokens, vocabulary] of Transformers."""
    rows = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    return {row["config"]: np.array(row["logits"]) for row in rows}
