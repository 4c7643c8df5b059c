"""The working and output buffers of a context, by place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import get_format
from kvgauge.engines.llamacpp.builds import NEWEST
from kvgauge.engines.llamacpp.cells import ContextSizes
from kvgauge.engines.llamacpp.compute import GENERIC, Estimate, GraphRow, estimate, graph_row, symbols
from kvgauge.engines.llamacpp.graph import graph_bytes
from kvgauge.engines.llamacpp.placement import HOST, LayerPlacement
from kvgauge.engines.llamacpp.settings import LlamaSettings

#: Architectures that llama.cpp runs without flash attention whatever is asked (``llama_init_from_model``).
NEVER_FLASH = frozenset({"grok"})
#: Copies of the graph's inputs when several devices work at once (``GGML_SCHED_MAX_COPIES``).
PIPELINE_COPIES = 4

#: Range of a graph that is played through the allocator. Gaps of equal size in another order move it by a
#: few percent, the alignment of a device by less.
_PLAYED = (0.94, 1.12)

#: What the range is widened by where a buffer was not measured: low and high factors, on top of the row's
#: own.
_PARTLY_OFFLOADED = (0.4, 2.0)
_OTHER_BUILD = (0.85, 1.6)
_DRAFT = (0.2, 1.1)
#: On a device the fork keeps copies of unpacked latents beside, which start-up logs show to be up to 2 GiB.
_UNPACKED_ON_DEVICE = 1.6


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
        found += [_widened(b, *_DRAFT, name="mtp.compute") for b in found if b.place != HOST][-1:]
    vocabulary = dict(architecture.dimensions).get("vocab_size")
    if vocabulary:
        size = 4 * vocabulary * sizes.sequences
        plural = "s" * (sizes.sequences != 1)
        text = f"4 B × {vocabulary} logits × {sizes.sequences} sequence{plural}"
        found.append(Buffer("output", HOST, size, size, size, "exact", text))
    return tuple(found)


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
    tail = _variant(settings, plain=plain)
    devices = placement.devices
    output = placement.place(placement.num_layers)
    whole = placement.first_on_device == 0

    def sized(name: str, *, logits: bool) -> Estimate | None:
        size = None
        if whole or not devices:
            size = graph_bytes(architecture, settings, sizes, place=name, plain=plain, logits=logits)
        return _named(row, name, tail, of, logits=logits) if size is None else _played(architecture, size)

    for place in devices:
        found = _unpacked(sized("device", logits=place == output), settings, of, on_device=True)
        if found is not None:
            found = _copied(found, of, len(devices), plain=plain)
            yield _buffer(place, found, settings, known=own is not None, whole=whole)
    name = "host" if devices and whole else "cpu"
    found = sized(name, logits=output == HOST or not devices)
    if name == "cpu":
        found = _unpacked(found, settings, of, on_device=False)
    if found is not None:
        found = _copied(found, of, len(devices) if whole else 1, plain=plain)
        yield _buffer(HOST, found, settings, known=own is not None, whole=whole or not devices)


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


def _copied(found: Estimate, of: Mapping[str, int], devices: int, *, plain: bool) -> Estimate:
    """Add the copies of masks and hidden rows that a pipeline over several devices keeps.

    Seen with two devices: 3 more masks and 4 copies of the rows that pass from one to the next.
    """
    if devices < 2:
        return found
    mask = (4 if plain else 2) * of["ub"] * (of["C"] + of["W"])
    extra = (PIPELINE_COPIES - 1) * mask + PIPELINE_COPIES * 4 * of["ub"] * of["d"]
    return replace(found, bytes=found.bytes + extra, high=found.high + 2 * extra)


def _unpacked(
    found: Estimate | None, settings: LlamaSettings, of: Mapping[str, int], *, on_device: bool
) -> Estimate | None:
    """Add K and V that ik_llama.cpp makes of latents (``-mla 2``, 3), of as many heads as ``-amb`` lets."""
    if found is None or not settings.unpacks or not of["km"]:
        return found
    packed = 2 * of["C"] * of["h"] * (of["km"] - of["p"] + of["vm"])
    parts = max(1, -(-packed // (settings.attention_mib << 20))) if settings.attention_mib else 1
    size = 4 * of["C"] * of["h"] * (of["km"] + of["vm"]) // parts + found.bytes // 4
    if size <= found.bytes:
        return found
    high = round(size * (_UNPACKED_ON_DEVICE if on_device else 1.1))
    return replace(found, bytes=size, low=round(size * 0.9), high=max(found.high, high))


def _buffer(place: str, found: Estimate, settings: LlamaSettings, *, known: bool, whole: bool) -> Buffer:
    grade = "measured" if known and whole and settings.build is NEWEST else "assumed"
    buffer = Buffer("compute", place, found.bytes, found.low, found.high, grade, found.moment)
    if not whole:
        buffer = _widened(buffer, *_PARTLY_OFFLOADED)
    return buffer if settings.build is NEWEST else _widened(buffer, *_OTHER_BUILD)


def _widened(buffer: Buffer, low: float, high: float, name: str | None = None) -> Buffer:
    return replace(
        buffer,
        name=name or buffer.name,
        low=round(buffer.low * low),
        high=round(buffer.high * high),
        grade="assumed",
    )
