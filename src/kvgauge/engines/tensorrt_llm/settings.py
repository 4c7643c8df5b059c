"""What TensorRT-LLM is told: flags of ``trtllm-serve`` and fields of its ``kv_cache_config``."""

from __future__ import annotations

from kvgauge.errors import InvalidRequestError
from kvgauge.units import MAX_SEQUENCES, MAX_SIZE_BYTES, MAX_TOKENS
from kvgauge.values import dataclass

MAX_WINDOWS = 10_000


@dataclass(frozen=True, slots=True)
class TrtllmSettings:
    """What the engine is told; None is its own default.

    Args:
        version: of the rules; None is the newest known.
        tensor, pipeline: ranks of each kind.
        expert: ranks that experts are spread over; it changes no cache.
        attention_dp: every rank holds whole caches of its own requests.
        kv_dtype: the engine's word.
        dtype: dtype of activations where it is not the model's, canonical.
        free_fraction: share of the memory that is free after weights and activations, as written.
        max_tokens: ``kv_cache_config.max_tokens``, which lowers the pool.
        max_gpu_bytes: ``kv_cache_config.max_gpu_total_bytes``.
        attention_windows: ``kv_cache_config.max_attention_window``, repeated over the layers; empty is full.
        block_reuse: finished blocks are kept for like prompts.
        state_dtype: dtype of recurrent state, canonical.
        snapshot_tokens: tokens between two snapshots of the state that reuse keeps; None is none.
        draft_tokens: drafted tokens a step.
        mtp: the model's own multi-token-prediction layers draft.
        ignored_flags: words that the engine knows and that do not touch the cache.
    """

    version: str | None = None
    tensor: int = 1
    pipeline: int = 1
    attention_dp: bool = False
    kv_dtype: str = "auto"
    dtype: str | None = None
    free_fraction: str | None = None
    tokens_per_block: int | None = None
    max_tokens: int | None = None
    max_gpu_bytes: int | None = None
    max_batch: int | None = None
    max_num_tokens: int | None = None
    max_seq_tokens: int | None = None
    attention_windows: tuple[int, ...] = ()
    block_reuse: bool = True
    state_dtype: str | None = None
    snapshot_tokens: int | None = None
    draft_tokens: int = 0
    mtp: bool = False
    expert: int = 1
    ignored_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for flag, value, low, high in (
            ("tp_size", self.tensor, 1, 4096),
            ("pp_size", self.pipeline, 1, 4096),
            ("ep_size", self.expert, 1, 4096),
            ("tokens_per_block", self.tokens_per_block, 1, 1 << 20),
            ("max_tokens", self.max_tokens, 1, MAX_TOKENS),
            ("max_gpu_total_bytes", self.max_gpu_bytes, 0, MAX_SIZE_BYTES),
            ("max_batch_size", self.max_batch, 1, MAX_SEQUENCES),
            ("max_num_tokens", self.max_num_tokens, 1, MAX_TOKENS),
            ("max_seq_len", self.max_seq_tokens, 1, MAX_TOKENS),
            ("mamba_snapshot_interval", self.snapshot_tokens, 1, MAX_TOKENS),
            ("num_draft_tokens", self.draft_tokens, 0, 64),
            *(("max_attention_window", window, 1, MAX_TOKENS) for window in self.attention_windows),
        ):
            if value is not None and (isinstance(value, bool) or not low <= value <= high):
                raise InvalidRequestError(
                    f"--{flag} must be a whole number from {low} to {high}, not {value!r}", field=flag
                )
        block = self.tokens_per_block
        if block is not None and block & (block - 1):
            raise InvalidRequestError(
                f"tokens_per_block {block} is not a power of two",
                hint="32 and 64 are usual",
                field="tokens_per_block",
            )
        if len(self.attention_windows) > MAX_WINDOWS:
            raise InvalidRequestError(
                f"max_attention_window lists more than {MAX_WINDOWS} layers", field="max_attention_window"
            )

    @property
    def attention_ranks(self) -> int:
        """Ranks that share the KV heads."""
        return 1 if self.attention_dp else self.tensor
