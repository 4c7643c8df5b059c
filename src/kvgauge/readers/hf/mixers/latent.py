"""Multi-head latent attention: one latent and one rope vector a token, and the sparse indexer's keys.

Sources: arXiv 2405.04434 (MLA), DeepSeek-V3.2 (indexer); vLLM ``deepseek_v2.py`` for which layers own
an indexer.
"""

from __future__ import annotations

from collections.abc import Sequence

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import ONE_PER_SEQUENCE, Counted, LayerCache, LayerKind, Mechanism, Role, Shard, Stream
from kvgauge.readers.hf.config import MAX_LAYERS, ConfigView, short
from kvgauge.readers.streams import BLOCK_INDEX_DTYPE, DSA_INDEX_DTYPE, index_stream, latent_streams

#: What a schedule without an offset means (Transformers ``configuration_glm_moe_dsa.py``).
_DEFAULT_OFFSET = 2


def is_latent(view: ConfigView) -> bool:
    """Whether the config describes latent attention: kv_lora_rank present and not null."""
    return view.find("kv_lora_rank") is not None and view.flag("use_mla", default=True)


def latent_cache(view: ConfigView, index: int, window: int | None) -> tuple[LayerCache, ...]:
    """Return the latent cache of one layer."""
    rank = view.count("kv_lora_rank")
    rope = view.count("qk_rope_head_dim", low=0, because="is the rope part of a latent row")
    counted = Counted(to_tokens=window)
    return (
        LayerCache(
            index,
            LayerKind.SLIDING if window else LayerKind.LATENT,
            Mechanism.LATENT_ATTENTION,
            latent_streams(rank, rope, counted),
            window_tokens=window,
            sources=view.sources(
                "kv_lora_rank", "qk_rope_head_dim", *(("sliding_window",) if window else ())
            ),
            head_widths=_head_widths(view, rope),
        ),
    )


def _head_widths(view: ConfigView, rope: int) -> tuple[int, int] | None:
    """Return the K and V width of a head after expansion, or None where the file does not state them."""
    plain = view.optional_count("qk_nope_head_dim", low=0)
    value = view.optional_count("v_head_dim")
    return None if plain is None or value is None else (plain + rope, value)


def has_indexer(view: ConfigView) -> bool:
    """Whether layers keep index keys of a sparse-attention indexer."""
    if view.find("indexer_head_dim") is not None:
        return True
    # Beside plain K and V, index_head_dim with a block size is the word of block-sparse attention.
    return view.find("index_head_dim") is not None and (is_latent(view) or not view.has("index_block_size"))


def index_cache(view: ConfigView, index: int, count: int) -> tuple[LayerCache, ...]:
    """Return the index keys of one layer that owns an indexer, or nothing."""
    if not owns_indexer(view, index, count):
        return ()
    if not is_latent(view):
        return (_summary_cache(view, index),)
    width = view.count("index_head_dim")
    pool = view.optional_count("index_kpool") or 1
    keys = index_stream(width, DSA_INDEX_DTYPE, Counted(step_tokens=pool))
    return (
        LayerCache(
            index,
            LayerKind.INDEX,
            Mechanism.SPARSE_INDEX,
            (keys,) if pool == 1 else (keys, _ring(pool, width)),
            sources=view.sources(
                "index_head_dim", "indexer_types", "index_topk_freq", "index_topk_pattern", "index_kpool"
            ),
        ),
    )


def _ring(pool: int, width: int) -> Stream:
    """Return the keys and scores that wait until their pool of tokens is full, in bf16."""
    return Stream(Role.COMPRESSOR, pool, 2 * width, ONE_PER_SEQUENCE, Shard.REPLICATED, declared_dtype="bf16")


def _summary_cache(view: ConfigView, index: int) -> LayerCache:
    """Index keys beside plain K and V: one bf16 summary key every ``indexer_compress_ratio`` tokens."""
    name = "indexer_head_dim" if view.has("indexer_head_dim") else "index_head_dim"
    ratio = view.count("indexer_compress_ratio", because="says how many tokens one index key stands for")
    heads = view.optional_count("indexer_kv_heads") or 1
    keys = index_stream(view.count(name), BLOCK_INDEX_DTYPE, Counted(step_tokens=ratio), heads)
    sources = view.sources(name, "indexer_compress_ratio", "indexer_kv_heads")
    return LayerCache(index, LayerKind.INDEX, Mechanism.SPARSE_INDEX, (keys,), sources=sources)


def owns_indexer(view: ConfigView, index: int, count: int) -> bool:
    """Whether layer ``index`` computes index keys of its own rather than reusing an earlier layer's.

    ``indexer_types`` says it; else ``index_topk_pattern`` ("S" shares); else every
    ``index_topk_freq``-th layer after ``index_skip_topk_offset`` owns one.
    """
    types = view.items("indexer_types")
    if types is not None:
        return _listed(types, view.path + "indexer_types", index, count)
    pattern = view.find("index_topk_pattern")
    if pattern is not None:
        letters = pattern[1]
        if not isinstance(letters, str | list | tuple) or index >= len(letters):
            raise InvalidFieldError(f"{pattern[0]} does not reach layer {index}", field=pattern[0])
        return letters[index] != "S"
    frequency = view.optional_count("index_topk_freq", high=MAX_LAYERS) or 1
    offset = view.optional_count("index_skip_topk_offset", low=0, high=MAX_LAYERS)
    offset = _DEFAULT_OFFSET if offset is None else offset
    return max(index - offset + 1, 0) % frequency == 0


def _listed(types: Sequence[object], where: str, index: int, count: int) -> bool:
    if len(types) < count:
        raise InvalidFieldError(f"{where} has {len(types)} entries for {count} layers", field=where)
    # The entry of a multi-token-prediction layer may be missing; it keeps its own keys.
    word = types[index] if index < len(types) else "full"
    if word not in ("full", "shared"):
        raise InvalidFieldError(f"{where}[{index}] must be full or shared, not {short(word)}", field=where)
    return word == "full"
