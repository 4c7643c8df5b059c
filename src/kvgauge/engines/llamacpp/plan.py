"""What llama.cpp sets aside for a context: every sub-cache and buffer, by place."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.llamacpp.buffers import buffers
from kvgauge.engines.llamacpp.cells import ContextSizes, context_sizes
from kvgauge.engines.llamacpp.placement import HOST, LayerPlacement, layer_placement
from kvgauge.engines.llamacpp.refusals import check_streams, check_types
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.engines.llamacpp.subcaches import SubCache, sub_caches
from kvgauge.identity import Identity
from kvgauge.layers import LayerKind
from kvgauge.values import dataclass

_WINDOWS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})


@dataclass(frozen=True, slots=True)
class LlamaAllocation:
    """One allocation, as in the JSON answer.

    Args:
        name: a sub-cache (``kv.k``, ``kv.swa.v``, ``recurrent.s``), ``compute`` or ``output``.
        kind: cache, state or compute.
        place: ``gpu:0`` or ``host``.
        low, high: range that the true size lies in; equal where it is exact.
        layers: layers whose tensors it holds; 0 for buffers.
    """

    name: str
    kind: str
    place: str
    bytes: int
    low: int
    high: int
    grade: str
    because: str
    layers: int = 0


@dataclass(frozen=True)
class LlamaPlan:
    """Everything that one launch sets aside, but weights.

    Args:
        n_ctx: tokens over all sequences.
        cells: cells of one stream, the tokens that one sequence may have.
        swa_cells: cells of a stream of the window pool; None where the model has none.
        streams: streams of the caches.
        prompt_cache_bytes: ceiling of the server's prompt cache on the host; None without one.
        checkpoint_bytes: one kept state of one slot on the host, of which it keeps up to ``checkpoints``.
    """

    allocations: tuple[LlamaAllocation, ...]
    n_ctx: int
    cells: int
    swa_cells: int | None
    streams: int
    sequences: int
    micro_batch_tokens: int
    prompt_cache_bytes: int | None
    checkpoint_bytes: int
    notes: tuple[Note, ...] = ()

    def total_bytes(self, *kinds: str) -> int:
        """Return the bytes of all allocations of these kinds."""
        return sum(part.bytes for part in self.allocations if part.kind in kinds)

    def details(self) -> dict[str, int | None]:
        """Return the ``details`` object of the contract."""
        return {
            "cells": self.cells,
            "swa_cells": self.swa_cells,
            "streams": self.streams,
            "n_ctx": self.n_ctx,
        }


def plan(architecture: ModelArchitecture, settings: LlamaSettings) -> LlamaPlan:
    """Return what llama.cpp allocates for ``architecture`` under ``settings``.

    Args:
        architecture: read from GGUF metadata, or from a config through its mapping.

    Raises:
        FeatureUnsupportedError: llama.cpp would not start, or abort.
        InvalidRequestError: nobody says how long the context is.

    >>> from kvgauge.readers.gguf import read_metadata
    >>> keys = {"block_count": 36, "attention.head_count": 32, "attention.head_count_kv": 8,
    ...         "attention.key_length": 128, "attention.value_length": 128}  # Qwen3-8B
    >>> stated = {f"qwen3.{key}": size for key, size in keys.items()}
    >>> model = read_metadata({"general.architecture": "qwen3", **stated})
    >>> [(p.name, p.bytes >> 20) for p in plan(model, LlamaSettings(context_tokens=32768)).allocations]
    [('kv.k', 2304), ('kv.v', 2304)]
    """
    return _plan(Identity(architecture), settings)


@lru_cache(maxsize=64)
def _plan(of: Identity[ModelArchitecture], settings: LlamaSettings) -> LlamaPlan:
    """Keep the plans of one search: other cards and other weights change nothing of a plan."""
    architecture = of.of
    sizes, placement, parts = _kept(architecture, settings)
    buffered = _buffers(architecture, settings, sizes, placement)
    return LlamaPlan(
        allocations=(*_gathered(parts, placement, away=not settings.offload_cache), *buffered),
        n_ctx=sizes.n_ctx,
        cells=sizes.cells,
        swa_cells=_window_cells(parts),
        streams=sizes.streams,
        sequences=sizes.sequences,
        micro_batch_tokens=sizes.micro_batch_tokens,
        prompt_cache_bytes=None if settings.cache_ram_mib == 0 else settings.cache_ram_mib << 20,
        checkpoint_bytes=_checkpoint(parts, sizes),
        notes=_notes(architecture, settings, sizes),
    )


def kept_allocations(architecture: ModelArchitecture, settings: LlamaSettings) -> tuple[LlamaAllocation, ...]:
    """Return the caches and states alone of ``plan``, without working buffers.

    Raises:
        KvgaugeError: as ``plan``.
    """
    _, placement, parts = _kept(architecture, settings)
    return tuple(_gathered(parts, placement, away=not settings.offload_cache))


def _kept(
    architecture: ModelArchitecture, settings: LlamaSettings
) -> tuple[ContextSizes, LayerPlacement, tuple[SubCache, ...]]:
    sizes = context_sizes(settings, architecture.context_limit_tokens)
    if not architecture.encoder_only:
        check_types(architecture, settings)
        check_streams(architecture, settings, sizes)
    placement = layer_placement(settings, architecture.num_layers + _extra_blocks(architecture))
    return sizes, placement, () if architecture.encoder_only else sub_caches(architecture, settings, sizes)


def _extra_blocks(architecture: ModelArchitecture) -> int:
    return len({layer.index for layer in architecture.mtp_layers})


def _gathered(parts: Iterable[SubCache], placement: LayerPlacement, *, away: bool) -> list[LlamaAllocation]:
    """Add the tensors of one sub-cache at one place together, in order of first appearance."""
    groups: dict[tuple[str, str], list[SubCache]] = {}
    for part in parts:
        place = HOST if away else placement.place(part.layer)
        groups.setdefault((part.name, place), []).append(part)
    found = []
    for (name, place), members in groups.items():
        size = sum(part.size_bytes for part in members)
        layers = len({part.layer for part in members})
        found.append(
            LlamaAllocation(
                name, members[0].kind, place, size, size, size, "exact", _because(members, layers), layers
            )
        )
    return found


def _because(members: list[SubCache], layers: int) -> str:
    first = members[0]
    unit = "rows" if first.kind == "state" else "cells"
    rows = {part.row_bytes for part in members}
    row = f"{first.row_bytes} B" if len(rows) == 1 else f"{min(rows)} to {max(rows)} B"
    streams = f" × {first.streams} streams" if first.streams > 1 else ""
    return f"{layers} layer{'s' * (layers != 1)} × {first.cells} {unit}{streams} × {row}"


def _buffers(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes, placement: LayerPlacement
) -> list[LlamaAllocation]:
    return [
        LlamaAllocation(b.name, "compute", b.place, b.bytes, b.low, b.high, b.grade, b.because)
        for b in buffers(architecture, settings, sizes, placement)
    ]


def _window_cells(parts: Iterable[SubCache]) -> int | None:
    return next((part.cells for part in parts if part.name.startswith("kv.swa")), None)


def _checkpoint(parts: Iterable[SubCache], sizes: ContextSizes) -> int:
    """Return what the server keeps of a slot to go back to: its windows, or its state."""
    parts = tuple(parts)
    states = sum(part.size_bytes for part in parts if part.kind == "state")
    windows = sum(part.size_bytes for part in parts if part.name.startswith("kv.swa"))
    return (states + windows) // sizes.sequences


def _notes(architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes) -> tuple[Note, ...]:
    asked = settings.context_tokens
    if not asked or sizes.n_ctx <= asked or sizes.n_ctx - asked < 256:
        return ()
    values = (("asked", f"{asked:,}"), ("rounded", f"{sizes.n_ctx:,}"))
    text = (
        f"llama.cpp rounds the context of {asked:,} tokens up to {sizes.n_ctx:,}, "
        "a multiple of 256 a sequence"
    )
    return (Note("llamacpp_context_rounded", "info", text, values),)
