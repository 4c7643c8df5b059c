"""kvgauge: what a language model costs in memory before it is served.

>>> import kvgauge
>>> kvgauge.size("Qwen/Qwen3-8B", context=32768).cache.total_bytes
4831838208
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kvgauge._version import __version__

if TYPE_CHECKING:
    from kvgauge.comparison import compare
    from kvgauge.derivation import explain
    from kvgauge.errors import KvgaugeError
    from kvgauge.fit_result import FitResult
    from kvgauge.fitting import fit
    from kvgauge.models import Model, load
    from kvgauge.planning.plan import plan
    from kvgauge.planning.result import PlanResult
    from kvgauge.replay.replaying import accuracy
    from kvgauge.size_result import SizeResult
    from kvgauge.sizing import size
    from kvgauge.verification.verifying import verify

_PUBLIC = {
    "FitResult": "kvgauge.fit_result",
    "KvgaugeError": "kvgauge.errors",
    "Model": "kvgauge.models",
    "PlanResult": "kvgauge.planning.result",
    "SizeResult": "kvgauge.size_result",
    "accuracy": "kvgauge.replay.replaying",
    "compare": "kvgauge.comparison",
    "explain": "kvgauge.derivation",
    "fit": "kvgauge.fitting",
    "load": "kvgauge.models",
    "plan": "kvgauge.planning.plan",
    "size": "kvgauge.sizing",
    "verify": "kvgauge.verification.verifying",
}

__all__ = [
    "FitResult", "KvgaugeError", "Model", "PlanResult", "SizeResult", "__version__", "accuracy", "compare",
    "explain", "fit", "load", "plan", "size", "verify",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import public names on first use (PEP 562), so that importing the package costs nothing."""
    module = _PUBLIC.get(name)
    if module is None:
        raise AttributeError(f"module 'kvgauge' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
