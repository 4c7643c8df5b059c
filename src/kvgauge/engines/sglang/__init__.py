"""SGLang: one slot a token, in one pool or in two, beside slots of recurrent state.

``plan`` derives bytes a token, pages, state and defaults from an architecture and the engine's settings; its
``pool`` turns the memory left after weights and slack into tokens, state slots and running requests. Versions
differ by the table in ``versions``.
"""

from __future__ import annotations

from kvgauge.engines.sglang.planning import plan
from kvgauge.engines.sglang.pool import SglangPlan, SglangPool
from kvgauge.engines.sglang.settings import SglangSettings, SglangSpeculation

__all__ = ["SglangPlan", "SglangPool", "SglangSettings", "SglangSpeculation", "plan"]
