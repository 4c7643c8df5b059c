"""What TensorRT-LLM makes of a pool under one load: blocks, tokens, states, and whether the load fits."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import RequestedDtypes
from kvgauge.engines.least_pool import least_bytes
from kvgauge.engines.pools import Pool, PoolGroup
from kvgauge.engines.tensorrt_llm.demand import blocks, group_demands
from kvgauge.engines.tensorrt_llm.flags import parse_flags
from kvgauge.engines.tensorrt_llm.kv_dtypes import model_dtype
from kvgauge.engines.tensorrt_llm.launch import launch_command
from kvgauge.engines.tensorrt_llm.notes import assumed_notes
from kvgauge.engines.tensorrt_llm.planning import plan
from kvgauge.engines.tensorrt_llm.pool import TrtllmPlan
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
from kvgauge.layers import STATE_KINDS, Role
from kvgauge.values import dataclass
from kvgauge.workload import Workload


@dataclass(frozen=True)
class TrtllmCapacity:
    """A plan of TensorRT-LLM under one load.

    Args:
        replicas: groups that hold caches of their own.
        told_batch: sequences that the load needs to be told, where the default is fewer.
    """

    plan: TrtllmPlan
    settings: TrtllmSettings
    architecture: ModelArchitecture
    workload: Workload
    args: str
    replicas: int = 1
    told_batch: int | None = None

    @classmethod
    def of(
        cls, settings: TrtllmSettings, architecture: ModelArchitecture, workload: Workload, args: str,
        replicas: int,
    ) -> TrtllmCapacity:  # fmt: skip
        """Return the plan of settings; it is told of the load's sequences where they exceed the default."""
        found = plan(architecture, settings)
        sequences = -(-workload.sequences // replicas)
        if settings.max_batch is not None or sequences <= found.max_batch:
            return cls(found, settings, architecture, workload, args, replicas)
        found = plan(architecture, replace(settings, max_batch=sequences))
        return cls(found, settings, architecture, workload, args, replicas, sequences)

    # -- the load ---------------------------------------------------------------------------------

    @property
    def _sequences(self) -> int:
        return -(-self.workload.sequences // self.replicas)

    def _blocks(self, window_tokens: int) -> int:
        """Return the blocks that the load takes in layers of a window, a shared prefix once."""
        load = self.workload
        counted = blocks(self.plan, window_tokens)
        shared = counted.shared_rows(load.context_tokens, load.shared_prefix_tokens)
        return self._sequences * counted.rows(load.context_tokens) - (self._sequences - 1) * shared

    @cached_property
    def needed_bytes(self) -> int:
        """The least pool of a rank that holds the load and starts, as the engine deals it out.

        Limits that flags set are no matter of bytes and are left out here.
        """
        free = replace(self.plan, settings=replace(self.plan.settings, max_tokens=None))
        wanted = [max(1, self._blocks(group.window_tokens)) for group in free.groups]
        start = int(sum(wanted) * free.tokens_per_block * free.bytes_per_token)

        def holds(size: int) -> bool:
            found = free.pool(size)
            held = [count for _, count in found.blocks_by_window]
            return (
                found.starts and all(a >= b for a, b in zip(held, wanted, strict=True)) and self._states(size)
            )

        return least_bytes(start, holds)

    def _states(self, size: int) -> bool:
        """Whether the states of the batch have room."""
        plan = self.plan
        return size >= plan.max_batch * plan.settings.pipeline * max(plan.state_bytes_per_slot, default=0)

    # -- what the engine says of itself -----------------------------------------------------------

    @property
    def dtypes(self) -> RequestedDtypes:
        """The formats of the cache, canonical."""
        own = model_dtype(self.architecture, self.settings)
        streams = [
            s for layer in self.architecture.layers if layer.kind in STATE_KINDS for s in layer.streams
        ]
        declared = next((s.declared_dtype for s in streams if s.role is Role.RECURRENT), None)
        state = self.settings.state_dtype or declared or own
        return RequestedDtypes(self.plan.kv_dtype, self.plan.kv_dtype, state if streams else None, None)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What no log confirms, and what is set aside ahead."""
        return assumed_notes(self.plan)

    @property
    def details(self) -> dict[str, object]:
        """Blocks, windows, states, and the settings that they follow from."""
        plan = self.plan
        return {
            "tokens_per_block": plan.tokens_per_block,
            "bytes_per_token": int(plan.bytes_per_token),
            "free_gpu_memory_fraction": float(plan.free_fraction),
            "kv_cache_dtype": plan.kv_dtype,
            "max_model_len": plan.max_seq_tokens,
            "max_batch_size": plan.max_batch,
            "max_attention_windows": [group.window_tokens for group in plan.groups],
            "state_bytes_per_slot": max(plan.state_bytes_per_slot, default=0) or None,
        }

    @property
    def max_sequences(self) -> int | None:
        """Sequences of every replica, where a flag says them, or says less memory than they take."""
        settings = self.settings
        limits = [] if settings.max_batch is None else [settings.max_batch]
        if settings.max_tokens is not None and len(self.plan.groups) == 1:
            one = replace(self, workload=replace(self.workload, sequences=1))
            each = max(1, one._blocks(self.plan.max_seq_tokens))
            limits.append(settings.max_tokens // self.plan.tokens_per_block // each)
        return min(limits) * self.replicas if limits else None

    @property
    def max_context_tokens(self) -> int | None:
        """The longest request, where a flag says it."""
        told, block = parse_flags(self.args).max_seq_tokens, self.plan.tokens_per_block
        if self.settings.max_tokens is None or len(self.plan.groups) != 1:
            return told
        shared = self.workload.shared_prefix_tokens // block * (self._sequences - 1)
        each = (self.settings.max_tokens // block + shared) // self._sequences * block
        return each if told is None else min(each, told)

    def with_sequences(self, count: int) -> TrtllmCapacity:
        """Return the same under another number of sequences."""
        load = replace(self.workload, sequences=count)
        return TrtllmCapacity.of(self.settings, self.architecture, load, self.args, self.replicas)

    @property
    def lines(self) -> int:
        """Servers that must be started: replicas that are no attention groups know nothing of each other."""
        return 1 if self.settings.attention_dp else self.replicas

    # -- a pool -----------------------------------------------------------------------------------

    def pool(self, available_bytes: int) -> Pool:
        """Return blocks and tokens of a quota on every rank; of several windows the smallest one's too."""
        plan, block = self.plan, self.plan.tokens_per_block
        found = plan.pool(self.budget(available_bytes))
        longest = blocks(plan, None).rows(plan.max_seq_tokens)
        whole = plan.groups[-1].bytes_per_token if plan.groups else ()
        smallest = found.blocks_by_window[0][1] * block if len(found.blocks_by_window) > 1 else None
        return Pool(
            available_bytes,
            found.num_blocks,
            block,
            int(block * sum(whole)) or None,
            longest,
            self._request_bytes,
            found.capacity_tokens,
            swa_tokens=smallest,
            state_slots=found.state_slots,
            max_running_requests=plan.max_batch,
            groups=self._groups,
        )

    @property
    def _request_bytes(self) -> int:
        """Bytes of the longest request on the fullest stage, its state included."""
        plan, block = self.plan, self.plan.tokens_per_block
        return max(
            (
                state
                + sum(
                    int(block * group.bytes_per_token[stage])
                    * blocks(plan, group.window_tokens).rows(plan.max_seq_tokens)
                    for group in plan.groups
                )
                for stage, state in enumerate(plan.state_bytes_per_slot)
            ),
            default=0,
        )

    @property
    def _groups(self) -> tuple[PoolGroup, ...]:
        plan, block, ranks = self.plan, self.plan.tokens_per_block, self.settings.attention_ranks
        found: list[PoolGroup] = []
        for demand in group_demands(plan, self.architecture, mtp=False).groups:
            group, streams = demand.group, demand.streams
            if not streams:
                continue
            size = sum(stream.rank_row_bytes(ranks) for stream in streams)
            rows = streams[0].counted.rows(plan.max_seq_tokens)
            tokens = None if group.kind in STATE_KINDS else block
            found.append(PoolGroup(group.kind.value, group.num_layers, tokens, size, rows))
        return tuple(found)

    def budget(self, available_bytes: int) -> int:
        """Return the bytes of the pool: no more than a flag allows."""
        limit = self.settings.max_gpu_bytes
        return min(available_bytes, limit) if limit else available_bytes

    def allocated_bytes(self, available_bytes: int) -> tuple[int, ...]:
        """Return the bytes of blocks and states on a rank, by pipeline stage; 0 where it does not start."""
        plan = self.plan
        found = plan.pool(self.budget(available_bytes))
        if not found.starts:
            return (0,) * len(plan.state_bytes_per_slot)
        held = [count * plan.tokens_per_block for _, count in found.blocks_by_window]
        return tuple(
            int(sum(n * g.bytes_per_token[stage] for g, n in zip(plan.groups, held, strict=True)))
            + (found.state_slots or 0) * state
            for stage, state in enumerate(plan.state_bytes_per_slot)
        )

    def admission(self, available_bytes: int) -> tuple[Note, ...]:
        """Return nothing: a pool that does not start does not hold the load either."""
        del available_bytes
        return ()

    def launch_command(self, model: str, available_bytes: int) -> str:
        """Return the line that starts TensorRT-LLM for this load."""
        del available_bytes
        return launch_command(model, replace(self.plan, settings=self.settings), self.args, self.told_batch)
