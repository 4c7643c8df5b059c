"""The pool: from the memory that is left to tokens, state slots and running requests.

Source: ``model_executor/pool_configurator.py`` and ``mem_cache/kv_cache_configurator.py`` of SGLang 0.5.23,
older rules by ``versions``. Where the engine counts in floats, so does this: the last token depends on it.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from kvgauge.engines.sglang.backends import Attention
from kvgauge.engines.sglang.cells import LayerCell
from kvgauge.engines.sglang.compressed import CompressedCell
from kvgauge.engines.sglang.memory import MemoryDefaults, static_bytes
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.engines.sglang.states import StateRules, state_pool
from kvgauge.engines.sglang.versions import SglangRules
from kvgauge.units import GIB
from kvgauge.values import dataclass

#: Requests that are estimated for contexts of the longest length, and their bounds.
_REQUESTS_PER_CONTEXT, _FEWEST, _MOST = 512, 2048, 4096


class Drafts(NamedTuple):
    """One round of drafting; all 0 where there is none."""

    steps: int = 0
    top_k: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class StageCell:
    """Bytes of one token on one pipeline stage.

    Args:
        full_bytes: of all layers of the main pool; of every layer where there is one pool.
        window_bytes: of all layers of the window pool.
        num_layers, num_window_layers: behind them, drafting layers included.
        unpriced_bytes: of a token, allocated though the budget did not count them.
        unprinted_bytes: of a token, which the engine's own figure of the pool leaves out.
    """

    full_bytes: int
    window_bytes: int
    num_layers: int
    num_window_layers: int
    unpriced_bytes: int = 0
    unprinted_bytes: int = 0


@dataclass(frozen=True)
class SglangPool:
    """What the memory left for pools gives on the rank that has least.

    Args:
        capacity_tokens: ``max_total_num_tokens``, as the engine prints it.
        swa_tokens: slots of the window pool; None where there is none.
        state_slots: slots of recurrent state, ``max_mamba_cache_size``; None without state.
        max_running_requests: of one attention group.
        kv_bytes, state_bytes: that tokens and states take, of the fullest stage.
        starts: the engine does.
        limited_by: ``tokens``, ``window``, ``state`` where it does not; else empty.
    """

    capacity_tokens: int
    swa_tokens: int | None
    state_slots: int | None
    max_running_requests: int
    kv_bytes: int
    state_bytes: int
    starts: bool
    limited_by: str
    available_bytes: int


@dataclass(frozen=True)
class SglangPlan:
    """What SGLang sets aside for a model, before it knows how much memory there is.

    Args:
        kv_dtype: format of the cache.
        context_tokens: longest request.
        window_tokens: of layers with a pool of their own, or None.
        window_ratio: tokens of the window pool over those of the main one.
        compressed: what a token costs on each stage where records are compressed; else empty.
        cells: what each layer adds to a token; empty where records are compressed.
        stage_layers: layers of each pipeline stage, those beyond the model's own in the last.
        assumed: codes of what no rule or flag says: ``drafter_layers``, ``latent``, ``nvfp4_workspace``.
    """

    rules: SglangRules
    settings: SglangSettings
    memory: MemoryDefaults
    attention: Attention
    kv_dtype: str
    context_tokens: int
    stages: tuple[StageCell, ...]
    state: StateRules
    window_tokens: int | None
    window_ratio: float
    drafts: Drafts
    compressed: tuple[CompressedCell, ...] = ()
    assumed: tuple[str, ...] = ()
    cells: tuple[LayerCell, ...] = ()
    stage_layers: tuple[range, ...] = ()

    @property
    def page_size_tokens(self) -> int:
        """Tokens of a page."""
        return self.attention.page_tokens

    @property
    def mem_fraction_static(self) -> float:
        """The share of the memory free at start that weights and pools may take."""
        return self.memory.fraction

    @property
    def has_window_pool(self) -> bool:
        """Whether layers with a window have a pool of their own."""
        return any(stage.num_window_layers for stage in self.stages)

    @cached_property
    def cell_bytes(self) -> float:
        """Bytes of one token of the main pool on the stage that needs most, its share of windows included.

        Whole unless a ratio enters.
        """
        if self.compressed:
            return max(cell.full_bytes(self.window_ratio) for cell in self.compressed)
        return max((self._cell(stage) for stage in self.stages), default=0)

    @property
    def printed_bytes_per_token(self) -> float:
        """What a token takes by the engine's own figure of the pool, on the stage that needs most."""
        if self.compressed:
            return self.cell_bytes
        return max(
            (self._cell(stage) + stage.unpriced_bytes - stage.unprinted_bytes for stage in self.stages),
            default=0,
        )

    def _cell(self, stage: StageCell) -> float:
        if not stage.num_window_layers:
            return stage.full_bytes
        if not stage.num_layers:
            return stage.window_bytes
        return stage.full_bytes + self.window_ratio * stage.window_bytes

    def budget_bytes(self, free_bytes: int, before_bytes: int) -> int:
        """Return what is left for tokens and states.

        Args:
            free_bytes: free after the weights are loaded, on the rank that has least.
            before_bytes: free before they were.
        """
        held_back = self.memory.image_reserve_bytes
        return static_bytes(free_bytes, before_bytes, self.mem_fraction_static, held_back)

    def pool(self, available_bytes: int) -> SglangPool:
        """Return what the memory left after weights and slack gives.

        Args:
            available_bytes: for tokens and states together, on every rank.
        """
        requests = self.memory.max_requests
        states = state_pool(max(0, available_bytes) / GIB, self.state, self.settings, self.rules, requests)
        budget = int(states.left_gib * GIB)
        tokens, windows = self._tokens(budget)
        tokens, windows = self._capped(tokens + self._headroom(tokens), windows)
        running = self._requests(tokens, states.slots)
        limited = self._limit(tokens, windows, states.slots, running)
        return SglangPool(
            tokens,
            windows,
            states.slots,
            running,
            int(self.kv_bytes(tokens, windows)),
            self.state_bytes(states.slots),
            not limited,
            limited,
            available_bytes,
        )

    def kv_bytes(self, tokens: int, windows: int | None) -> float:
        """Return the bytes of so many tokens on the fullest stage."""
        if self.compressed:
            fixed = max(cell.fixed_bytes(self.compressed_requests()) for cell in self.compressed)
            return tokens * self.cell_bytes + fixed
        held = windows if windows is not None else tokens
        return max(
            (
                tokens * (stage.full_bytes + stage.unpriced_bytes) + held * stage.window_bytes
                for stage in self.stages
            ),
            default=0,
        )

    def state_bytes(self, slots: int | None) -> int:
        """Return the bytes of so many slots, the padding one included."""
        return 0 if slots is None else (slots + 1) * self.state.slot_bytes

    def _tokens(self, budget: int) -> tuple[int, int | None]:
        """Return (tokens, slots of windows) of the stage that has fewest."""
        if self.compressed:
            return self._compressed_tokens(budget)
        if self.has_window_pool and self.rules.window_pools == "tokens":
            return self._equal_windows(budget)
        if self.is_request_capped:
            return self._request_capped(budget)
        found = [int(budget // cell) if (cell := self._cell(stage)) else None for stage in self.stages]
        known = [tokens for tokens in found if tokens is not None]
        tokens = self._paged(max(0, min(known))) if known else self.context_tokens
        return tokens, self._window_slots(tokens) if self.has_window_pool else None

    def _paged(self, tokens: int) -> int:
        page = self.page_size_tokens
        return tokens // page * page

    def _window_slots(self, tokens: int) -> int:
        if all(not stage.num_layers for stage in self.stages):
            return tokens
        return self._paged(int(tokens * self.window_ratio))

    def _equal_windows(self, budget: int) -> tuple[int, int]:
        """0.5.8 to 0.5.11: tokens of all layers alike, dealt out over the two kinds."""
        stage = self.stages[0]
        layers = stage.num_layers + stage.num_window_layers
        cell = stage.full_bytes + stage.window_bytes
        tokens = self._paged(budget // cell) * layers if cell else 0
        full = int(tokens / (self.window_ratio * stage.num_window_layers + stage.num_layers))
        return self._paged(full), self._paged(int(full * self.window_ratio))

    @property
    def is_request_capped(self) -> bool:
        """Whether the window pool is as large as the told requests need, and no larger."""
        settings = self.settings
        return (
            self.has_window_pool
            and not settings.radix_cache
            and settings.max_running_requests is not None
            and self.window_tokens is not None
            and self.memory.chunk_tokens > 0
            and all(stage.num_layers for stage in self.stages)
        )

    @property
    def live_window_tokens(self) -> int:
        """Tokens of a request that lie in the window pool before those behind the window are given back."""
        page, drafts = self.page_size_tokens, self.drafts.tokens or 1
        ahead = 2 * drafts if self.drafts.tokens else page
        return (self.window_tokens or 0) + 128 * drafts + page + ahead

    def _request_capped(self, budget: int) -> tuple[int, int]:
        """Windows as large as the told requests can hold live, all else for the main pool."""
        settings, page = self.settings, self.page_size_tokens
        requests = max(1, (settings.max_running_requests or 1) // settings.attention_groups)
        chunks = (2 if settings.overlap else 1) * self.memory.chunk_tokens
        cap = self.live_window_tokens * requests + chunks + page
        windows = -(-cap // page) * page
        found = [
            (budget - windows * stage.window_bytes) // stage.full_bytes
            for stage in self.stages
            if stage.full_bytes
        ]
        return self._paged(max(0, min(found, default=0))), windows

    def compressed_requests(self) -> int:
        """Return the running requests that rings of compressed caches are allocated for."""
        return max(1, (self.memory.max_requests or 1) // self.settings.attention_groups)

    def _compressed_tokens(self, budget: int) -> tuple[int, int]:
        requests = self.compressed_requests()
        tokens = min(
            int(max(budget - cell.fixed_bytes(requests), 0) / cell.full_bytes(self.window_ratio))
            for cell in self.compressed
        )
        tokens = self._paged(tokens)
        return tokens, self._paged(int(tokens * self.window_ratio))

    def _capped(self, tokens: int, windows: int | None) -> tuple[int, int | None]:
        limit = self.settings.max_total_tokens
        if limit is None or limit >= tokens:
            return tokens, windows
        tokens = self._paged(limit)
        if windows is None:
            return tokens, None
        if self.is_request_capped and not self.compressed:
            return tokens, min(windows, limit)
        return tokens, self._window_slots(tokens)

    def _headroom(self, tokens: int) -> int:
        """Return the tokens of drafts and of their verification that older versions added to the pool."""
        drafts = self.drafts
        if not self.rules.draft_headroom or not self.settings.speculation.shares_slots:
            return 0
        requests = self._requests(tokens, None)
        added = requests * (drafts.steps * drafts.top_k + drafts.tokens) + 100
        return self._paged(tokens + added) - tokens

    def _requests(self, tokens: int, slots: int | None) -> int:
        estimate = int(tokens / self.context_tokens * _REQUESTS_PER_CONTEXT)
        estimate = max(min(estimate, _MOST), _FEWEST)
        if self.rules.spare_request:
            estimate += 1
        told = self.memory.max_requests
        found = estimate if told is None else max(1, told // self.settings.attention_groups)
        found = min(found, tokens // 2)
        if slots is not None:
            found = min(found, slots // self.state.slots_per_request)
        return found

    def _limit(self, tokens: int, windows: int | None, slots: int | None, running: int) -> str:
        if slots is not None and (slots <= 0 or running <= 0):
            return "state"
        if tokens <= 0:
            return "tokens"
        window = self.window_tokens
        short = windows is not None and window is not None and window + self.page_size_tokens >= windows
        return "window" if short and not self.is_request_capped else ""
