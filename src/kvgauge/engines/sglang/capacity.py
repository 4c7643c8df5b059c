"""What SGLang makes of a pool under one load: tokens, window slots, state slots, and if the load fits."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import RequestedDtypes
from kvgauge.engines.least_pool import MOST_BYTES, least_bytes
from kvgauge.engines.pools import Pool, PoolGroup
from kvgauge.engines.sglang.demand import group_demands, pages
from kvgauge.engines.sglang.flags import parse_flags
from kvgauge.engines.sglang.launch import launch_command
from kvgauge.engines.sglang.notes import assumed_notes
from kvgauge.engines.sglang.planning import plan
from kvgauge.engines.sglang.pool import SglangPlan
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.states import state_dtype
from kvgauge.layers import Axis, LayerKind
from kvgauge.units import MAX_SEQUENCES
from kvgauge.values import dataclass
from kvgauge.workload import Workload


@dataclass(frozen=True)
class SglangCapacity:
    """A plan of SGLang under one load.

    Args:
        told_requests: running requests that the load needs to be told, where the default is fewer.
    """

    plan: SglangPlan
    settings: SglangSettings
    architecture: ModelArchitecture
    workload: Workload
    args: str
    told_requests: int | None = None

    @classmethod
    def of(
        cls, settings: SglangSettings, architecture: ModelArchitecture, workload: Workload, args: str
    ) -> SglangCapacity:
        """Return the plan of settings; it is told of the load's sequences where they exceed the default."""
        found = plan(architecture, settings)
        groups = settings.data
        sequences = -(-workload.sequences // groups)
        told = settings.max_running_requests
        if told is not None or sequences <= found.pool(MOST_BYTES).max_running_requests:
            return cls(found, settings, architecture, workload, args)
        requests = sequences * settings.attention_groups
        found = plan(architecture, replace(settings, max_running_requests=requests))
        return cls(found, settings, architecture, workload, args, requests)

    # -- the load ---------------------------------------------------------------------------------

    @property
    def _sequences(self) -> int:
        """Sequences of one attention group or replica."""
        return -(-self.workload.sequences // self.settings.data)

    def _slots(self, to_tokens: int | None) -> int:
        """Return the slots of one pool that the load takes, a shared prefix once."""
        load, page = self.workload, self.plan.page_size_tokens
        counted = pages(page, to_tokens)
        rows, images = counted.rows(load.context_tokens), pages(page).rows(load.image_tokens)
        shared = counted.shared_rows(load.context_tokens, load.shared_prefix_tokens)
        has_cross = any(layer.kind is LayerKind.CROSS for layer in self.architecture.layers)
        own = rows + (images if has_cross else 0)
        return page * (self._sequences * own - (self._sequences - 1) * shared)

    @property
    def _window_slots(self) -> int:
        """Slots of the window pool: of every sequence, and of the pieces of a prompt that are under way."""
        plan = self.plan
        live = self._slots(plan.live_window_tokens)
        chunks = (2 if self.settings.overlap else 1) * max(0, plan.memory.chunk_tokens)
        beyond = max(0, self.workload.context_tokens - plan.live_window_tokens)
        return live + min(chunks, beyond)

    @cached_property
    def needed_bytes(self) -> int:
        """The least pool of a rank that holds the load and starts, as the engine deals it out.

        Limits that flags set are no matter of bytes and are left out here.
        """
        free = replace(self.plan, settings=replace(self.plan.settings, max_total_tokens=None))
        tokens, windows = max(1, self._slots(None)), self._window_slots
        states = 0 if self._has_fixed_slots else self._sequences * free.state.slots_per_request

        def holds(size: int) -> bool:
            found = free.pool(size)
            return (
                found.starts
                and found.capacity_tokens >= tokens
                and (found.swa_tokens is None or free.is_request_capped or found.swa_tokens >= windows)
                and (found.state_slots is None or found.state_slots >= states)
            )

        return least_bytes(int(tokens * free.cell_bytes), holds)

    @property
    def _has_fixed_slots(self) -> bool:
        settings = self.plan.settings
        limited = settings.max_running_requests is not None and not settings.radix_cache
        return settings.max_state_slots is not None or limited or self.plan.rules.state_slots == "given"

    # -- what the engine says of itself -----------------------------------------------------------

    @property
    def dtypes(self) -> RequestedDtypes:
        """The formats of the cache, canonical."""
        form = "fp8_ds_mla" if self.plan.compressed else self.plan.kv_dtype
        state = state_dtype(self.architecture, self.settings) if self.plan.state.slot_bytes else None
        return RequestedDtypes(form, form, state, None)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What nothing says and had to be assumed."""
        settings = self.settings
        return assumed_notes(
            self.plan.assumed,
            priced=settings.speculation.shares_slots,
            groups=settings.attention_groups > 1,
            ranks=settings.attention_ranks,
        )

    @property
    def details(self) -> dict[str, object]:
        """Cells, pages, slots, and the settings that they follow from."""
        plan = self.plan
        state = plan.state if plan.state.slot_bytes else None
        return {
            "cell_size": plan.cell_bytes,
            "page_size_tokens": plan.page_size_tokens,
            "kv_cache_dtype": plan.kv_dtype,
            "attention_backends": [plan.attention.backend],
            "max_model_len": plan.context_tokens,
            "mem_fraction_static": plan.mem_fraction_static,
            "chunked_prefill_size": plan.memory.chunk_tokens,
            "cuda_graph_max_bs": plan.memory.graph_max_batch,
            "swa_full_tokens_ratio": plan.window_ratio if plan.window_tokens is not None else None,
            "window_tokens_per_request": plan.live_window_tokens if plan.window_tokens is not None else None,
            "state_bytes_per_slot": None if state is None else state.slot_bytes,
            "state_slots_per_request": None if state is None else state.slots_per_request,
            "attention_groups": self.settings.attention_groups,
            "gpu": self.settings.gpu.name,
        }

    @property
    def engine_max_sequences(self) -> int:
        """Sequences of all replicas that a flag can state."""
        groups = self.settings.attention_groups
        return min(MAX_SEQUENCES, MAX_SEQUENCES // groups * self.settings.data)

    @property
    def max_sequences(self) -> int | None:
        """Sequences of every replica, where a flag says them, or says less memory than they take."""
        settings, groups = self.settings, self.settings.attention_groups
        limits: list[int] = []
        if settings.max_running_requests is not None:
            limits.append(max(1, settings.max_running_requests // groups))
        if settings.max_state_slots is not None and self.plan.state.slot_bytes:
            limits.append(settings.max_state_slots // groups // self.plan.state.slots_per_request)
        if settings.max_total_tokens is not None:
            one = replace(self, workload=replace(self.workload, sequences=1))._slots(None)
            limits.append(settings.max_total_tokens // max(1, one))
        return min(limits) * settings.data if limits else None

    @property
    def max_context_tokens(self) -> int | None:
        """The longest request, where a flag says it."""
        settings = self.settings
        told = parse_flags(self.args).context_tokens
        if settings.max_total_tokens is None:
            return told
        shared = self.workload.shared_prefix_tokens * (self._sequences - 1)
        each = (settings.max_total_tokens + shared) // self._sequences
        page = self.plan.page_size_tokens
        most = each // page * page
        return most if told is None else min(most, told)

    def with_sequences(self, count: int) -> SglangCapacity:
        """Return the same under another number of sequences."""
        load = replace(self.workload, sequences=count)
        return SglangCapacity.of(self.settings, self.architecture, load, self.args)

    # -- a pool -----------------------------------------------------------------------------------

    def pool(self, available_bytes: int) -> Pool:
        """Return tokens, window slots, state slots and running requests of a budget on every rank."""
        plan = self.plan
        found = plan.pool(available_bytes)
        return Pool(
            available_bytes,
            bytes_per_request=self._request_bytes,
            capacity_tokens=found.capacity_tokens,
            swa_tokens=found.swa_tokens,
            state_slots=found.state_slots,
            max_running_requests=found.max_running_requests,
            page_size_tokens=plan.page_size_tokens,
            mem_fraction_static=plan.mem_fraction_static,
            groups=self._groups,
        )

    @property
    def _request_bytes(self) -> int:
        """Bytes of the longest request on the fullest stage, its slots of state included."""
        plan, page = self.plan, self.plan.page_size_tokens
        tokens = page * pages(page).rows(plan.context_tokens)
        windows = page * pages(page, plan.live_window_tokens).rows(plan.context_tokens)
        states = plan.state.slots_per_request + plan.state.draft_tokens
        return self._token_bytes(tokens, windows) + states * plan.state.slot_bytes

    def _token_bytes(self, tokens: int, windows: int) -> int:
        return max(self._stage_bytes(tokens, windows), default=0)

    def _stage_bytes(self, tokens: int, windows: int) -> tuple[int, ...]:
        """Return the bytes of tokens and window slots, by pipeline stage; rings are one request's."""
        plan = self.plan
        if plan.compressed:
            return tuple(
                round(tokens * c.token_bytes + windows * c.window_bytes) + c.ring_rows * c.ring_bytes
                for c in plan.compressed
            )
        return tuple(
            tokens * (stage.full_bytes + stage.unpriced_bytes) + windows * stage.window_bytes
            for stage in plan.stages
        )

    @property
    def _groups(self) -> tuple[PoolGroup, ...]:
        plan, page = self.plan, self.plan.page_size_tokens
        found: list[PoolGroup] = []
        for demand in group_demands(plan, self.architecture, mtp=False).groups:
            group = demand.group
            if not group.streams or not demand.streams:
                continue
            kind, layers = group.kind.value, group.num_layers
            rows = [s for s in demand.streams if s.counted.axis is not Axis.SEQUENCE]
            if not rows:
                slots = plan.state.slots_per_request
                size = sum(replace(s, factor=1).rank_row_bytes(self._ranks) for s in demand.streams)
                found.append(PoolGroup(kind, layers, None, size, slots))
                continue
            size = sum(s.rank_row_bytes(self._ranks) for s in rows)
            longest = rows[0].counted.rows(plan.context_tokens)
            found.append(PoolGroup(kind, layers, page, size, longest))
        return tuple(found)

    @property
    def _ranks(self) -> int:
        return self.settings.attention_ranks

    def budget(self, available_bytes: int) -> int:
        """Return the bytes of the pool: no flag gives others."""
        return available_bytes

    def allocated_bytes(self, available_bytes: int) -> tuple[int, ...]:
        """Return the bytes of tokens and states on a rank, by pipeline stage."""
        plan = self.plan
        found = plan.pool(available_bytes)
        sizes = self._stage_bytes(found.capacity_tokens, found.swa_tokens or 0)
        if plan.compressed:
            requests = plan.compressed_requests()
            rings = [
                cell.fixed_bytes(requests) - cell.ring_rows * cell.ring_bytes for cell in plan.compressed
            ]
            sizes = tuple(size + ring for size, ring in zip(sizes, rings, strict=True))
        if found.state_slots is None:
            return sizes
        held = min(found.max_running_requests, found.state_slots // plan.state.slots_per_request) + 1
        slots = found.state_slots + 1 + held * plan.state.draft_tokens
        return tuple(size + slots * state for size, state in zip(sizes, plan.state.stage_bytes, strict=True))

    def admission(self, available_bytes: int) -> tuple[Note, ...]:
        """Return nothing: a pool that does not start does not hold the load either."""
        del available_bytes
        return ()

    def launch_command(self, model: str, available_bytes: int) -> str:
        """Return the line that starts SGLang for this load."""
        del available_bytes
        return launch_command(
            model, replace(self.plan, settings=self.settings), self.args, self.told_requests
        )
