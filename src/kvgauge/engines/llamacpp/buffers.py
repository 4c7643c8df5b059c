"""The working and output buffers of a context, by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import get_format
from kvgauge.engines.llamacpp.additions import (
    FIRST,
    PIPELINE_COPIES,
    beside_experts,
    copied,
    helpers,
    in_pipeline,
    staged,
    unpacked,
)
from kvgauge.engines.llamacpp.builds import NEWEST
from kvgauge.engines.llamacpp.cells import ContextSizes
from kvgauge.engines.llamacpp.compute import (
    GENERIC,
    Estimate,
    GraphRow,
    Moment,
    estimate,
    formula,
    graph_row,
    symbols,
    value,
)
from kvgauge.engines.llamacpp.graph import graph_bytes
from kvgauge.engines.llamacpp.placement import HOST, LayerPlacement
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.engines.llamacpp.wide_masks import expanded_blocks, fork_buffer, host_inputs
from kvgauge.values import dataclass

#: Architectures that llama.cpp runs without flash attention whatever is asked (``llama_init_from_model``).
NEVER_FLASH = frozenset({"grok"})

#: Range of a graph that is played through the allocator. Gaps of equal size in another order move it by a
#: few percent, the alignment of a device by less.
_PLAYED = (0.94, 1.12)

#: What the range is widened by where a buffer was not measured: low and high factors, on top of the row's
#: own.
_PARTLY_OFFLOADED = (0.4, 1.6)
_OTHER_BUILD = (0.85, 1.6)
_DRAFT = (0.2, 1.1)
_DRAFT_BLOCK = Moment(((2, ("ub", "C")), (8, ("ub", "f"))))


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer.

    Args:
        grade: exact, measured or assumed.
    """

    name: str
    place: str
    bytes: int
    low: int
    high: int
    grade: str
    because: str


def buffers(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes, placement: LayerPlacement
) -> tuple[Buffer, ...]:
    """Return working buffers and the output buffer; none whose sizes the file does not state."""
    found = [*_working(architecture, settings, sizes, placement)]
    if settings.mtp and architecture.mtp_layers:
        of = symbols(architecture, settings, sizes)
        found += [_draft(b, of) for b in found if b.place != HOST][-1:]
    vocabulary = dict(architecture.dimensions).get("vocab_size")
    if vocabulary:
        size = 4 * vocabulary * sizes.sequences
        plural = "s" * (sizes.sequences != 1)
        text = f"4 B × {vocabulary} logits × {sizes.sequences} sequence{plural}"
        found.append(Buffer("output", HOST, size, size, size, "exact", text))
    return tuple(found)


@dataclass(frozen=True)
class _Graphs:
    """The graphs of one context.

    Args:
        of: values of the symbols; ``row``: the table's sums; ``plain``: without flash attention.
        is_whole: all layers lie on devices.
    """

    architecture: ModelArchitecture
    settings: LlamaSettings
    sizes: ContextSizes
    of: Mapping[str, int]
    row: GraphRow
    plain: bool
    is_whole: bool
    is_alone: bool

    def sized(self, name: str, *, logits: bool) -> Estimate | None:
        """Return the buffer of a kind of place, with the logits or without."""
        build = self.settings.build
        if name == "host" and build.wide_masks:
            return host_inputs(self.of)
        if not (build.fork or self._has_plain_heads):
            return self._blocks(name, logits=logits)
        body, kind = self._blocks(name, logits=False), self.architecture.model_type
        return fork_buffer(body, self.of, kind, plain=self.plain, logits=logits, device=name == "device")

    @property
    def _has_plain_heads(self) -> bool:
        """Whether heads of K and V are kept that were latents, without flash attention."""
        kept = self.settings.latents or self.settings.build.latents
        return self.plain and kept == "expanded" and self.of["km"] > 0

    def _blocks(self, name: str, *, logits: bool) -> Estimate | None:
        settings, size = self.settings, None
        if self._has_plain_heads:
            return expanded_blocks(self.of)
        if self.is_whole or self.is_alone:
            size = graph_bytes(
                self.architecture, settings, self.sizes, place=name, plain=self.plain, logits=logits
            )
        if size is not None:
            return _played(self.architecture, size)
        tail = _variant(settings, plain=self.plain)
        return _named(self.row, name, tail, self.of, logits=logits)


def _working(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes, placement: LayerPlacement
) -> Iterator[Buffer]:
    if "embedding_length" not in dict(architecture.dimensions):
        return
    own = graph_row(architecture.model_type)
    row = own or graph_row(GENERIC)
    assert row is not None  # noqa: S101 - the table has the generic row
    of = symbols(architecture, settings, sizes)
    plain = settings.flash == "off" or architecture.model_type in NEVER_FLASH
    devices, output = placement.devices, placement.place(placement.num_layers)
    whole = placement.first_on_device == 0
    graphs = _Graphs(architecture, settings, sizes, of, row, plain, whole, not devices)
    copies = PIPELINE_COPIES if in_pipeline(settings, devices, whole=whole) else 1

    @cache
    def on_device(*, logits: bool) -> Estimate | None:  # devices differ in nothing else
        return unpacked(graphs.sized("device", logits=logits), settings, of, on_device=True)

    for place in devices or helpers(settings):
        found = on_device(logits=place == output)
        if place == FIRST:
            found = staged(found, on_device(logits=False), settings, of)
        if found is not None:
            found = copied(found, of, copies, plain=plain)
            yield _buffer(place, found, settings, known=own is not None, whole=whole)
    found = _on_host(graphs, copies, output)
    if found is not None:
        yield _buffer(HOST, found, settings, known=own is not None, whole=whole or not settings.num_gpus)


def _on_host(graphs: _Graphs, copies: int, output: str) -> Estimate | None:
    settings, of = graphs.settings, graphs.of
    name = "host" if graphs.is_whole and not graphs.is_alone else "cpu"
    found = graphs.sized(name, logits=output == HOST or graphs.is_alone)
    if name == "cpu":
        found = unpacked(found, settings, of, on_device=False)
    if found is None:
        return None
    found = copied(found, of, copies, plain=graphs.plain or settings.build.wide_masks)
    found = beside_experts(found, settings, of)
    if name == "cpu" and settings.num_gpus:  # what devices do for it is not held here
        found = replace(found, low=min(found.low, host_inputs(of).low))
    return found


def _played(architecture: ModelArchitecture, size: int) -> Estimate:
    low, high = _PLAYED
    text = f"the {architecture.num_layers} blocks of {architecture.model_type}'s graph, one after the other"
    return Estimate(size, round(size * low), round(size * high), text)


def _variant(settings: LlamaSettings, *, plain: bool) -> str:
    """Return which kind of graph it is: plain attention, cache on the host, full windows, packed rows."""
    if plain:
        return "_plain"
    if not settings.offload_cache:
        return "_away"
    if settings.full_windows:
        return "_full"
    return "_packed" if get_format(settings.k_type).row_block > 1 else ""


def _named(row: GraphRow, name: str, tail: str, of: Mapping[str, int], *, logits: bool) -> Estimate | None:
    """Return a buffer by name; where the variant is not known, the plain kind of it."""
    for candidate in (name + tail, name):
        found = estimate(row, candidate, of, logits=logits)
        if found is not None:
            return found
    return None


def _buffer(place: str, found: Estimate, settings: LlamaSettings, *, known: bool, whole: bool) -> Buffer:
    grade = "measured" if known and whole and settings.build is NEWEST else "assumed"
    buffer = Buffer("compute", place, found.bytes, found.low, found.high, grade, found.moment)
    if not whole:
        buffer = _widened(buffer, *_PARTLY_OFFLOADED)
    return buffer if settings.build is NEWEST else _widened(buffer, *_OTHER_BUILD)


def _draft(buffer: Buffer, of: Mapping[str, int]) -> Buffer:
    """Return the buffer of the context that drafts: one block, its mask and two rows of a dense FFN.

    A log of Qwen3.6-27B shows it to 0.01 % (ggml-org/llama.cpp#25465).
    """
    widened = _widened(buffer, *_DRAFT, name="mtp.compute")
    size = round(value(_DRAFT_BLOCK, of))
    if not of["f"] or not widened.low <= size <= buffer.bytes:
        return widened
    return replace(widened, bytes=size, because=formula(_DRAFT_BLOCK))


def _widened(buffer: Buffer, low: float, high: float, name: str | None = None) -> Buffer:
    return replace(
        buffer,
        name=name or buffer.name,
        low=round(buffer.low * low),
        high=round(buffer.high * high),
        grade="assumed",
    )
