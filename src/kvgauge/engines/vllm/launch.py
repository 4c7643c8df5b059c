"""The line that starts vLLM for a load, the user's own flags kept as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kvgauge.engines.vllm.flags import VALUES, stated_settings
from kvgauge.engines.vllm.pool import VllmPlan
from kvgauge.engines.vllm.settings import VllmSettings
from kvgauge.workload import Workload

#: Canonical dtype -> vLLM's word.
DTYPE_WORDS = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
#: Field of the settings that a flag written here sets.
_FIELDS = {
    **{flag: name for flag, (name, _) in VALUES.items()},
    "--enable-expert-parallel": "expert_parallel",
    "--speculative-config": "speculation",
}


def launch_command(
    model: str,
    settings: VllmSettings,
    workload: Workload,
    plan: VllmPlan,
    args: str,
    max_sequences: int | None,
) -> str:
    """Return ``vllm serve`` with a flag for everything that is not the engine's default.

    Args:
        max_sequences: most sequences that the pool starts with, where the default is more.
    """
    given = stated_settings(args)
    words = ["vllm", "serve", model]
    for flag, value in _flags(settings, workload, plan, max_sequences):
        if _FIELDS.get(flag) not in given:
            words += [flag, value] if value else [flag]
    own = shlex.split(args)
    if own[:2] == ["vllm", "serve"]:
        own = own[2:] if len(own) > 2 and own[2].startswith("-") else own[3:]
    return shlex.join([*words, *own])


def _flags(
    settings: VllmSettings, workload: Workload, plan: VllmPlan, max_sequences: int | None
) -> Iterator[tuple[str, str]]:
    yield "--max-model-len", "auto" if plan.fits_length else str(plan.schedule.max_model_tokens)
    for flag, count in (
        ("--tensor-parallel-size", settings.tensor),
        ("--pipeline-parallel-size", settings.pipeline),
        ("--data-parallel-size", settings.data),
        ("--decode-context-parallel-size", settings.decode_context),
    ):
        if count > 1:
            yield flag, str(count)
    if settings.expert_parallel:
        yield "--enable-expert-parallel", ""
    if settings.kv_dtype != "auto":
        yield "--kv-cache-dtype", settings.kv_dtype
    if settings.state_dtype is not None:
        yield "--mamba-ssm-cache-dtype", DTYPE_WORDS.get(settings.state_dtype, settings.state_dtype)
    sequences = -(-workload.sequences // settings.data)
    if max_sequences is not None or settings.max_sequences is not None:
        yield "--max-num-seqs", str(sequences if max_sequences is None else max_sequences)
    if settings.speculation.uses_mtp:
        yield (
            "--speculative-config",
            f'{{"method":"mtp","num_speculative_tokens":{settings.speculation.tokens}}}',
        )
    if settings.utilization is not None and settings.kv_memory_bytes is None:
        yield "--gpu-memory-utilization", settings.utilization
