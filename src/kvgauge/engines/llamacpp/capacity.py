"""What bytes for caches and states hold: llama.cpp asks for what it is told of, so plans are inverted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import RequestedDtypes
from kvgauge.engines.llamacpp.cells import context_padding
from kvgauge.engines.llamacpp.launch import launch_command
from kvgauge.engines.llamacpp.load import LlamaLoad, cache_types, slot_tokens
from kvgauge.engines.llamacpp.placement import HOST
from kvgauge.engines.llamacpp.plan import LlamaAllocation, LlamaPlan, kept_allocations, plan
from kvgauge.engines.llamacpp.settings import MAX_SEQUENCES, LlamaSettings
from kvgauge.engines.pools import Pool
from kvgauge.engines.setup import Setup
from kvgauge.units import MAX_TOKENS
from kvgauge.values import dataclass
from kvgauge.workload import Workload

#: More than any memory: what does not start at all needs this.
_NEVER = 1 << 80


@dataclass(frozen=True)
class LlamaCapacity:
    """A launch of llama.cpp under one load.

    Args:
        told: what flags say of options.
        load_of: the settings of another load under the same flags.
        launch: the settings where flags say what the server allocates, whatever the load.
    """

    architecture: ModelArchitecture
    workload: Workload
    setup: Setup
    args: str
    told: Mapping[str, object]
    load_of: Callable[[Workload, Setup], LlamaLoad]
    launch: LlamaLoad | None = None

    @cached_property
    def load(self) -> LlamaLoad:
        """The settings of this load."""
        return self.launch or self.load_of(self.workload, self.setup)

    @cached_property
    def plan(self) -> LlamaPlan:
        """What they allocate."""
        return plan(self.architecture, self.load.settings)

    @cached_property
    def needed_bytes(self) -> int:
        """Caches and states of the fullest place."""
        if self.workload.sequences > MAX_SEQUENCES:
            return _NEVER
        return max(_by_place(self.plan.allocations).values(), default=0)

    @property
    def dtypes(self) -> RequestedDtypes:
        """The formats of the cache, canonical."""
        return cache_types(self.load.settings, self.architecture)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to say about the launch."""
        return self.plan.notes

    @property
    def details(self) -> dict[str, object]:
        """The engine's own figures."""
        found = self.plan
        own = slot_tokens(self.load.settings, found.cells)
        return {**found.details(), "n_ctx_seq": own, "slots": found.sequences}

    @property
    def engine_max_sequences(self) -> int:
        """Sequences that one server takes at most."""
        return MAX_SEQUENCES

    @property
    def max_sequences(self) -> int | None:
        """Sequences that the flags allow: slots, or contexts that the cells of ``-c`` hold."""
        slots = self.told.get("sequences")
        if "max_model_len" not in self.told:
            return slots if isinstance(slots, int) else None
        most = self.load.settings.sequences
        if not self.load.is_reserved:  # each is as long as the flags make it
            return most
        return min(most, self.plan.n_ctx // max(1, self.workload.context_tokens))

    @property
    def max_context_tokens(self) -> int | None:
        """Tokens of one sequence, where ``-c`` says how many there are."""
        told = self.setup.reserve_tokens
        return told or None

    def with_sequences(self, count: int) -> LlamaCapacity:
        """Return the same for another number of sequences; slots and cells that flags state stay."""
        changed = replace(self.workload, sequences=count)
        if "max_model_len" in self.told or "sequences" in self.told:
            return replace(self, workload=changed, launch=self.load)
        return replace(self, workload=changed, setup=replace(self.setup, default_sequences=False))

    def pool(self, available_bytes: int) -> Pool:
        """Return the cells that a budget holds for these sequences, and what one of them takes."""
        cells = self._most_cells(available_bytes)
        found = self.plan if cells is None else cells
        one = plan(self.architecture, replace(self.load.one, num_gpus=min(1, self.load.one.num_gpus)))
        states = any(part.name == "recurrent.s" for part in self.plan.allocations)
        return Pool(
            available_bytes,
            bytes_per_request=one.total_bytes("cache", "state"),
            capacity_tokens=found.n_ctx if cells is not None else 0,
            swa_tokens=found.swa_cells * found.streams if found.swa_cells is not None else None,
            state_slots=self.load.settings.sequences if states else None,
            max_running_requests=self.load.settings.sequences,
        )

    def _most_cells(self, available_bytes: int) -> LlamaPlan | None:
        """Return the plan with the longest context that the budget holds; None where nothing fits."""
        settings = self.load.settings
        streams = 1 if settings.unified else settings.sequences
        step = context_padding(settings) * streams
        limit = self.architecture.context_limit_tokens
        top = max(1, -(-(limit * streams if limit else MAX_TOKENS) // step))
        low, high = 0, top + 1
        while low < high - 1:
            middle = (low + high) // 2
            fits = _bytes_of(self.architecture, settings, middle * step) <= available_bytes
            low, high = (middle, high) if fits else (low, middle)
        return plan(self.architecture, replace(settings, context_tokens=low * step)) if low else None

    def budget(self, available_bytes: int) -> int:
        """Return the budget: nothing else sets it."""
        return available_bytes

    def allocated_bytes(self, available_bytes: int) -> tuple[int, ...]:
        """Return caches and states of each device; what llama.cpp takes does not follow the budget."""
        del available_bytes
        sizes = _by_place(self.plan.allocations)
        devices = max(1, self.setup.parallelism.pipeline)
        host = sizes.get(HOST, 0)
        return tuple(sizes.get(f"gpu:{number}", 0) + (0 if number else host) for number in range(devices))

    def admission(self, available_bytes: int) -> tuple[Note, ...]:
        """Return nothing: what fits starts."""
        del available_bytes
        return ()

    def launch_command(self, model: str, available_bytes: int) -> str:
        """Return the line that starts llama-server for this load."""
        del available_bytes
        return launch_command(model, self.load.settings, self.args, self.told)


def _by_place(found: Iterable[LlamaAllocation]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part in found:
        if part.kind in ("cache", "state"):
            sizes[part.place] = sizes.get(part.place, 0) + part.bytes
    return sizes


def _bytes_of(architecture: ModelArchitecture, settings: LlamaSettings, tokens: int) -> int:
    found = kept_allocations(architecture, replace(settings, context_tokens=tokens))
    return max(_by_place(found).values(), default=0)
