"""Timings, printed and never judged: run on an idle machine, ``python benchmarks/run.py``.

CPU time of whole processes (user + system, the least of many runs, the bare interpreter's subtracted)
and wall time of calls inside one process.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import kvgauge

RUNS = 30
MAIN = "from kvgauge.cli import main; main()"
PROCESSES = {
    "python -c pass": ["-c", "pass"],
    "import kvgauge": ["-c", "import kvgauge"],
    "size --json": ["-c", MAIN, "size", "Qwen/Qwen3-8B", "--json"],
    "size": ["-c", MAIN, "size", "Qwen/Qwen3-8B"],
    "size --lang zh": ["-c", MAIN, "size", "Qwen/Qwen3-8B", "--lang", "zh"],
    "explain": ["-c", MAIN, "explain", "Qwen/Qwen3-8B"],
    "fit": ["-c", MAIN, "fit", "Qwen/Qwen3-8B", "--gpu", "H100"],
    "fit --json": ["-c", MAIN, "fit", "Qwen/Qwen3-8B", "--gpu", "H100", "--json"],
    **{
        f"fit that does not, {engine}": [
            "-c", MAIN, "fit", "Qwen/Qwen3-32B", "--gpu", "RTX 4090", "--engine", engine, "--json",
        ]
        for engine in ("vllm", "sglang", "tensorrt-llm", "llama.cpp")
    },
    "fit of experts that does not": [
        "-c", MAIN, "fit", "Qwen/Qwen3.5-35B-A3B", "--gpu", "RTX 4090", "--engine", "llama.cpp", "--json",
    ],
    "compare of four": [
        "-c", MAIN, "compare", "Qwen/Qwen3-30B-A3B", "zai-org/GLM-4.7-Flash", "Qwen/Qwen3.5-35B-A3B",
        "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    ],
    "--version": ["-c", MAIN, "--version"],
}  # fmt: skip

#: Milliseconds over the bare interpreter.
AIMS = {"size --json": "60", "size": "85"}


def cpu_ms(arguments: list[str]) -> float:
    """Return the least CPU milliseconds of a child process."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    best = float("inf")
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run([sys.executable, *arguments], env=env, check=True, **quiet)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, used * 1000)
    return best


def wall_ms(call: Callable[[], object], repeat: int) -> float:
    """Return the least wall milliseconds of one call."""
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        best = min(best, (time.perf_counter() - start) * 1000)
    return best


def main() -> None:
    """Print the table."""
    bare = 0.0
    print(f"{'process':31} {'CPU ms':>8} {'over bare':>10}   aim")
    for name, arguments in PROCESSES.items():
        used = cpu_ms(arguments)
        bare = bare or used
        aim = "250, whole process" if name.startswith("fit") else AIMS.get(name, "")
        print(f"{name:31} {used:8.1f} {used - bare:10.1f}   {aim}")
    config = {
        "model_type": "qwen3", "num_hidden_layers": 100, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "hidden_size": 8192, "torch_dtype": "bfloat16",
    }  # fmt: skip
    model = kvgauge.load(config)
    hybrid = kvgauge.size("moonshotai/Kimi-K3").cache
    contexts = range(1, 1_000_001, 100)
    calls: dict[str, tuple[Callable[[], object], int, str]] = {
        "load of a 100-layer config": (lambda: kvgauge.load(config), 50, ""),
        "size of a loaded 100-layer model": (lambda: kvgauge.size(model), 200, "1"),
        "bytes_at over 10,000 contexts": (lambda: [hybrid.bytes_at(t) for t in contexts], 5, "1000"),
        "to_dict of a loaded 100-layer model": (lambda: kvgauge.size(model).to_dict(), 50, ""),
    }
    print(f"{'call':37} {'wall ms':>8}   aim")
    for name, (call, repeat, aim) in calls.items():
        print(f"{name:37} {wall_ms(call, repeat):8.3f}   {aim}")


if __name__ == "__main__":
    main()
