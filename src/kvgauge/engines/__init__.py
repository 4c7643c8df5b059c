"""Engines: what each sets aside for an architecture under a load.

``ENGINES`` is the index; an engine is one module that offers ``demand``. Modules are imported when
their engine is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kvgauge.engines.index import ENGINES, EngineInfo
from kvgauge.errors import InvalidRequestError

if TYPE_CHECKING:
    from kvgauge.engines.base import Engine

__all__ = ["ENGINES", "EngineInfo", "load_engine", "parse_engine"]

_ALIASES = {
    "hf": "transformers",
    "llamacpp": "llama.cpp",
    "llama_cpp": "llama.cpp",
    "llama-cpp": "llama.cpp",
    "llama-server": "llama.cpp",
    "sgl": "sglang",
    "trtllm": "tensorrt-llm",
    "trt-llm": "tensorrt-llm",
    "tensorrt_llm": "tensorrt-llm",
    "tensorrtllm": "tensorrt-llm",
}


def parse_engine(text: str) -> tuple[str, str | None]:
    """Split ``name[@version]`` and resolve the name.

    Raises:
        InvalidRequestError: unknown engine or malformed version.
    """
    name, _, version = text.strip().lower().partition("@")
    name = _ALIASES.get(name, name)
    if name in ENGINES:
        return name, version or None
    import difflib  # noqa: PLC0415 - only a mistyped name needs it

    near = difflib.get_close_matches(name, ENGINES, n=1)
    hint = f"did you mean {near[0]}?" if near else f"one of: {', '.join(ENGINES)}"
    raise InvalidRequestError(f"engine {text!r} is not known", hint=hint, field="engine")


def load_engine(name: str) -> Engine:
    """Import the module of an engine and return its ``ENGINE``."""
    module = import_module(ENGINES[name].module)
    engine: Engine = module.ENGINE
    return engine
