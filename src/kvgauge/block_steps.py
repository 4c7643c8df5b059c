"""The step of a pool of blocks: groups of layers, the block that they share, and how many a load takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from kvgauge.steps import Facts, Step

_SOURCE = "vLLM v1/core/kv_cache_utils.py, v1/kv_cache_interface.py"


def block_steps(facts: Facts) -> list[Step]:
    """Return one step: blocks times their bytes, which is what one rank of each stage sets aside together."""
    details, words, load = facts.cache.demand.details, facts.words, facts.cache.workload
    count, size = cast(int, details["blocks"]), cast(int, details["bytes_per_block"])
    groups = cast("list[Mapping[str, object]]", details["groups"])
    listed = words.listed([_group(group, facts) for group in _joined(groups)])
    text = words.text(
        "steps",
        "blocks",
        block=details["block_size_tokens"],
        groups=listed,
        sequences=-(-load.sequences // facts.cache.parallelism.data),
        count=count,
        size=words.size(size),
        why=_why(details, facts),
    )
    return [
        Step(
            "blocks",
            words.title("steps", "blocks"),
            text,
            "N_b × S_b",
            {"N_b": count, "S_b": size},
            count * size,
            _SOURCE,
        )
    ]


def _joined(groups: list[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Join groups that are alike but for the layers they hold."""
    sums: dict[tuple[object, ...], dict[str, object]] = {}
    for group in groups:
        key = (group["kind"], group["block_size_tokens"])
        if key not in sums:
            sums[key] = dict(group)
        else:
            for name in ("num_layers", "blocks_per_request"):
                sums[key][name] = cast(int, sums[key][name]) + cast(int, group[name])
    return list(sums.values())


def _group(group: Mapping[str, object], facts: Facts) -> str:
    kind = facts.words.title("kinds", str(group["kind"]))
    return facts.words.phrase(
        "block_group", layers=group["num_layers"], kind=kind, blocks=group["blocks_per_request"]
    )


def _why(details: Mapping[str, object], facts: Facts) -> str:
    """Say what the block follows from."""
    groups = cast("list[Mapping[str, object]]", details["groups"])
    if any(group["kind"] == "recurrent" for group in groups):
        return facts.words.phrase("block_why_state")
    backends = cast("list[str]", details.get("attention_backends", []))
    return facts.words.phrase("block_why_backend", backend=backends[0]) if backends else ""
