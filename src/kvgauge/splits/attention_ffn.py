"""Attention on GPUs, feed-forward weights in on-chip memory; and everything in on-chip memory, beside it.

A decoding step goes to and fro layer by layer: the GPUs read caches and attention weights, send each token's
hidden vector, the racks read the experts that the step's tokens chose, and send it back. Every time is what
the slowest resource needs if it does nothing else: a least. Racks hold layers that follow one another,
so that one reads at a time.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from kvgauge.errors import FeatureUnsupportedError
from kvgauge.splits.figures import Assumption, Figure, Split, figure, way
from kvgauge.splits.links import compute_rate, memory_rate
from kvgauge.values import dataclass
from kvgauge.weights import Part

if TYPE_CHECKING:
    from kvgauge.splits.load import SplitLoad
    from kvgauge.stored_weights import StoredFamily

#: Parts whose tensors the feed-forward side holds.
FFN_PARTS = frozenset({Part.MLP, Part.EXPERTS, Part.SHARED_EXPERTS, Part.ROUTER})
#: Parts that a decoding step does not read: it looks rows up, or the prompt alone passes through.
NOT_READ = frozenset({Part.EMBEDDING, Part.PER_LAYER_EMBEDDING, Part.VISION, Part.AUDIO, Part.PROJECTOR})
ACTIVATION_BYTES = 2  # of one value on the link, bf16
SRAM_DTYPES = ("fp8", "bf16", "int8")
WAYS = ("uniform_experts", "whole_cache_read", "racks_take_turns", "no_latency")


@dataclass(frozen=True)
class Sides:
    """The weights of a model, cut between attention and feed-forward.

    Args:
        tokens: of one decoding step, all sequences.
    """

    families: tuple[StoredFamily, ...]
    tokens: int

    @cached_property
    def ffn(self) -> tuple[StoredFamily, ...]:
        """Tensors of the feed-forward side."""
        return tuple(stored for stored in self.families if stored.family.part in FFN_PARTS)

    @cached_property
    def ffn_bytes(self) -> int:
        """Bytes that the feed-forward side holds."""
        return sum(stored.num_bytes for stored in self.ffn)

    @cached_property
    def attention_bytes(self) -> int:
        """Bytes of everything else: attention, embeddings, head, norms, towers."""
        return sum(stored.num_bytes for stored in self.families) - self.ffn_bytes

    @cached_property
    def read_bytes(self) -> int:
        """Bytes of the attention side that a decoding step reads; an embedding where it is the head too."""
        beside = [stored for stored in self.families if stored.family.part not in FFN_PARTS]
        own_head = any(s.family.part is Part.LM_HEAD and s.num_bytes for s in beside)
        left = NOT_READ if own_head else NOT_READ - {Part.EMBEDDING}
        return sum(stored.num_bytes for stored in beside if stored.family.part not in left)

    @cached_property
    def num_ffn_layers(self) -> int:
        """Layers that send a token's vector over."""
        return len({index for stored in self.ffn for index in stored.family.layers})

    @cached_property
    def touched_bytes(self) -> Fraction:
        """Bytes of the feed-forward side that one step reads, every expert as likely as another.

        ``E × (1 − (1 − k/E)^tokens)`` of E experts are chosen by at least one token that takes k of them.
        """
        return sum((_touched(stored, self.tokens) for stored in self.ffn), Fraction(0))

    @cached_property
    def active_ffn_parameters(self) -> int:
        """Parameters of the feed-forward side that one token passes through."""
        shares = ((stored.num_parameters, *_active(stored)) for stored in self.ffn)
        return sum(parameters * chosen // experts for parameters, chosen, experts in shares)


def _active(stored: StoredFamily) -> tuple[int, int]:
    """Return (chosen, all) experts; (1, 1) where every token passes through."""
    family = stored.family
    return (family.num_active_experts, family.num_experts) if family.num_experts else (1, 1)


def _touched(stored: StoredFamily, tokens: int) -> Fraction:
    chosen, experts = _active(stored)
    if chosen == experts:
        return Fraction(stored.num_bytes)
    missed = (1 - chosen / experts) ** tokens
    return stored.num_bytes * (1 - Fraction(missed))


def attention_ffn(load: SplitLoad) -> Split:
    """Return racks and GPUs that hold a model cut between attention and feed-forward, and which side binds.

    Raises:
        FeatureUnsupportedError: the model's layers or a rate of a card are not known.
    """
    sides, sram = _sides(load), load.sram_card
    memory = load.needs(memory_rate(load.device), "the memory bandwidth")
    on_chip = load.needs(memory_rate(sram, "sram_rate"), "the on-chip bandwidth")
    compute = compute_rate(sram, SRAM_DTYPES, "sram_compute")
    gpus = _attention_gpus(load, sides)
    held_bytes = -(-load.sequences // gpus) * load.one.total_bytes
    moved = 2 * _hidden(load) * ACTIVATION_BYTES * sides.num_ffn_layers * sides.tokens
    times = [
        figure("attention_seconds", (sides.read_bytes + held_bytes) / memory.rate),
        figure("link_seconds", moved / (load.network.rate * gpus)),
        figure("ffn_seconds", sides.touched_bytes / on_chip.rate),
    ]
    if compute is not None:
        multiplied = 2 * sides.active_ffn_parameters * sides.tokens
        times.append(figure("ffn_compute_seconds", multiplied / compute.rate))
    figures = (
        figure("ffn_weight_bytes", sides.ffn_bytes),
        figure("racks", -(-sides.ffn_bytes // sram.memory_bytes)),
        figure("attention_weight_bytes", sides.attention_bytes),
        figure("read_weight_bytes", sides.read_bytes),
        figure("cache_bytes", load.cache.total_bytes),
        figure("gpus", gpus),
        figure("link_bytes_per_step", moved),
        figure("touched_bytes", round(sides.touched_bytes)),
        *times,
        figure("step_seconds", _step(times)),
    )
    known = (memory, on_chip, load.network, *((compute,) if compute is not None else ()))
    binds = max(times, key=lambda time: time.value).code
    return Split("attention-ffn", figures, (*known, *_ways(load, WAYS)), binds)


def _step(times: list[Figure]) -> Fraction:
    """Return a step: attention, the link, then the longer of reading and multiplying the experts."""
    attention, link, *ffn = (Fraction(time.value) for time in times)
    return attention + link + max(ffn)


def in_sram(load: SplitLoad) -> Split:
    """Return the racks that hold all of a model and its caches in on-chip memory.

    Raises:
        FeatureUnsupportedError: the on-chip bandwidth of the card is not known.
    """
    sides, sram = _sides(load), load.sram_card
    weights, cache = sides.attention_bytes + sides.ffn_bytes, load.cache.total_bytes
    on_chip = load.needs(memory_rate(sram, "sram_rate"), "the on-chip bandwidth")
    read = sides.read_bytes + sides.touched_bytes + cache
    figures = (
        figure("weight_bytes", weights),
        figure("cache_bytes", cache),
        figure("read_weight_bytes", sides.read_bytes),
        figure("touched_bytes", round(sides.touched_bytes)),
        figure("racks_for_weights", -(-weights // sram.memory_bytes)),
        figure("racks_for_all", -(-(weights + cache) // sram.memory_bytes)),
        figure("sram_step_seconds", read / on_chip.rate),
    )
    return Split("sram", figures, (on_chip, *_ways(load, WAYS)))


def _sides(load: SplitLoad) -> Sides:
    workload = load.cache.workload
    stored = load.stored
    families = (*stored.families, *(stored.mtp_families if workload.mtp else ()))
    sides = Sides(families, load.sequences * (1 + workload.mtp))
    if not sides.num_ffn_layers:
        raise FeatureUnsupportedError(
            "the weights of this model are known as a total, not by layer",
            hint="give its config or its files",
            field="weights",
        )
    return sides


def _hidden(load: SplitLoad) -> int:
    """Return the width of a token's vector between layers, as the embedding has it."""
    embeddings = (s.family.shape for s in load.stored.families if s.family.part is Part.EMBEDDING)
    widths = [shape[1] for shape in embeddings if len(shape) == 2]
    if not widths:
        raise FeatureUnsupportedError(
            "the width of a token's vector does not follow from the weights",
            hint="give its config or its files",
            field="weights",
        )
    return max(widths)


def _attention_gpus(load: SplitLoad, sides: Sides) -> int:
    """Return the fewest GPUs of which each holds the attention weights and the caches of its sequences.

    Raises:
        FeatureUnsupportedError: one sequence beside the attention weights exceeds a card.
    """
    room = load.device.memory_bytes - sides.attention_bytes
    held = max(0, room) // max(1, load.one.total_bytes)
    if held < 1:
        raise FeatureUnsupportedError(
            f"attention weights and the cache of one sequence exceed one {load.device.name}",
            hint="a shorter context, an 8-bit KV dtype or a larger card",
            field="gpu",
        )
    return -(-load.sequences // held)


def _ways(load: SplitLoad, codes: tuple[str, ...]) -> tuple[Assumption, ...]:
    """Return the memory of a rack and the ways of working that the figures suppose."""
    sram = load.sram_card
    own = Assumption("rack_sram", sram.memory_bytes, "bytes", sram.memory.grade, sram.memory.source)
    return (own, *(way(code) for code in codes))
