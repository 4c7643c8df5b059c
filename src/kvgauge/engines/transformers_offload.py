"""Where Transformers puts a cache with ``offloading=True``: layers wait on the host.

``Cache.update`` of ``cache_utils.py`` (4.57.3 to 5.24.0) fetches the next layer, updates its own, hands the
updated tensors to the attention, and moves the layer's own to the host. So the device holds the layer in use
and the next one, round and round; a static cache keeps its sliding layers there too
(``offload_only_non_sliding``), and layers that keep a state alone never go through ``update``. What is shown
is the moment at which the device holds most of it. The tensors that a growing layer is concatenated from are
alive for an instant besides, as in every dynamic cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kvgauge.architecture import LayerGroup, ModelArchitecture, Note
from kvgauge.engines.base import GroupDemand, Placed
from kvgauge.engines.transformers_args import CacheChoice
from kvgauge.engines.transformers_streams import OUTSIDE, Storage, slides
from kvgauge.engines.transformers_versions import VersionRules
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.layers import STATE_KINDS, Axis, LayerKind, Mechanism
from kvgauge.units import format_bytes
from kvgauge.workload import Parallelism, Workload

#: Designs whose layers bring cache classes of their own, which move only some of their tensors, or none.
_OWN_CACHE = frozenset({Mechanism.LIGHTNING, Mechanism.RWKV, Mechanism.COMPRESSED_ATTENTION, *OUTSIDE})
_INDEX_KINDS = frozenset({LayerKind.INDEX, LayerKind.BLOCK_INDEX})


@dataclass(slots=True)
class _Layer:
    """Bytes of one layer: what moves between host and device, what stays, and what its attention reads."""

    index: int
    moved: int = 0
    cache: int = 0
    state: int = 0
    in_use: int = 0


def placed_layers(storage: Storage, demands: Iterable[GroupDemand]) -> tuple[Placed, ...]:
    """Return what lies on device and host; parts of the kinds cache and state sum up to the cache."""
    layers = _layers(storage, tuple(demands))
    ring = [layer for layer in layers if layer.moved]
    copies, fetched = _busiest(ring, storage)
    coming = [fetched] if fetched else []
    waiting = [layer for layer in ring if layer is not fetched]
    parts = [
        ("cache.next", "cache", "gpu:0", sum(layer.moved for layer in coming), _named(coming)),
        ("cache.in_use", "compute", "gpu:0", sum(layer.in_use for layer in copies), _named(copies)),
        ("cache.resident", "cache", "gpu:0", *_staying(layers, "cache")),
        ("state.resident", "state", "gpu:0", *_staying(layers, "state")),
        ("cache.offloaded", "cache", "host", sum(layer.moved for layer in waiting), _counted(len(waiting))),
    ]
    return tuple(
        Placed(name, kind, 0, place, size, size, size, "exact", because)
        for name, kind, place, size, because in parts
        if size
    )


def offloading_notes(placed: tuple[Placed, ...]) -> tuple[Note, ...]:
    """Say what the device holds at most, where anything moves."""
    if not any(part.place == "host" for part in placed):
        return ()
    size = sum(part.bytes for part in placed if part.place != "host")
    text = (
        "layers wait on the host; the device holds the one in use, the next, and what never moves: "
        f"{format_bytes(size)} at most"
    )
    return (Note("cache_offloaded", "info", text, (("size", format_bytes(size)),), (size,)),)


def _named(layers: list[_Layer]) -> str:
    numbers = ", ".join(str(layer.index) for layer in layers)
    return f"layers {numbers}" if len(layers) > 1 else f"layer {numbers}"


def _counted(layers: int) -> str:
    return f"{layers} layers" if layers != 1 else "1 layer"


def _staying(layers: list[_Layer], name: str) -> tuple[int, str]:
    sizes = [size for layer in layers if (size := int(getattr(layer, name)))]
    return sum(sizes), _counted(len(sizes))


# -- layers ---------------------------------------------------------------------------------------


def _layers(storage: Storage, demands: tuple[GroupDemand, ...]) -> list[_Layer]:
    """Return the layers in order, each with the bytes of all its caches."""
    by_index: dict[int, list[GroupDemand]] = {}
    for demand in demands:
        for index in demand.group.indices:
            by_index.setdefault(index, []).append(demand)
    apart = {
        layer.index for layer in storage.architecture.mtp_layers
    }  # an object of their own, not offloaded
    return [_layer(index, parts, storage, index in apart) for index, parts in sorted(by_index.items())]


def _layer(index: int, parts: list[GroupDemand], storage: Storage, apart: bool) -> _Layer:
    load, layer = storage.workload, _Layer(index)
    moving = frozenset() if apart else _moving(parts, storage)
    for demand in parts:
        size = load.sequences * demand.sequence_bytes(load)
        if demand.group.kind not in moving:
            name = "state" if demand.group.kind in STATE_KINDS else "cache"
            setattr(layer, name, getattr(layer, name) + size)
            continue
        layer.moved += size
        if demand.group.kind not in STATE_KINDS | _INDEX_KINDS:
            layer.in_use += load.sequences * _read(demand, load)
    return layer


def _moving(parts: list[GroupDemand], storage: Storage) -> frozenset[LayerKind]:
    """Return the kinds of a layer's caches that go to the host.

    A static index and the index of block-sparse layers have no ``offload`` of their own. A layer with a state
    and a window inherits that of the state first, which leaves keys and values where they are.
    """
    kinds = frozenset(demand.group.kind for demand in parts)
    windowed = any(slides(demand.group, storage.architecture) for demand in parts)
    states, rows = kinds & STATE_KINDS, kinds - STATE_KINDS - _INDEX_KINDS
    is_static = storage.choice.cache == "static"
    if not any(demand.streams for demand in parts if demand.group.kind in rows) or (windowed and is_static):
        return frozenset()
    if windowed and states:
        return states
    return rows | states | (frozenset() if is_static else kinds & {LayerKind.INDEX})


def _read(demand: GroupDemand, load: Workload) -> int:
    """Return the bytes that attention reads of one layer: a window with the query, so one token more."""
    streams = tuple(
        stream
        if (kept := stream.counted.to_tokens) is None
        else replace(stream, counted=replace(stream.counted, to_tokens=kept + 1))
        for stream in demand.streams
    )
    return replace(demand, streams=streams).sequence_bytes(load)


def _busiest(ring: list[_Layer], storage: Storage) -> tuple[list[_Layer], _Layer | None]:
    """Return the layers in use, and the next one, of the moment at which the device holds most.

    Layers whose cache others read stay in use until those are done; in 4.57 until they are in use again.
    """
    shared = {layer.shares_cache_of for layer in storage.architecture.layers}
    persists = storage.rules.shared_states_persist
    best: tuple[int, list[_Layer], _Layer | None] = (-1, [], None)
    for place, layer in enumerate(ring):
        after = ring[(place + 1) % len(ring)]
        fetched = after if after is not layer else None  # a layer alone is fetched when it is in use
        copies = [
            other
            for other in ring
            if other is layer or (other.index in shared and (persists or other.index < layer.index))
        ]
        size = (fetched.moved if fetched else 0) + sum(other.in_use for other in copies)
        if size > best[0]:
            best = (size, copies, fetched)
    return best[1], best[2]


# -- refusals -------------------------------------------------------------------------------------


def check_offloading(
    architecture: ModelArchitecture,
    groups: tuple[LayerGroup, ...],
    choice: CacheChoice,
    rules: VersionRules,
    spread: Parallelism,
) -> None:
    """Refuse what such a cache can't do, or where its places are not known.

    Raises:
        FeatureUnsupportedError: always where it does.
    """
    if spread.num_gpus > 1:
        raise FeatureUnsupportedError(
            f"cache={choice.word} is known on one GPU",
            hint="leave --tp, --pp and --dp out, or give cache=dynamic",
            field="engine-args",
        )
    reason = _reason(architecture, groups, choice, rules)
    if reason:
        raise FeatureUnsupportedError(
            f"cache={choice.word} can't hold the layers of {architecture.model_type}: {reason}",
            hint="cache=dynamic is what the model makes itself",
            field="engine-args",
        )


def _reason(
    architecture: ModelArchitecture, groups: tuple[LayerGroup, ...], choice: CacheChoice, rules: VersionRules
) -> str | None:
    if any(s.counted.axis is Axis.ENCODER for g in groups for s in g.streams):
        return "cross-attention reads its cache without fetching it from the host"
    if any(g.mechanism in _OWN_CACHE for g in groups):
        return "some keep their cache outside the layers that are offloaded"
    states = [g for g in groups if g.kind in STATE_KINDS]
    if states and not rules.state_in_static:
        return "layers with a state have a cache object of their own, which is not offloaded"
    rows = [g for g in groups if g.kind not in STATE_KINDS | _INDEX_KINDS and g.streams]
    beside = {index for g in states for index in g.indices}
    unfetched = [g for g in rows if slides(g, architecture) is not (choice.cache == "static")]
    if not rules.fetches_every_hybrid and any(beside.intersection(g.indices) for g in unfetched):
        return "before 5.24 a layer with such a state beside its attention is not fetched from the host"
    if choice.cache == "static" and rows and all(slides(g, architecture) for g in rows):
        return "StaticCache offloads no sliding layer, and stops where all layers are"
    return None
