"""The pool: from a byte budget to blocks, tokens and concurrency, as each version counts and prints them.

Source: ``v1/core/kv_cache_utils.py`` and ``kv_cache_planning.py`` of vLLM 0.33.0, older
ones by ``versions``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from kvgauge.engines.vllm.cache_spec import SpecKind
from kvgauge.engines.vllm.grouping import SpecGroup
from kvgauge.engines.vllm.requests import RequestRules, blocks_of_request, counted_blocks
from kvgauge.engines.vllm.schedule import Schedule
from kvgauge.engines.vllm.versions import VllmRules
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class VllmGroup:
    """One group as the answer shows it.

    Args:
        kind: the layers' kind, of an index and what it serves the latter.
        page_bytes: a page of one layer, or of the whole group where its layers' pages differ.
        bytes_per_block: what one block takes in the layers of this group.
        blocks_per_request: of the longest request.
    """

    kind: str
    num_layers: int
    block_size_tokens: int
    page_bytes: int
    bytes_per_block: int
    blocks_per_request: int

    def to_dict(self) -> dict[str, object]:
        """Return the ``groups`` entry of the contract."""
        return {
            "kind": self.kind,
            "num_layers": self.num_layers,
            "block_size_tokens": self.block_size_tokens,
            "page_bytes": self.page_bytes,
            "blocks_per_request": self.blocks_per_request,
        }


@dataclass(frozen=True)
class VllmPool:
    """What a byte budget gives on the rank that has least room.

    Args:
        num_blocks: blocks of the pool, the reserved one included.
        max_model_tokens: longest request, lowered to what fits where that was left to the engine.
        capacity_tokens, max_concurrency: as this version prints them.
        admits: the engine starts: one longest request fits beside the block held back.
        sequences_exceed_blocks: a hybrid with full CUDA graphs, which does not start with more sequences than
            blocks.
        needed_bytes: of one longest request on the fullest rank.
    """

    num_blocks: int
    max_model_tokens: int
    capacity_tokens: int
    max_concurrency: float
    admits: bool
    sequences_exceed_blocks: bool
    needed_bytes: int
    available_bytes: int


@dataclass(frozen=True)
class VllmPlan:
    """What vLLM sets aside for a model, before it knows how many bytes there are.

    Args:
        block_size_tokens: the global block after alignment.
        stages: for each pipeline stage and group the bytes of its pages in one block.
        block_bytes, stage_blocks: bytes of one block of the whole model and of each stage, slots that a group
            leaves empty included.
        fits_length: the longest request is the engine's to choose.
        assumed: codes of what no rule or flag says: ``block_size``, ``drafter_layers``,
            ``kv_connector`` (some turn the hybrid manager off).
    """

    rules: VllmRules
    schedule: Schedule
    requests: RequestRules
    kv_dtype: str
    block_size_tokens: int
    spec_groups: tuple[SpecGroup, ...]
    stages: tuple[tuple[int, ...], ...]
    block_bytes: int
    stage_blocks: tuple[int, ...]
    backends: tuple[str, ...] = ()
    num_blocks_override: int | None = None
    fits_length: bool = False
    enforce_eager: bool = False
    assumed: tuple[str, ...] = ()
    tensor_ranks: int = 1

    @cached_property
    def groups(self) -> tuple[VllmGroup, ...]:
        """The groups, over all pipeline stages."""
        longest = self.schedule.max_model_tokens
        return tuple(
            VllmGroup(
                _kind_of(group),
                len(group.specs),
                group.sample.block_tokens,
                group.page_bytes,
                group.bytes_per_block,
                blocks_of_request(group.sample, longest, self.requests),
            )
            for group in self.spec_groups
        )

    @cached_property
    def pool_bytes_per_block(self) -> int:
        """Bytes of one block of the whole model: every group draws from the same blocks."""
        return self.block_bytes

    @cached_property
    def stage_bytes_per_block(self) -> int:
        """Bytes of one block on the pipeline stage that needs most."""
        return max(self.stage_blocks, default=0)

    @property
    def blocks_per_request(self) -> int:
        """Blocks that the longest request reserves."""
        return sum(group.blocks_per_request for group in self.groups)

    @property
    def bytes_per_request(self) -> int:
        """Bytes of the pool that the longest request reserves, of the whole model."""
        return self.pool_bytes_per_block * self.blocks_per_request

    @property
    def reserved_blocks(self) -> int:
        """Blocks that no request gets: the one that empty slots point at, from the V1 engine on."""
        return 0 if self.rules.engine_v0 else 1

    def blocks_for(self, tokens: int) -> int:
        """Return the blocks that a request of ``tokens`` reserves."""
        return sum(blocks_of_request(group.sample, tokens, self.requests) for group in self.spec_groups)

    def blocks_of_load(self, tokens: int, sequences: int, prefix_tokens: int = 0) -> int:
        """Return the blocks of sequences at once; whole blocks of a common prefix are held once."""
        one = self.blocks_for(tokens)
        if not prefix_tokens:
            return sequences * one
        ranks = self.requests.context_ranks
        shared = sum(
            -(-times * counted.shared_rows(tokens, prefix_tokens) // ranks)
            for group in self.spec_groups
            for counted, times in counted_blocks(group.sample, self.requests)
        )
        return sequences * one - (sequences - 1) * shared

    def pool(self, available_bytes: int) -> VllmPool:
        """Return what ``available_bytes`` on every rank give."""
        block_bytes = self.stage_bytes_per_block
        blocks = self.num_blocks_override
        if blocks is None:
            blocks = max(0, available_bytes) // block_bytes if block_bytes else 0
        room = max(0, available_bytes) if self.num_blocks_override is None else blocks * block_bytes
        longest = self.schedule.max_model_tokens
        if self.fits_length:
            longest = self.longest_that_fits(room)
        per_request = self.blocks_for(longest)
        admits = longest > 0 and self._admits(per_request, room, blocks)
        tokens, concurrency = self._printed(blocks, per_request, longest)
        return VllmPool(
            blocks,
            longest,
            tokens,
            concurrency,
            admits,
            self._exceeded(blocks),
            block_bytes * per_request,
            available_bytes,
        )

    def _exceeded(self, blocks: int) -> bool:
        has_states = any(group.sample.kind is SpecKind.RECURRENT for group in self.spec_groups)
        is_checked = self.rules.checks_states and has_states and not self.enforce_eager
        return is_checked and self.schedule.sequences > blocks

    def _admits(self, per_request: int, room: int, blocks: int) -> bool:
        if self.rules.engine_v0:
            return self.schedule.max_model_tokens <= blocks * self.block_size_tokens
        block_bytes = self.stage_bytes_per_block
        return block_bytes * (per_request + self.rules.held_back_blocks) <= room

    def longest_that_fits(self, available_bytes: int) -> int:
        """Return the longest request that starts, at most the model's own limit; 0 if none does."""
        low, high = 0, self.schedule.max_model_tokens
        while low < high:
            middle = (low + high + 1) // 2
            blocks = self.blocks_for(middle) + self.rules.held_back_blocks
            if blocks * self.stage_bytes_per_block <= available_bytes:
                low = middle
            else:
                high = middle - 1
        return low

    def _printed(self, blocks: int, per_request: int, longest: int) -> tuple[int, float]:
        counted = self._counted(longest) if self._is_counted_in_bytes else per_request
        concurrency = blocks / counted if counted else 0.0
        if self.rules.tokens == "concurrency":
            return int(concurrency * longest), concurrency
        tokens = blocks * self.block_size_tokens
        if self.rules.tokens == "by_group" and self.spec_groups:
            smallest = min(group.sample.block_tokens for group in self.spec_groups)
            tokens = blocks // len(self.spec_groups) * smallest
        if self.rules.dcp_tokens:
            tokens *= self.requests.context_ranks
        if not self.rules.concurrency_by_blocks:
            concurrency = tokens / longest if longest else 0.0
        return tokens, concurrency

    @property
    def _is_counted_in_bytes(self) -> bool:
        """Whether the printed concurrency divides bytes of groups of unequal pages by those of the first."""
        return len(self.spec_groups) > 1 and any(group.is_sum for group in self.spec_groups) and (
            self.rules.unequal_groups in ("by_page", "by_tuple")
        )  # fmt: skip

    def _counted(self, longest: int) -> int:
        """Return the blocks of a request as such versions count them: all bytes over the first group's."""
        whole = sum(
            blocks_of_request(group.sample, longest, self.requests) * group.bytes_per_block
            for group in self.spec_groups
        )
        return -(-whole // self.spec_groups[0].bytes_per_block)

    def with_longest(self, tokens: int) -> VllmPlan:
        """Return the plan for another longest request, the batch and the blocks as they are."""
        return replace(self, schedule=replace(self.schedule, max_model_tokens=tokens), fits_length=False)


def _kind_of(group: SpecGroup) -> str:
    kinds = [spec.kind for spec in group.specs]
    return next((kind for kind in kinds if kind is not SpecKind.INDEX), kinds[0]).value
