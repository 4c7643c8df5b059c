"""vLLM: paged blocks of one size, drawn by groups of layers from one pool.

``plan`` derives block size, pages and groups from an architecture and the engine's settings; its ``pool``
turns a byte budget into blocks, tokens and concurrency. Versions differ by the table in ``versions``.
"""

from __future__ import annotations

from kvgauge.engines.vllm.planning import plan
from kvgauge.engines.vllm.pool import VllmGroup, VllmPlan, VllmPool
from kvgauge.engines.vllm.settings import Speculation, VllmSettings

__all__ = ["Speculation", "VllmGroup", "VllmPlan", "VllmPool", "VllmSettings", "plan"]
