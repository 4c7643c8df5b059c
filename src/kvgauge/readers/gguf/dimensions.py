"""Sizes of a model that its cache does not depend on, but an engine's working buffers do."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.errors import KvgaugeError
from kvgauge.readers.gguf.metadata import Metadata
from kvgauge.readers.values import MAX_LAYERS, MAX_WIDTH, is_int

#: Keys without their prefix. Lists hold one entry a layer; the largest counts.
NAMES = (
    "embedding_length", "feed_forward_length", "vocab_size", "block_count",
    "expert_count", "expert_used_count", "expert_feed_forward_length", "expert_shared_feed_forward_length",
    "leading_dense_block_count", "attention.head_count", "attention.head_count_kv",
    "attention.key_length", "attention.value_length",
    "attention.key_length_swa", "attention.value_length_swa", "attention.key_length_mla",
    "attention.value_length_mla", "attention.kv_lora_rank", "attention.q_lora_rank", "rope.dimension_count",
    "attention.sliding_window", "attention.indexer.head_count", "attention.indexer.key_length",
    "attention.indexer.top_k", "attention.output_group_count", "attention.output_lora_rank",
    "ssm.inner_size", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.conv_kernel",
    "kda.head_dim", "wkv.head_size", "shortconv.l_cache",
    "embedding_length_per_layer_input", "hyper_connection.count", "moe_latent_size",
    "expert_chunk_feed_forward_length", "attention.decay_lora_rank", "attention.iclr_lora_rank",
    "attention.gate_lora_rank", "attention.value_residual_mix_lora_rank",
)  # fmt: skip

#: Keys that may list one size a block, and the name of what a block's feed-forward part is.
PER_BLOCK = ("attention.head_count", "attention.head_count_kv", "feed_forward_length")
FEED_FORWARD = "feed_forward"

_VOCABULARY = "token_embd.weight"


def read_dimensions(meta: Metadata) -> tuple[tuple[str, int], ...]:
    """Return the sizes that the file states; what is absent or no whole number is left out.

    They are read without a refusal: a cache can be sized without them.
    """
    found = {name: size for name in NAMES if (size := _largest(meta.values.get(meta.key(name)))) is not None}
    table = meta.shapes.get(_VOCABULARY)
    if "vocab_size" not in found and table is not None and len(table) == 2:
        rows = _largest(table[1])
        if rows is not None:
            found["vocab_size"] = rows
    return tuple(found.items())


def _largest(value: object) -> int | None:
    entries = value[:MAX_LAYERS] if isinstance(value, list | tuple) else [value]
    sizes = [entry for entry in entries if is_int(entry) and 0 <= entry <= MAX_WIDTH]
    return max(sizes) if sizes and len(sizes) == len(entries) else None


def read_block_dimensions(
    metadata: Mapping[str, object], meta: Metadata, count: int
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return what differs between the blocks: sizes that the file lists, and kinds of feed-forward parts.

    Nothing where the tensors of the architecture are not known or do not follow from the metadata: a cache
    can be sized without them.
    """
    from kvgauge.readers.gguf.tensors import read_tensors  # noqa: PLC0415

    try:
        weights = read_tensors(metadata)
    except KvgaugeError:
        return ()
    if weights is None:
        return ()
    kinds = [0] * count
    for family in weights.families:
        if ".ffn_" not in family.name or "norm" in family.name:
            continue
        kind = 2 if family.stacked else int("ffn_down" in family.name or "ffn_up" in family.name)
        for index in family.layers:
            if index < count:
                kinds[index] = max(kinds[index], kind)
    found: list[tuple[str, tuple[int, ...]]] = [(FEED_FORWARD, tuple(kinds))]
    for name in PER_BLOCK:
        listed = meta.values.get(meta.key(name))
        if isinstance(listed, list | tuple) and len(listed) >= count and _largest(listed) is not None:
            found.append((name, tuple(int(size) for size in listed[:count])))
    return tuple(found)
