"""How an engine is run, from its own settings: what ``estimate`` asks of them, defaults filled in."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm.versions import parse_version
from kvgauge.overhead_drivers import NEWEST, Running, captures_wide, graph_sizes
from kvgauge.overhead_encoder import image_item_tokens, image_token_bytes

if TYPE_CHECKING:
    from kvgauge.engines.sglang.settings import SglangSettings
    from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
    from kvgauge.engines.vllm.devices import GpuClass
    from kvgauge.engines.vllm.settings import VllmSettings

#: The first engine's own defaults: sequences, and the batch of a prefill in chunks, which long models get.
_FIRST_SEQUENCES, _FIRST_BATCH, _FIRST_LONGEST = 256, 2048, 32768
_AMPERE = 8
#: From here on there is no first engine.
_ONE_ENGINE = parse_version("0.11.0")
#: Words of the names of cards that are joined by NVLink as a rule, and of those that are not.
_LINKED = ("h100", "h200", "h800", "h20", "a100", "a800", "b200", "b300", "gb200", "gb300", "gh200")
#: Most requests of a step of SGLang where neither a flag nor its graphs say less.
_SGLANG_SEQUENCES = 256
#: A prefill of SGLang that is not cut into chunks.
_SGLANG_PREFILL = 16384


def vllm_running(
    architecture: ModelArchitecture,
    settings: VllmSettings,
    config: Mapping[str, object] = MappingProxyType({}),
    *,
    nodes: int = 1,
) -> Running:
    """Return how vLLM is run under these settings, its own defaults filled in.

    Args:
        config: of the model, for the pixels behind a token of an image.
        nodes: machines that the ranks are spread over.

    Raises:
        MissingFieldError: nothing says how long a request may be.
    """
    from kvgauge.engines.vllm.schedule import schedule  # noqa: PLC0415 - one engine is loaded
    from kvgauge.engines.vllm.versions import rules_for  # noqa: PLC0415

    rules = rules_for(settings.version)
    plan = schedule(architecture, settings, rules)
    tokens, sequences = plan.batched_tokens, plan.sequences
    # Cards before Ampere are served by the first engine as long as there is one.
    is_old_card = settings.gpu.capability is not None and settings.gpu.major < _AMPERE
    if rules.engine_v0 or (is_old_card and parse_version(settings.version or NEWEST) < _ONE_ENGINE):
        sequences = settings.max_sequences or _FIRST_SEQUENCES
        if settings.max_batched_tokens is None:
            chunked = settings.chunked_prefill or (
                settings.chunked_prefill is None and plan.max_model_tokens > _FIRST_LONGEST
            )
            tokens = _FIRST_BATCH if chunked else max(_FIRST_BATCH, plan.max_model_tokens)
    gpu, drafted = settings.gpu, settings.speculation.tokens
    wide = captures_wide(settings.version, gpu.major, architecture.model_type)
    sizes = graph_sizes(settings.version, sequences, drafted, wide=wide)
    return Running(
        "vllm",
        settings.version,
        tokens,
        sequences,
        plan.max_model_tokens,
        tensor=settings.tensor,
        pipeline=settings.pipeline,
        replicas=settings.data if settings.expert_parallel else 1,
        nodes=nodes,
        expert_parallel=settings.expert_parallel,
        eager=settings.enforce_eager,
        graph_sizes=0 if settings.enforce_eager else sizes,
        speculative_tokens=drafted,
        capability=gpu.capability,
        linked=_linked(gpu),
        image_token_bytes=image_token_bytes(config),
        image_item_tokens=image_item_tokens(config),
        images=not settings.language_model_only,
        is_other_maker=gpu.capability is None,
        drafter=("mtp" if settings.speculation.uses_mtp else settings.speculation.method) if drafted else "",
    )


def sglang_running(architecture: ModelArchitecture, settings: SglangSettings) -> Running:
    """Return how SGLang is run under these settings, its own defaults filled in."""
    from kvgauge.engines.sglang.memory import memory_defaults  # noqa: PLC0415 - one engine is loaded
    from kvgauge.engines.sglang.versions import rules_for as sglang_rules  # noqa: PLC0415

    defaults = memory_defaults(architecture, settings, sglang_rules(settings.version))
    batch = defaults.graph_max_batch
    drafted = settings.speculation.draft_tokens or 0
    return Running(
        "sglang",
        settings.version,
        defaults.chunk_tokens if defaults.chunk_tokens > 0 else _SGLANG_PREFILL,
        min(defaults.max_requests or batch, batch) or _SGLANG_SEQUENCES,
        settings.context_tokens or architecture.context_limit_tokens or 0,
        tensor=settings.tensor,
        pipeline=settings.pipeline,
        expert_parallel=settings.expert > 1,
        eager=not settings.decode_graphs,
        graph_sizes=sglang_graph_sizes(batch) if settings.decode_graphs else 0,
        speculative_tokens=drafted if settings.speculation.on else 0,
        capability=settings.gpu.capability,
        linked=_linked(settings.gpu),
        images=not settings.text_only,
    )


def sglang_graph_sizes(largest: int) -> int:
    """Return how many decode batches SGLang captures: 1, 2, 4, steps of 4 to 16, 8 to 256, then 16.

    >>> [sglang_graph_sizes(largest) for largest in (8, 32, 159, 512)]  # as start-up logs list them
    [4, 8, 24, 52]
    """
    sizes = {1, 2, 4, *range(8, 17, 4), *range(24, 257, 8), *range(272, 513, 16), largest}
    return sum(size <= largest for size in sizes)


def tensorrt_llm_running(architecture: ModelArchitecture, settings: TrtllmSettings) -> Running:
    """Return how TensorRT-LLM is run under these settings, its own defaults filled in."""
    from kvgauge.engines.tensorrt_llm.versions import rules_for as trtllm_rules  # noqa: PLC0415

    rules = trtllm_rules(settings.version)
    return Running(
        "tensorrt-llm",
        settings.version,
        settings.max_num_tokens or rules.max_num_tokens,
        settings.max_batch or rules.max_batch,
        settings.max_seq_tokens or architecture.context_limit_tokens or 0,
        tensor=settings.tensor,
        pipeline=settings.pipeline,
        expert_parallel=settings.expert > 1,
        speculative_tokens=settings.draft_tokens,
    )


def _linked(gpu: GpuClass) -> bool | None:
    return gpu.named(*_LINKED) if gpu.name else None


__all__ = ["sglang_graph_sizes", "sglang_running", "tensorrt_llm_running", "vllm_running"]
