"""llama.cpp: what llama-server, llama-cli, Ollama and LM Studio set aside, without the weights."""

from __future__ import annotations

from kvgauge.engines.llamacpp.builds import BUILDS, NEWEST, BuildRules, build_notes, rules_for
from kvgauge.engines.llamacpp.plan import LlamaAllocation, LlamaPlan, plan
from kvgauge.engines.llamacpp.settings import LlamaSettings, settings_of

__all__ = [
    "BUILDS",
    "NEWEST",
    "BuildRules",
    "LlamaAllocation",
    "LlamaPlan",
    "LlamaSettings",
    "build_notes",
    "plan",
    "rules_for",
    "settings_of",
]
