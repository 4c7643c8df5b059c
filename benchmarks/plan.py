"""Wall time of ``plan`` over the whole catalogue, printed and never judged: ``python benchmarks/plan.py``.

Each model is loaded and weighed before the clock starts, as a process that answers many requests has it.
"""

from __future__ import annotations

import time

import kvgauge

AIM_S = 2.0
LOADS = (
    ("Qwen/Qwen3-8B", "32k", 8),
    ("meta-llama/Llama-3.1-70B-Instruct", "128k", 4),
    ("Qwen/Qwen3.5-35B-A3B", "128k", 8),
    ("openai/gpt-oss-120b", "128k", 16),
    ("deepseek-ai/DeepSeek-V3.2", "32k", 16),
    ("moonshotai/Kimi-K2-Instruct", "32k", 16),
)


def main() -> None:
    """Print the table."""
    print(f"{'model':36} {'devices':8} {'wall s':>7} {'CPU s':>7}   aim {AIM_S:g}")
    for name, context, sequences in LOADS:
        model = kvgauge.load(name)
        _ = model.weighed
        for gpu in (None, "all"):
            start, used = time.perf_counter(), time.process_time()
            result = kvgauge.plan(model, gpu=gpu, context=context, sequences=sequences)
            wall, cpu = time.perf_counter() - start, time.process_time() - used
            print(f"{name:36} {result.num_devices:8} {wall:7.2f} {cpu:7.2f}   {len(result.options)} options")


if __name__ == "__main__":
    main()
