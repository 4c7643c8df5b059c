"""Splits of the cache: a prefix kept once, a host behind the GPUs, prefill on GPUs of its own."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from kvgauge.errors import InvalidRequestError
from kvgauge.splits.figures import Assumption, Figure, Split, figure, way
from kvgauge.splits.links import compute_rate, disk_of, host_link, peer_link
from kvgauge.weights import Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvgauge.splits.load import SplitLoad

#: What a token's forward pass multiplies in; a faster type only lowers the time, which is a least anyway.
COMPUTE_DTYPES = ("bf16", "fp16", "fp8", "fp4")
#: Parts that a prompt's tokens are not multiplied with: rows are looked up, and one token alone is scored.
NOT_MULTIPLIED = frozenset({Part.EMBEDDING, Part.PER_LAYER_EMBEDDING, Part.LM_HEAD})


def prefix(load: SplitLoad) -> Split:
    """Return what sequences save that share their first tokens.

    Raises:
        InvalidRequestError: the load shares no prefix.
    """
    cache = load.cache
    shared = cache.workload.shared_prefix_tokens
    if not shared:
        raise InvalidRequestError(
            "no prefix is shared", hint="--shared-prefix TOKENS says how long it is", field="shared_prefix"
        )
    apart, together = cache.bytes_per_sequence * load.sequences, cache.total_bytes
    saved = apart - together
    own = cache.bytes_per_sequence - (saved // (load.sequences - 1) if load.sequences > 1 else 0)
    more = 1 + (apart - cache.bytes_per_sequence) // own if own else load.sequences
    return Split(
        "prefix",
        (
            figure("apart_bytes", apart),
            figure("together_bytes", together),
            figure("saved_bytes", saved),
            figure("own_bytes", own),
            figure("sequences_in_same_bytes", more),
        ),
        (way("state_not_shared"),),
    )


def offload(load: SplitLoad) -> Split:
    """Return what a host holds of caches, and what bringing one back takes against computing it anew.

    Raises:
        FeatureUnsupportedError: the PCIe generation of the card is not known.
    """
    one = load.one
    link = load.needs(host_link(load.device), "the PCIe generation")
    disk = load.needs(disk_of(load.device), "the PCIe generation")
    rank_bytes = max(one.per_rank_bytes)
    stored_bytes = sum(one.per_rank_bytes)
    figures = [figure("sequence_bytes", stored_bytes), figure("rank_bytes", rank_bytes)]
    if load.host_bytes is not None:
        held = load.host_bytes // stored_bytes if stored_bytes else 0
        figures.append(figure("host_sequences", held))
        figures.append(figure("host_tokens", held * one.workload.context_tokens))
    restore = rank_bytes / link.rate
    figures.append(figure("restore_seconds", restore))
    figures.append(figure("disk_seconds", max(restore, stored_bytes / disk.rate)))
    assumptions = [link, disk, *_host(load)]
    figures += _recomputed(load, one.workload.context_tokens, assumptions, restore)
    return Split("offload", tuple(figures), tuple(assumptions))


def _host(load: SplitLoad) -> Iterator[Assumption]:
    if load.host_bytes is not None:
        yield Assumption("host_memory", load.host_bytes, "bytes", "given", "given")


def _recomputed(
    load: SplitLoad, tokens: int, assumptions: list[Assumption], moved: Fraction
) -> Iterator[Figure]:
    """Yield what computing the cache takes at least, and how much of that moving it takes."""
    active = load.stored.num_active_parameters
    rate = compute_rate(load.device, COMPUTE_DTYPES)
    if not active or rate is None:
        return
    assumptions.append(rate)
    families = load.stored.families
    beside = sum(each.num_parameters for each in families if each.family.part in NOT_MULTIPLIED)
    seconds = 2 * max(0, active - beside) * tokens / (rate.rate * load.num_gpus)
    yield figure("compute_seconds", seconds)
    if seconds:
        yield figure("moved_to_computed", moved / seconds)


def disaggregated(load: SplitLoad) -> Split:
    """Return what a request moves from the GPUs that prefill to those that decode, and what each side holds.

    The cache of the prompt goes rank to rank: each decoding rank gets what it holds, replication included.
    """
    prompt, weights, network = load.prompt, load.sized.weights, load.network
    rank_bytes = max(prompt.per_rank_bytes)
    seconds = rank_bytes / network.rate
    figures = [
        figure("prompt_bytes", sum(prompt.per_rank_bytes)),
        figure("prompt_rank_bytes", rank_bytes),
        figure("transfer_seconds", seconds),
    ]
    assumptions = [network]
    if seconds:
        figures.append(figure("requests_per_second", 1 / seconds))
    peer = None if load.card is None else peer_link(load.card)
    if peer is not None:
        assumptions.append(peer)
        figures.append(figure("peer_seconds", rank_bytes / peer.rate))
    if weights is not None:
        if load.card is not None:
            figures += _recomputed(load, prompt.workload.context_tokens, assumptions, seconds)
        held = max(weights.per_rank_bytes)
        figures.append(figure("prefill_rank_bytes", held + rank_bytes))
        figures.append(figure("decode_rank_bytes", held + max(load.cache.per_rank_bytes)))
    return Split("disaggregated", tuple(figures), tuple(assumptions))
