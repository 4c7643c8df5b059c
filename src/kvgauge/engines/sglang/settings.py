"""What SGLang is told: its flags as facts, before any default."""

from __future__ import annotations

from dataclasses import field

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.vllm.devices import DEFAULT_GPU, GpuClass
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.units import MAX_SEQUENCES, MAX_TOKENS
from kvgauge.values import dataclass

#: The most speculative tokens of a step that are taken for meant.
MAX_SPECULATIVE = 64
#: Algorithms that draft with layers which lie in the same slots as the target's.
_LAYERED = frozenset({"EAGLE", "EAGLE3", "NEXTN", "STANDALONE"})
#: Algorithms whose draft is a model of its own shape.
_OWN_SHAPE = frozenset({"DFLASH", "DSPARK"})


@dataclass(frozen=True, slots=True)
class SglangSpeculation:
    """Speculative decoding.

    Args:
        algorithm: the engine's word in capitals; empty is off.
        steps, top_k, draft_tokens: as told; None is the engine's own choice.
        model: name of the draft model, as it was given.
        drafter: layers of a draft model of its own, or None.
    """

    algorithm: str = ""
    steps: int | None = None
    top_k: int | None = None
    draft_tokens: int | None = None
    model: str = ""
    drafter: ModelArchitecture | None = None

    @property
    def on(self) -> bool:
        """Whether tokens are drafted at all."""
        return bool(self.algorithm)

    @property
    def shares_slots(self) -> bool:
        """Whether the draft's layers are priced by the target's own bytes a layer."""
        return self.algorithm in _LAYERED

    @property
    def has_own_shape(self) -> bool:
        """Whether the draft's layers are priced by the draft's own config."""
        return self.algorithm in _OWN_SHAPE


@dataclass(frozen=True, slots=True)
class SglangSettings:
    """What the engine is told; None is its own default.

    Args:
        version: of the rules; None is the newest known.
        gpu: class of the card, which sets defaults and backends.
        tensor, pipeline: ranks of each kind.
        expert: ranks that experts are spread over; it changes no cache.
        data: replicas, or attention groups inside the tensor ranks where ``dp_attention`` is on.
        kv_dtype: the engine's word.
        dtype: dtype of activations where it is not the model's, canonical.
        context_tokens: ``--context-length``.
        graph_max_batch: largest decode batch that is captured.
        prefill_graph_max_tokens: largest prefill that is captured.
        decode_graphs, prefill_graphs: whether graphs of either phase are captured; None leaves prefill to
            the engine.
        window_ratio: tokens of the window pool over those of the full one.
        window_pools: False keeps window layers as full ones.
        max_state_slots, state_ratio, state_dtype: of the recurrent state.
        state_strategy: ``auto``, ``no_buffer``, ``extra_buffer`` or ``extra_buffer_lazy``.
        overlap: scheduling overlaps with the forward pass.
        attention_backend: the engine's word, of both phases where not told apart.
        mem_fraction: ``--mem-fraction-static``, as written.
        role: ``null``, ``prefill`` or ``decode``, of a disaggregated server.
        all_to_all: backend of expert dispatch; ``deepep`` holds buffers of its own.
        text_only: images and sound are switched off.
        multimodal: ``--enable-multimodal``.
        feature_transport: how image features reach the model: ``cpu``, ``cuda_ipc`` or ``cuda_vmm``.
        host_weight_bytes: weights of each rank that are kept in the host's memory.
        ignored_flags: words that the engine knows and that do not touch the cache.
    """

    version: str | None = None
    gpu: GpuClass = DEFAULT_GPU
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    dp_attention: bool = False
    kv_dtype: str = "auto"
    dtype: str | None = None
    page_size_tokens: int | None = None
    context_tokens: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    chunked_prefill_tokens: int | None = None
    graph_max_batch: int | None = None
    prefill_graph_max_tokens: int | None = None
    decode_graphs: bool = True
    prefill_graphs: bool | None = None
    radix_cache: bool = True
    overlap: bool = True
    window_ratio: float | None = None
    window_pools: bool = True
    max_state_slots: int | None = None
    state_ratio: float = 0.9
    state_dtype: str | None = None
    state_strategy: str = "auto"
    speculation: SglangSpeculation = field(default_factory=SglangSpeculation)
    attention_backend: str | None = None
    prefill_backend: str | None = None
    decode_backend: str | None = None
    sparse_prefill_backend: str | None = None
    sparse_decode_backend: str | None = None
    mem_fraction: str | None = None
    role: str = "null"
    all_to_all: str = "none"
    text_only: bool = False
    multimodal: bool = False
    feature_transport: str | None = None
    expert: int = 1
    host_weight_bytes: int = 0
    ignored_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for flag, value, low, high in (
            ("tp-size", self.tensor, 1, 4096),
            ("pp-size", self.pipeline, 1, 4096),
            ("dp-size", self.data, 1, 4096),
            ("ep-size", self.expert, 1, 4096),
            ("page-size", self.page_size_tokens, 1, 1 << 20),
            ("context-length", self.context_tokens, 1, MAX_TOKENS),
            ("max-running-requests", self.max_running_requests, 1, MAX_SEQUENCES),
            ("max-total-tokens", self.max_total_tokens, 1, MAX_TOKENS),
            ("chunked-prefill-size", self.chunked_prefill_tokens, -1, MAX_TOKENS),
            ("cuda-graph-max-bs", self.graph_max_batch, 1, MAX_SEQUENCES),
            ("cuda-graph-max-bs-prefill", self.prefill_graph_max_tokens, 1, 1 << 24),
            ("max-mamba-cache-size", self.max_state_slots, 1, MAX_SEQUENCES),
            ("speculative-num-steps", self.speculation.steps, 0, MAX_SPECULATIVE),
            ("speculative-eagle-topk", self.speculation.top_k, 1, MAX_SPECULATIVE),
            ("speculative-num-draft-tokens", self.speculation.draft_tokens, 1, MAX_SPECULATIVE),
        ):
            if value is not None and (isinstance(value, bool) or not low <= value <= high):
                raise InvalidRequestError(
                    f"--{flag} must be a whole number from {low} to {high}, not {value!r}", field=flag
                )
        if self.dp_attention and self.tensor % self.data:
            raise FeatureUnsupportedError(
                f"--dp-size {self.data} does not divide --tp-size {self.tensor}",
                hint="attention groups lie inside the tensor-parallel ranks",
                field="dp",
            )

    @property
    def attention_groups(self) -> int:
        """Groups of ranks that hold caches of their own inside the tensor ranks."""
        return self.data if self.dp_attention else 1

    @property
    def attention_ranks(self) -> int:
        """Ranks that share the KV heads of one group."""
        return self.tensor // self.attention_groups
