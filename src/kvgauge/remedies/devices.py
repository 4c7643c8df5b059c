"""Changes of the devices: more of them, another card, or the host's memory beside them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from kvgauge.engines.flag_tables import OFFLOAD, flag_for
from kvgauge.fit_asking import Posed
from kvgauge.fit_search import largest
from kvgauge.host_weights import movable_share
from kvgauge.loaded_weights import loaded_weights
from kvgauge.remedies.changes import (
    Change,
    Keywords,
    engine_of,
    merged,
    tried,
    version_of,
    with_flag,
    with_option,
)
from kvgauge.units import GIB

#: Tensor-parallel ranks and pipeline stages, fewest GPUs first; a machine has eight.
_SPREADS = ((2, 1), (4, 1), (8, 1), (8, 2), (8, 4))
#: Kinds of cards that engines serve on.
_KINDS = ("datacenter", "workstation", "consumer")


def more_ranks(posed: Posed) -> Iterator[Change]:
    """Spread the model over more GPUs of the same kind."""
    spread = posed.search.prepared.options.parallelism
    for tensor, pipeline in _SPREADS:
        if tensor * pipeline <= spread.tensor * spread.pipeline or pipeline < spread.pipeline:
            continue
        count = tensor * pipeline * spread.data
        keywords = _ranks(posed, tensor, pipeline, count)
        if keywords is not None:
            shown = f"--tp {tensor}" + (f" --pp {pipeline}" if pipeline > 1 else "")
            yield Change("more_ranks", keywords, shown, {"num_gpus": count})


def _ranks(posed: Posed, tensor: int, pipeline: int, count: int) -> Keywords | None:
    told = posed.search.prepared.engine.told(posed.question.engine_args)
    if {"tp", "pp"} & set(told) == {"tp", "pp"}:
        return None  # two flags of one line
    stages = with_option(posed, "pp", pipeline) if pipeline > 1 or posed.question.options.pp else {}
    return merged(with_option(posed, "tp", tensor), stages, counted(posed, count))


def counted(posed: Posed, count: int) -> Keywords:
    """Return keywords for so many of the same GPU."""
    question, found = posed.question, dict[str, object]()
    if question.num_gpus is not None:
        found["num_gpus"] = count
    if question.gpu is not None and posed.named is not None:
        found["gpu"] = f"{posed.named.card.name}:{count}"
    if question.memory is not None:
        found["memory"] = f"{str(question.memory).partition(':')[0]}:{count}"
    return found


def another_card(posed: Posed) -> Iterator[Change]:
    """Take the smallest card with more memory that the load fits on, as many of it as now."""
    named, cards = posed.named, posed.search.cards
    if named is None or cards is None:
        return
    count = posed.search.prepared.request.parallelism.num_gpus
    names = _larger(posed)

    def change(name: str) -> Change:
        keywords: dict[str, object] = {"gpu": f"{name}:{count}", "gpu_file": None, "memory": None}
        shown = shlex.quote(name if count == 1 else f"{name}:{count}")
        return Change("another_card", keywords, f"--gpu {shown}", {"num_gpus": count})

    def is_too_small(position: int) -> bool:
        found = tried(posed, change(names[position - 1]))
        return found is None or not found.verdict.fits

    first = largest(len(names), is_too_small)
    if first < len(names):
        yield change(names[first])


def _larger(posed: Posed) -> list[str]:
    """Return cards of the same maker with more memory and no fewer abilities, smallest first."""
    from kvgauge.hardware import all_accelerators  # noqa: PLC0415 - only what does not fit asks

    card = posed.search.prepared.setup.card
    if card is None:
        return []
    ability, memory = card.capability, card.memory_bytes
    known = tuple(all_accelerators())
    maker = next((device.vendor for device in known if device.name == card.name), "")
    found = [
        (device.memory_bytes, -(device.year or 0), device.name)
        for device in known
        if device.kind in _KINDS
        and device.memory_bytes > memory
        and (device.compute_capability is None) == (ability is None)
        and (device.compute_capability or (0, 0)) >= (ability or (0, 0))
        and (ability is not None or device.vendor == maker)
    ]
    return [name for _, _, name in sorted(found)]


def weights_on_host(posed: Posed) -> Iterator[Change]:
    """Keep as many weights in the host's memory as lack of each GPU; they are read for every step."""
    verdict = posed.verdict
    flag = flag_for(engine_of(posed), OFFLOAD, version_of(posed))
    if posed.search.cards is None or flag is None:
        return
    already = posed.search.prepared.engine.host_weight_bytes(posed.question.engine_args)
    short = max(-verdict.slack_bytes, verdict.required_high_bytes - verdict.available_bytes)
    most = movable_bytes(posed)
    size = -(-min(already + max(0, short), most) // GIB)
    keywords = with_flag(posed, OFFLOAD, str(size))
    if keywords is not None:
        yield Change("weights_on_host", keywords, f"{flag} {size}", {"host_gib": size})


def movable_bytes(posed: Posed) -> int:
    """Return the weights of the fullest GPU that can lie in the host's memory."""
    if posed.weighed is None:
        return 0
    loaded = loaded_weights(posed.search.prepared, posed.weighed)
    return int(max(loaded, default=0) * movable_share(posed.weighed))


def experts_on_host(posed: Posed) -> Iterator[Change]:
    """Keep the routed experts of the fewest first blocks on the host (llama.cpp)."""
    stored = None if posed.weighed is None else posed.weighed.stored
    if stored is None or not any(item.family.num_experts for item in stored.families):
        return
    yield from _on_host(posed, "experts_on_host", "host_experts", lambda kept, blocks: blocks - kept)


def cache_on_host(posed: Posed) -> Iterator[Change]:
    """Keep the cache in the host's memory (llama.cpp)."""
    flag = flag_for(engine_of(posed), "host_cache", version_of(posed))
    keywords = with_flag(posed, "host_cache", "")
    if posed.search.cards is not None and flag is not None and keywords is not None:
        yield Change("cache_on_host", keywords, flag)


def layers_on_host(posed: Posed) -> Iterator[Change]:
    """Keep on the devices the most layers that fit (llama.cpp)."""
    yield from _on_host(posed, "layers_on_host", "gpu_layers", lambda kept, blocks: kept)


def _on_host(posed: Posed, code: str, option: str, value: Callable[[int, int], int]) -> Iterator[Change]:
    """Yield the change that keeps most blocks on the devices.

    Args:
        value: of the flag, from the blocks that stay and all blocks.
    """
    flag = flag_for(engine_of(posed), option, version_of(posed))
    if posed.search.cards is None or flag is None:
        return
    blocks = posed.search.prepared.architecture.num_layers

    def change(kept: int) -> Change | None:
        number = value(kept, blocks)
        keywords = with_flag(posed, option, str(number))
        return None if keywords is None else Change(code, keywords, f"{flag} {number}", {option: number})

    def fits(kept: int) -> bool:
        made = change(kept)
        found = None if made is None else tried(posed, made)
        return found is not None and found.verdict.fits

    best = change(largest(blocks, fits))
    if best is not None:
        yield best


__all__ = [
    "another_card", "cache_on_host", "counted", "experts_on_host", "layers_on_host", "more_ranks",
    "weights_on_host",
]  # fmt: skip
