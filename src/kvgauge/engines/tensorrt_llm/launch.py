"""The line that starts TensorRT-LLM for a load, the user's own flags kept as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kvgauge.engines.tensorrt_llm.flags import VALUES, parse_flags
from kvgauge.engines.tensorrt_llm.pool import TrtllmPlan
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings


def launch_command(model: str, plan: TrtllmPlan, args: str, max_batch: int | None) -> str:
    """Return ``trtllm-serve`` with a flag for everything that is not the engine's default.

    Args:
        max_batch: sequences that the load needs, where the default is fewer.
    """
    given, plain = parse_flags(args), TrtllmSettings()
    words = ["trtllm-serve", model]
    for flag, value in _flags(plan, max_batch):
        name = VALUES[flag][0]
        if getattr(given, name) == getattr(plain, name):
            words += [f"--{flag}", value] if value else [f"--{flag}"]
    own = shlex.split(args)
    if own[:1] == ["trtllm-serve"]:
        own = own[1:] if len(own) > 1 and own[1].startswith("-") else own[2:]
    return shlex.join([*words, *own])


def _flags(plan: TrtllmPlan, max_batch: int | None) -> Iterator[tuple[str, str]]:
    settings = plan.settings
    yield "max_seq_len", str(plan.max_seq_tokens)
    if settings.tensor > 1:
        yield "tp_size", str(settings.tensor)
    if settings.pipeline > 1:
        yield "pp_size", str(settings.pipeline)
    if settings.expert > 1 and not settings.attention_dp:
        yield "ep_size", str(settings.expert)
    if settings.attention_dp:
        yield "enable_attention_dp", ""
    if settings.kv_dtype != "auto":
        yield "kv_cache_dtype", settings.kv_dtype
    if settings.state_dtype is not None:
        yield "mamba_ssm_cache_dtype", settings.state_dtype
    if max_batch is not None:
        yield "max_batch_size", str(max_batch)
    if settings.free_fraction is not None:
        yield "kv_cache_free_gpu_memory_fraction", settings.free_fraction
    if settings.mtp and settings.draft_tokens:
        yield "num_nextn_predict_layers", str(settings.draft_tokens)
