"""What a load makes llama.cpp set aside, as streams of rows that count the cells of one sequence.

Cells come in steps of the context's padding, windows end at the cells of their pool, compressed caches have a
cell every few tokens, and states are there before the first token. Sequences that share one stream of cells
have their common size beside that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kvgauge.architecture import LayerGroup, ModelArchitecture
from kvgauge.dtypes import get_format, row_bytes
from kvgauge.engines.base import GroupDemand, StreamDemand
from kvgauge.engines.llamacpp.cells import COMPRESSED_PADDING, context_padding, context_sizes
from kvgauge.engines.llamacpp.load import LlamaLoad
from kvgauge.engines.llamacpp.placement import LayerPlacement
from kvgauge.engines.llamacpp.subcaches import SubCache, parts_by_layer
from kvgauge.layers import ONE_PER_SEQUENCE, Counted, Role, Rounding, Shard, Stream

#: A context that no window reaches, and cells that only such a context has.
_FAR_TOKENS, _FAR_CELLS = 1 << 60, 1 << 44

Streams = tuple[StreamDemand, ...]


def group_demands(
    load: LlamaLoad, architecture: ModelArchitecture, groups: Iterable[LayerGroup], *, is_empty: bool = False
) -> tuple[GroupDemand, ...]:
    """Return the demand of these groups of the model's layers.

    Args:
        is_empty: the load is of no token, for which no cell is counted.

    Raises:
        FeatureUnsupportedError: a type whose blocks do not divide a row.
    """
    if architecture.encoder_only:
        return tuple(GroupDemand(group, ()) for group in groups)
    one, limit = load.one, architecture.context_limit_tokens
    near = parts_by_layer(architecture, one, context_sizes(one, limit))
    far = parts_by_layer(architecture, one, context_sizes(replace(one, context_tokens=_FAR_TOKENS), limit))
    all_ = parts_by_layer(architecture, load.settings, context_sizes(load.settings, limit))
    padding, is_pooled = context_padding(one), load.is_pooled and not is_empty
    held: dict[tuple[object, ...], tuple[Streams, Streams]] = {}
    for (layer, parts), (_, ends), (_, together) in zip(near, far, all_, strict=True):
        streams = [
            stream
            for part, end in zip(parts, ends, strict=True)
            for stream in _streams(part, _counted(part, end, padding, reserved=load.is_reserved))
        ]
        pooled = [s for part in together for s in _streams(part, _ahead(part))] if is_pooled else []
        held[layer.shape, layer.index] = (tuple(streams), tuple(pooled))
    return tuple(demand for group in groups for demand in _by_storage(group, held))


def _by_storage(
    group: LayerGroup, held: dict[tuple[object, ...], tuple[Streams, Streams]]
) -> Iterable[GroupDemand]:
    """Yield a group once for each way that its layers are stored."""
    shape = (group.kind, group.mechanism, group.streams, group.window_tokens)
    ways: dict[tuple[Streams, Streams], list[int]] = {}
    for index in group.indices:
        ways.setdefault(held.get((shape, index), ((), ())), []).append(index)
    for number, ((streams, pooled), indices) in enumerate(ways.items(), 1):
        name = group.name if number == 1 else f"{group.name}.{number}"
        yield GroupDemand(replace(group, name=name, indices=tuple(indices)), streams, pooled)


def _ahead(part: SubCache) -> tuple[Counted, int]:
    return ONE_PER_SEQUENCE, part.cells * part.streams


def _counted(part: SubCache, end: SubCache, padding: int, *, reserved: bool) -> tuple[Counted, int]:
    """Return how often a row is held for T tokens: a count, and rows at each count.

    Args:
        end: the same tensor in a context that no window reaches.
        padding: tokens that the cells of a stream are rounded up to.
        reserved: the context is the same whatever T.
    """
    if part.kind == "state" or reserved:
        return _ahead(part)
    if end.cells < _FAR_CELLS:
        return _windowed(part, end.cells, padding)
    if part.cell_tokens == 1:
        return Counted(step_tokens=padding, rounding=Rounding.CEIL), padding * part.streams
    step = COMPRESSED_PADDING * part.cell_tokens
    return Counted(step_tokens=step, rounding=Rounding.CEIL), COMPRESSED_PADDING * part.streams


def _windowed(part: SubCache, cells: int, padding: int) -> tuple[Counted, int]:
    counted = Counted(to_tokens=cells, step_tokens=padding, rounding=Rounding.CEIL)
    return counted, padding * part.streams


def _streams(part: SubCache, times: tuple[Counted, int]) -> Iterable[StreamDemand]:
    """Yield the streams of a tensor's rows; where blocks straddle them, the row as one."""
    counted, factor = times
    found = [
        replace(StreamDemand.of(shape, part.dtype, counted=counted), factor=factor) for shape in part.shapes
    ]
    if _fits(part):
        return found
    role = part.shapes[0].role if part.shapes else Role.KEY
    whole = Stream(role, 1, sum(s.elements for s in part.shapes), shard=Shard.REPLICATED)
    return [replace(StreamDemand.of(whole, part.dtype, counted=counted), factor=factor)]


def _fits(part: SubCache) -> bool:
    block = max(1, get_format(part.dtype).row_block)
    if any(s.elements % block for s in part.shapes):
        return False
    sizes = (row_bytes(part.dtype, s.role, s.vectors, s.width, s.columns) for s in part.shapes)
    return sum(sizes) == part.row_bytes


def device_stages(placement: LayerPlacement, num_layers: int, devices: int) -> tuple[range, ...]:
    """Return the layers of each device; those on the host stand with the first, whose process holds them."""
    of = [0 if (place := placement.place(i)) == "host" else int(place[4:]) for i in range(num_layers)]
    ends = [sum(device <= stage for device in of) for stage in range(devices)]
    return tuple(range(start, end) for start, end in zip([0, *ends], ends, strict=False))
