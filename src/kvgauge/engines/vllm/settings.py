"""What vLLM is told: its flags as facts, before any default."""

from __future__ import annotations

from dataclasses import field

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm.devices import DEFAULT_GPU, GpuClass
from kvgauge.errors import InvalidRequestError
from kvgauge.units import MAX_SEQUENCES, MAX_SIZE_BYTES, MAX_TOKENS
from kvgauge.values import dataclass

#: The most speculative tokens of a step that are taken for meant.
MAX_SPECULATIVE = 64

#: Speculation methods without layers of their own; async scheduling does not go with them.
DRAFTLESS_METHODS = frozenset({"ngram", "suffix"})
#: Methods that read layers which the target's own checkpoint holds.
MTP_METHODS = frozenset({"mtp", "deepseek_mtp", "qwen3_next_mtp", "glm4_moe_mtp", "mimo_mtp", "ernie_mtp",
                         "longcat_flash_mtp", "nemotron_h_mtp", "qwen3_5_mtp"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Speculation:
    """Speculative decoding.

    Args:
        tokens: drafted tokens a step; 0 is off.
        method: the engine's word.
        model: name of the draft model, as it was given.
        drafter: layers of a draft model of its own, or None.
    """

    tokens: int = 0
    method: str = "mtp"
    model: str = ""
    drafter: ModelArchitecture | None = None

    @property
    def uses_mtp(self) -> bool:
        """Whether the model's own multi-token-prediction layers draft."""
        return self.tokens > 0 and (self.method in MTP_METHODS or self.method.endswith("_mtp"))


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """What the engine is told; None is its own default.

    Args:
        version: of the rules; None is the newest known.
        gpu: class of the card, which sets defaults and backends.
        tensor: ranks of each kind, ``decode_context`` inside the tensor ranks.
        kv_dtype: the engine's word.
        dtype: dtype of activations where it is not the model's, canonical.
        max_model_tokens: longest request; 0 is ``auto``, the longest that fits.
        hybrid_manager: False keeps windows as full attention.
        state_dtype, conv_dtype: dtypes of recurrent state and of convolution columns, canonical.
        state_cache_mode: ``none``, ``align`` or ``all``.
        attention_backend: the engine's word; None lets it choose.
        utilization: share of the card, as written.
        llm_class: defaults of the Python class instead of the server's.
        throughput_mode: twice the default batch and sequences.
        language_model_only: no image, video or audio item is taken.
        host_weight_bytes: weights of each rank that are kept in the host's memory.
        ignored_flags: words that the engine knows and that do not touch the cache.
    """

    version: str | None = None
    gpu: GpuClass = DEFAULT_GPU
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    decode_context: int = 1
    prefill_context: int = 1
    expert_parallel: bool = False
    kv_dtype: str = "auto"
    dtype: str | None = None
    block_size_tokens: int | None = None
    max_model_tokens: int | None = None
    max_batched_tokens: int | None = None
    max_sequences: int | None = None
    prefix_caching: bool | None = None
    chunked_prefill: bool | None = None
    async_scheduling: bool | None = None
    hybrid_manager: bool | None = None
    speculation: Speculation = field(default_factory=Speculation)
    state_dtype: str | None = None
    conv_dtype: str | None = None
    state_cache_mode: str | None = None
    state_block_tokens: int | None = None
    attention_backend: str | None = None
    num_blocks_override: int | None = None
    kv_memory_bytes: int | None = None
    utilization: str | None = None
    enforce_eager: bool = False
    llm_class: bool = False
    throughput_mode: bool = False
    language_model_only: bool = False
    host_weight_bytes: int = 0
    ignored_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for flag, value, low, high in (
            ("tensor-parallel-size", self.tensor, 1, 4096),
            ("pipeline-parallel-size", self.pipeline, 1, 4096),
            ("data-parallel-size", self.data, 1, 4096),
            ("decode-context-parallel-size", self.decode_context, 1, 4096),
            ("prefill-context-parallel-size", self.prefill_context, 1, 4096),
            ("block-size", self.block_size_tokens, 1, 1 << 20),
            ("mamba-block-size", self.state_block_tokens, 1, MAX_TOKENS),
            ("max-model-len", self.max_model_tokens, 0, MAX_TOKENS),
            ("max-num-batched-tokens", self.max_batched_tokens, 1, MAX_TOKENS),
            ("max-num-seqs", self.max_sequences, 1, MAX_SEQUENCES),
            ("num-gpu-blocks-override", self.num_blocks_override, 1, MAX_TOKENS),
            ("kv-cache-memory-bytes", self.kv_memory_bytes, 1, MAX_SIZE_BYTES),
            ("num-speculative-tokens", self.speculation.tokens, 0, MAX_SPECULATIVE),
        ):
            if value is not None and (isinstance(value, bool) or not low <= value <= high):
                raise InvalidRequestError(
                    f"--{flag} must be a whole number from {low} to {high}, not {value!r}", field=flag
                )
        if self.tensor % self.decode_context:
            raise InvalidRequestError(
                f"--dcp {self.decode_context} does not divide --tp {self.tensor}",
                hint="decode context parallelism works inside the tensor-parallel ranks",
                field="dcp",
            )
