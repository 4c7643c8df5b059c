"""The exact size of a working buffer: an architecture's graph, block by block, through its allocator.

Blocks of one kind ask for the same tensors, so a state of the buffer that was seen before a block of a kind
is not played again. Only what the tapes cover is answered: one device or none, whole, and the architectures
and kinds of blocks that were recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from kvgauge.architecture import ModelArchitecture
from kvgauge.dtypes import get_format
from kvgauge.engines.llamacpp.cells import ContextSizes
from kvgauge.engines.llamacpp.graph_memory import Arena, padded
from kvgauge.engines.llamacpp.graph_symbols import block_kinds, block_symbols, graph_symbols, turned
from kvgauge.engines.llamacpp.graph_tables import Layout, Tape, layout_of, size_of, tape_of
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.values import dataclass

#: Keys that change a graph where they are there.
_FEATURES = (
    "expert_count", "expert_shared_feed_forward_length", "attention.q_lora_rank",
    "attention.key_length_mla", "embedding_length_per_layer_input", "attention.indexer.key_length",
    "moe_latent_size", "attention.sliding_window",
)  # fmt: skip
_LOGITS = "V"


@dataclass(frozen=True, slots=True)
class Step:
    """A tape with the sizes that it meets.

    Args:
        number: of the tape; -1 the start.
        of: values of the symbols.
    """

    number: int
    tape: Tape
    of: Mapping[str, int]


def graph_bytes(
    architecture: ModelArchitecture,
    settings: LlamaSettings,
    sizes: ContextSizes,
    *,
    place: str,
    plain: bool,
    logits: bool = True,
) -> int | None:
    """Return the bytes of a working buffer, or None where the graph was not recorded.

    Args:
        place: ``device``, ``host`` beside a device, or ``cpu`` without one.
        plain: without flash attention.
        logits: the output layer lies there.
    """
    kinds = block_kinds(architecture)
    if not kinds or not architecture.dimensions:
        return None
    setting = _setting(dict(architecture.dimensions), settings, sizes, place, plain=plain)
    layout = layout_of(graph_name(architecture, kinds), setting)
    if layout is None:
        return None
    of = graph_symbols(architecture, settings, sizes)
    steps = list(_steps(layout, kinds, of, block_symbols(architecture, of)))
    if len(steps) != (1 if _is_start_only(layout) else len(kinds) + 1):
        return None
    try:
        return Player(skipped=frozenset() if logits else frozenset({_LOGITS})).play(steps)
    except OutOfTapeError:
        return None


def graph_name(architecture: ModelArchitecture, kinds: tuple[str, ...]) -> str:
    """Return the name that a graph is recorded under."""
    stated = dict(architecture.dimensions)
    features = [name for name in _FEATURES if stated.get(name)]
    return "|".join([architecture.model_type, ",".join(features), ",".join(sorted(set(kinds)))])


def _setting(
    stated: Mapping[str, int], settings: LlamaSettings, sizes: ContextSizes, place: str, *, plain: bool
) -> str:
    """Return which graph it is: place, attention, rows of the cache, sequences."""
    heads = stated.get("attention.head_count") or 1
    width = stated.get("attention.key_length") or stated.get("embedding_length", 0) // heads
    rows = "h"
    if get_format(settings.k_type).row_block > 1 and turned(width):
        rows = "q"
    elif settings.k_type == "f32" and place == "cpu" and not plain:
        rows = "f"
    streams = "1" if sizes.sequences == 1 else "u" if sizes.streams == 1 else "s"
    away = "a" if place != "cpu" and not settings.offload_cache else "d"
    kind = "c" if place == "cpu" else away
    return f"{kind}{int(not plain)}{rows}{streams}.{'dev' if place == 'device' else 'host'}"


def _steps(
    layout: Layout,
    kinds: tuple[str, ...],
    of: Mapping[str, int],
    by_block: tuple[Mapping[str, int], ...],
) -> Iterator[Step]:
    """Yield the start and every block; ends early where a tape is missing."""
    start = layout.get(f"start {kinds[0]}")
    if start is None:
        return
    yield Step(-1, tape_of(start), of)
    if _is_start_only(layout):
        return
    last = {kind.partition(".")[0]: index for index, kind in enumerate(kinds)}
    for index, kind in enumerate(kinds):
        at = "M"
        if index == 0:
            at = "F"
        elif index == len(kinds) - 1:
            at = "Z"
        elif last[kind.partition(".")[0]] == index:
            at = "E"
        elif index == 1 and f"{kind} S" in layout:
            at = "S"
        number = layout.get(f"{kind} {at}")
        if number is None:
            return
        yield Step(number, tape_of(number), by_block[index])


def _is_start_only(layout: Layout) -> bool:
    """Whether no block has a tensor there, as on the host beside a device."""
    return all(name.startswith("start ") for name in layout)


class OutOfTapeError(Exception):
    """Blocks follow each other in an order that their tapes were not recorded in."""


Block = tuple[int, int]
State = tuple[tuple[Block, ...], tuple[Block, ...], tuple[Block | None, ...]]


@dataclass(slots=True)
class Player:
    """Plays tapes into one buffer.

    Args:
        skipped: sizes with one of these symbols take no room.
        inputs: tensors of the start, which later blocks free; None where that is done.
        live: tensors (offset, bytes) in order of allocation, without the inputs.
    """

    skipped: frozenset[str] = frozenset()
    arena: Arena = field(default_factory=Arena)
    inputs: list[Block | None] = field(default_factory=list)
    live: list[Block] = field(default_factory=list)
    seen: dict[tuple[int, int, State], State] = field(default_factory=dict)
    bytes_of: dict[tuple[int, int], int] = field(default_factory=dict)

    def play(self, steps: list[Step]) -> int:
        """Return how far the buffer reaches after all steps.

        Raises:
            OutOfTapeError: a tape frees what the blocks before it did not leave.
        """
        for step in steps:
            key = (step.number, id(step.of), self._state())
            after = self.seen.get(key)
            if after is None:
                self._step(step)
                self.seen[key] = self._state()
            else:
                self.arena.free, self.live, self.inputs = list(after[0]), list(after[1]), list(after[2])
        return self.arena.reach_bytes

    def _state(self) -> State:
        return tuple(self.arena.free), tuple(self.live), tuple(self.inputs)

    def _step(self, step: Step) -> None:
        for event in step.tape:
            if event.kind == "+":
                size = self._size(event.size, step.of)
                block = (self.arena.take(size), size)
                if step.number < 0:
                    self.inputs.append(block)
                else:
                    self.live.append(block)
            elif event.kind == "<":
                self._shrink(self._from_last(event.at), self._size(event.size, step.of))
            else:
                self._free(event.kind, event.at)

    def _free(self, kind: str, at: int) -> None:
        if kind == "~":
            block, self.inputs[at] = self.inputs[at], None
            if block is not None:
                self.arena.give(*block)
        else:
            self.arena.give(*self.live.pop(self._from_last(at)))

    def _from_last(self, at: int) -> int:
        if at >= len(self.live):
            raise OutOfTapeError
        return len(self.live) - 1 - at

    def _shrink(self, index: int, size: int) -> None:
        offset, held = self.live[index]
        if size < held:
            self.arena.give(offset + size, held - size)
            self.live[index] = (offset, size)

    def _size(self, number: int, of: Mapping[str, int]) -> int:
        key = (number, id(of))
        if key not in self.bytes_of:
            size = size_of(number)
            self.bytes_of[key] = 0 if size.symbols & self.skipped else max(0, size.bytes_for(of))
        return padded(self.bytes_of[key])
