"""Block-sparse attention (MiniMax-M3): plain K and V, and index keys on the sparse layers."""

from __future__ import annotations

from kvgauge.layers import LayerCache, LayerKind, Mechanism, Role, Shard, Stream
from kvgauge.readers.hf.config import ConfigView


def has_block_index(view: ConfigView) -> bool:
    """Whether the config describes block-sparse attention that is switched on."""
    section = view.section("sparse_attention_config")
    return (
        section is not None
        and section.has("sparse_index_dim")
        and section.flag("use_sparse_attention", default=True)
    )


def block_index_cache(view: ConfigView, index: int) -> tuple[LayerCache, ...]:
    """Return the index keys of one layer, kept in bf16, or nothing on dense layers."""
    section = view.section("sparse_attention_config")
    if section is None:
        return ()
    sparse = section.counts("sparse_attention_freq", high=1)
    if sparse is None:
        types = view.items("layer_types")
        sparse = tuple(int(t == "minimax_m3_sparse") for t in types) if types else None
    if sparse is None:
        raise section.missing("sparse_attention_freq", "says which layers are sparse")
    if index < len(sparse) and not sparse[index]:
        return ()
    stream = Stream(
        Role.INDEX, 1, section.count("sparse_index_dim"), shard=Shard.REPLICATED, declared_dtype="bf16"
    )
    return (
        LayerCache(
            index,
            LayerKind.BLOCK_INDEX,
            Mechanism.BLOCK_INDEX,
            (stream,),
            sources=section.sources("sparse_index_dim", "sparse_attention_freq"),
        ),
    )
