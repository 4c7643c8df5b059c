"""TensorRT-LLM: paged blocks from a share of the memory that is free after weights and activations.

``plan`` derives bytes a token, blocks, pools by window and states from an architecture and the engine's
settings; its ``pool`` turns a quota into blocks and tokens. Versions differ by the table in ``versions``.
"""

from __future__ import annotations

from kvgauge.engines.tensorrt_llm.planning import plan
from kvgauge.engines.tensorrt_llm.pool import TrtllmGroup, TrtllmPlan, TrtllmPool
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings

__all__ = ["TrtllmGroup", "TrtllmPlan", "TrtllmPool", "TrtllmSettings", "plan"]
