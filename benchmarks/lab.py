"""How long the lab's answers take, and the memory of a folder of Qwen3-0.6B's shape with random weights.

Printed and never judged; the goals are two seconds for each answer, and 8 GiB for the folder.

python benchmarks/lab.py
python benchmarks/lab.py FOLDER     writes 1.2 GB there once, and decodes from it
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

COMMANDS = (
    ("learn", "walk", "今天天气"),
    ("learn", "walk", "The weather today", "--new-tokens", "64"),
    ("learn", "activations", "Qwen/Qwen3-8B"),
    ("learn", "activations", "kvgauge-lab", "--measure"),
    ("learn", "mechanisms"),
    ("learn", "flash"),
    ("learn", "paged"),
    ("learn", "quantised"),
)
SHAPE = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 1024,
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 3072,
    "vocab_size": 151936, "max_position_embeddings": 40960, "rms_norm_eps": 1e-6, "rope_theta": 1e6,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16", "hidden_act": "silu",
}  # fmt: skip


def shapes() -> dict[str, tuple[int, ...]]:
    """Return every tensor of the shape."""
    hidden, inner, queries, kept = 1024, 3072, 2048, 1024
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (151936, hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(28):
        parts = {
            "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,),
            "self_attn.q_proj": (queries, hidden), "self_attn.k_proj": (kept, hidden),
            "self_attn.v_proj": (kept, hidden), "self_attn.o_proj": (hidden, queries),
            "self_attn.q_norm": (128,), "self_attn.k_norm": (128,), "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner),
        }  # fmt: skip
        found |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in parts.items()}
    return found


def write(folder: Path) -> None:
    """Write random weights in bf16, two files and an index."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(SHAPE), encoding="utf-8")
    tensors, random = list(shapes().items()), np.random.default_rng(0)
    places = {}
    for number, part in enumerate((tensors[:100], tensors[100:]), 1):
        file, header, end = f"model-0000{number}-of-00002.safetensors", {}, 0
        for name, shape in part:
            begin, end = end, end + 2 * int(np.prod(shape))
            header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
            places[name] = file
        text = json.dumps(header).encode()
        with (folder / file).open("wb") as stream:
            stream.write(struct.pack("<Q", len(text)) + text)
            for _, shape in part:
                values = random.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
                stream.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())
    index = json.dumps({"metadata": {}, "weight_map": places})
    (folder / "model.safetensors.index.json").write_text(index, encoding="utf-8")


def run(*words: str) -> tuple[float, int]:
    """Return seconds and peak bytes of a command."""
    code = (
        "import resource, sys; from kvgauge.cli.app import execute; code = execute(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    begin = time.perf_counter()
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
    return time.perf_counter() - begin, 1024 * int(done.stderr.split()[-1])


def main() -> None:
    """Print the figures."""
    for words in COMMANDS:
        seconds, peak = min(run(*words) for _ in range(3))
        print(f"{seconds:6.2f} s  {peak / 2**20:7,.0f} MiB  kvgauge {' '.join(words)}")
    if len(sys.argv) == 2:
        folder = Path(sys.argv[1])
        if not (folder / "config.json").is_file():
            write(folder)
        seconds, peak = run("learn", "walk", "--model", str(folder), "--ids", "1,2,3,4", "--new-tokens", "4")
        print(f"{seconds:6.2f} s  {peak / 2**20:7,.0f} MiB  walk in Qwen3-0.6B's shape")


if __name__ == "__main__":
    main()
