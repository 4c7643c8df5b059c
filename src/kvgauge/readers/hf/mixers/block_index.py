"""Block-sparse attention (MiniMax-M3): plain K and V, and index keys on the sparse layers."""

from __future__ import annotations

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.streams import BLOCK_INDEX_DTYPE, index_stream

_SPARSE_WORD = "minimax_m3_sparse"


def has_block_index(view: ConfigView) -> bool:
    """Whether the config describes block-sparse attention that is switched on."""
    section = view.section("sparse_attention_config")
    if section is None:
        return view.has("index_head_dim") and view.has("index_block_size")
    described = section.has("sparse_index_dim") or section.has("sparse_attention_freq")
    return described and section.flag("use_sparse_attention", default=True)


def block_index_cache(view: ConfigView, index: int, count: int) -> tuple[LayerCache, ...]:
    """Return the index keys of one layer, kept in bf16, or nothing on dense layers."""
    section = view.section("sparse_attention_config")
    sparse = section.counts("sparse_attention_freq", high=1) if section is not None else None
    if sparse is None:
        types = view.items("layer_types")
        sparse = tuple(int(t == _SPARSE_WORD) for t in types) if types else None
    if sparse is None:
        raise (section or view).missing("sparse_attention_freq", "says which layers are sparse")
    if len(sparse) < count:
        where = view.path + ("sparse_attention_config.sparse_attention_freq" if section else "layer_types")
        raise InvalidFieldError(f"{where} has {len(sparse)} entries for {count} layers", field=where)
    # The entry of a multi-token-prediction layer may be missing; it keeps its own keys.
    if index < len(sparse) and not sparse[index]:
        return ()
    # The class spells the geometry of the published file out, one level up.
    level, name = (section, "sparse_index_dim") if section is not None else (view, "index_head_dim")
    keys = index_stream(level.count(name), BLOCK_INDEX_DTYPE)
    return (
        LayerCache(
            index,
            LayerKind.BLOCK_INDEX,
            Mechanism.BLOCK_INDEX,
            (keys,),
            sources=level.sources(name, "sparse_attention_freq", "layer_types"),
        ),
    )
