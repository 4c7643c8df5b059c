"""The pool: from a quota of bytes to blocks and tokens, by window where layers differ in it.

Source: ``_torch/pyexecutor/resource_manager.py`` and ``_util.py`` of the main branch of 2026.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
from kvgauge.engines.tensorrt_llm.versions import TrtllmRules
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class TrtllmGroup:
    """Layers with one window, which have blocks of their own.

    Args:
        window_tokens: of the group; the longest request where it is full.
        bytes_per_token: of all its layers, by pipeline stage.
    """

    window_tokens: int
    num_layers: int
    bytes_per_token: tuple[Fraction, ...]


@dataclass(frozen=True)
class TrtllmPool:
    """What a quota gives on the rank that has least.

    Args:
        num_blocks: of the group with the longest window.
        capacity_tokens: tokens of those blocks, as the engine prints them.
        blocks_by_window: (window, blocks) of every group.
        state_slots: slots of recurrent state; None without state.
        longest_tokens: longest request, lowered to what the blocks hold.
        kv_bytes, state_bytes: that blocks and states take, of the fullest stage.
        starts: the engine does.
    """

    num_blocks: int
    capacity_tokens: int
    blocks_by_window: tuple[tuple[int, int], ...]
    state_slots: int | None
    longest_tokens: int
    kv_bytes: int
    state_bytes: int
    starts: bool
    available_bytes: int


@dataclass(frozen=True)
class TrtllmPlan:
    """What TensorRT-LLM sets aside for a model, before it knows how much memory there is.

    Args:
        kv_dtype: canonical format of the cache.
        state_bytes_per_slot: of one request's state, by pipeline stage.
        snapshot_tokens: tokens between kept snapshots of the state, or None.
        layer_windows: (layer, window) of the layers with blocks.
        stage_layers: layers of each pipeline stage, those beyond the model's own in the last.
        assumed: codes of what no log or rule confirms: ``windows``, ``sparse_index``, ``states``.
    """

    rules: TrtllmRules
    settings: TrtllmSettings
    kv_dtype: str
    tokens_per_block: int
    max_seq_tokens: int
    max_batch: int
    groups: tuple[TrtllmGroup, ...]
    state_bytes_per_slot: tuple[int, ...]
    assumed: tuple[str, ...] = ()
    layer_windows: tuple[tuple[int, int], ...] = ()
    stage_layers: tuple[range, ...] = ()

    @property
    def free_fraction(self) -> Fraction:
        """The share of the free memory that the quota is."""
        return Fraction(self.settings.free_fraction or self.rules.fraction)

    @cached_property
    def bytes_per_token(self) -> Fraction:
        """Bytes of one token in all layers of the fullest stage."""
        return max(self._by_stage, default=Fraction(0))

    @cached_property
    def _by_stage(self) -> tuple[Fraction, ...]:
        stages = len(self.state_bytes_per_slot)
        return tuple(sum((g.bytes_per_token[s] for g in self.groups), Fraction(0)) for s in range(stages))

    @property
    def fixed_slots(self) -> int:
        """Slots of state that are held whatever the tokens: one a sequence and stage, and one to spare."""
        settings = self.settings
        return self.max_batch * settings.pipeline + 1 + settings.draft_tokens if self.has_state else 0

    @property
    def has_state(self) -> bool:
        """Whether layers keep a recurrent state."""
        return any(self.state_bytes_per_slot)

    def quota(self, free_bytes: int) -> int:
        """Return the bytes that the pool may take of those free after weights and activations."""
        share = int(max(0, free_bytes) * self.free_fraction)
        limit = self.settings.max_gpu_bytes
        return min(share, limit) if limit else share

    def pool(self, quota_bytes: int) -> TrtllmPool:
        """Return what a quota gives on every rank."""
        quota = max(0, quota_bytes)
        found = [self._stage_blocks(quota, stage) for stage in range(len(self.state_bytes_per_slot))]
        blocks = [
            min((known for stage in found if (known := stage[number]) is not None), default=0)
            for number in range(len(self.groups))
        ]
        by_window = tuple((g.window_tokens, b) for g, b in zip(self.groups, blocks, strict=True))
        longest = max(by_window, default=(0, 0))
        capacity = longest[1] * self.tokens_per_block
        snapshots = self._snapshots(capacity)
        slots = self.fixed_slots + snapshots if self.has_state else None
        full = longest[0] == self.max_seq_tokens
        return TrtllmPool(
            longest[1],
            capacity,
            by_window,
            slots,
            min(self.max_seq_tokens, capacity) if full else self.max_seq_tokens,
            self._kv_bytes(blocks),
            (slots or 0) * max(self.state_bytes_per_slot, default=0),
            all(blocks) and bool(blocks or slots),
            quota_bytes,
        )

    def _snapshots(self, tokens: int) -> int:
        interval = self.settings.snapshot_tokens
        return tokens // interval if interval and self.settings.block_reuse and self.has_state else 0

    def _stage_blocks(self, quota: int, stage: int) -> list[int | None]:
        """Blocks of each group on one stage: every window has an equal share; None where it has no layer."""
        state = self.state_bytes_per_slot[stage]
        left = max(0, quota - self.max_batch * self.settings.pipeline * state)
        interval = self.settings.snapshot_tokens
        extra = state // interval if interval and self.settings.block_reuse else 0
        share = Fraction(left, max(1, len(self.groups)))
        result: list[int | None] = []
        for group in self.groups:
            size = group.bytes_per_token[stage] + extra
            if not group.bytes_per_token[stage]:
                result.append(None)
                continue
            tokens = share / size
            if self.settings.max_tokens is not None and len(self.groups) == 1:
                tokens = min(tokens, Fraction(self.settings.max_tokens))
            result.append(int(tokens // self.tokens_per_block))
        return result

    def _kv_bytes(self, blocks: list[int]) -> int:
        stages = range(len(self.state_bytes_per_slot))
        return max(
            (
                int(
                    sum(
                        b * self.tokens_per_block * g.bytes_per_token[stage]
                        for g, b in zip(self.groups, blocks, strict=True)
                    )
                )
                for stage in stages
            ),
            default=0,
        )
