"""The table of engines: one row an engine, with the versions whose rules are held."""

from __future__ import annotations

from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """One engine.

    Args:
        versions: versions whose rules were checked, oldest first; empty where there is no version.
        source: where the rules come from.
    """

    name: str
    module: str
    versions: tuple[str, ...]
    summary: str
    source: str


ENGINES = {
    "theory": EngineInfo(
        "theory",
        "kvgauge.engines.theory",
        (),
        "what must be kept, whatever the engine",
        "shapes and dtypes of the config",
    ),
    "transformers": EngineInfo(
        "transformers",
        "kvgauge.engines.transformers",
        ("4.57.3", "5.14", "5.15", "5.24.0"),
        "Hugging Face Transformers: dynamic and static caches",
        "cache bytes after real forward passes, transformers 4.57.3 and 5.24.0 (torch 2.13.0, CPU)",
    ),
    "vllm": EngineInfo(
        "vllm",
        "kvgauge.engines.vllm.engine",
        (
            "0.6.0",
            "0.7.0",
            "0.8.0",
            "0.9.2",
            "0.11.0",
            "0.12.0",
            "0.15.0",
            "0.19.0",
            "0.20.0",
            "0.20.1",
            "0.24.0",
            "0.26.0",
            "0.28.0",
            "0.29.0",
            "0.32.0",
            "0.33.0",
        ),
        "vLLM: blocks of every group, padding, the pool and what its log prints",
        "plans of vLLM 0.33.0's own code; released code of 0.6.6 to 0.33.0; start-up logs of those versions",
    ),
    "sglang": EngineInfo(
        "sglang",
        "kvgauge.engines.sglang.engine",
        (
            "0.4.3", "0.4.6", "0.4.7", "0.4.8", "0.5.1", "0.5.3", "0.5.4", "0.5.6", "0.5.7", "0.5.8", "0.5.9",
            "0.5.10", "0.5.12", "0.5.14", "0.5.18", "0.5.20", "0.5.23",
        ),
        "SGLang: tokens in pages, window pools, slots of state, and the defaults that set them",
        "plans of SGLang 0.5.23's own code; released code of 0.4.3 to 0.5.23; start-up logs of those",
    ),
    "llama.cpp": EngineInfo(
        "llama.cpp",
        "kvgauge.engines.llamacpp.engine",
        ("b2000", "b5140", "b5430", "b5910", "b7000", "b7820", "b9000", "v0.5.0"),
        "llama.cpp as llama-server starts it: every sub-cache, state and buffer, on the devices and the host",
        "6,628 contexts of llama.cpp v0.5.0's own libraries; start-up logs of b2000 to v0.5.0, and of a fork",
    ),
    "tensorrt-llm": EngineInfo(
        "tensorrt-llm",
        "kvgauge.engines.tensorrt_llm.engine",
        ("0.8.0", "1.0.0", "1.4.0"),
        "TensorRT-LLM: blocks from a quota of the free memory, pools by window, states of the batch",
        "code of the main branch of 2026, read and not run; start-up logs of 0.x and 1.x",
    ),
}  # fmt: skip
