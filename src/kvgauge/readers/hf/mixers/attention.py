"""Plain attention: K and V rows, full, sliding or chunked (MHA, GQA, MQA, unequal K and V widths)."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import Axis, Counted, LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf.config import MAX_HEADS, MAX_WIDTH, MAX_WINDOW, ConfigView, as_count
from kvgauge.readers.hf.rows import ModelTypeRow, class_defaults
from kvgauge.readers.streams import key_value_streams

_KIND = {
    "full": LayerKind.FULL,
    "sliding": LayerKind.SLIDING,
    "chunked": LayerKind.CHUNKED,
    "cross": LayerKind.CROSS,
}

#: Spellings of the number of KV heads beside num_key_value_heads.
_KV_HEAD_NAMES = (
    "num_key_value_heads_per_layer",
    "num_attention_groups",
    "num_kv_heads",
    "n_head_kv",
    "n_kv_heads",
    "kv_n_heads",
    "num_multi_query_heads",
    "num_query_groups",
)


def query_heads(view: ConfigView, index: int | None = None) -> int | None:
    """Return the query heads of a layer (without ``index``: the largest), or None where none are stated."""
    found = view.find("num_attention_heads_per_layer") or view.find("num_attention_heads")
    if found is None:
        section = attention_section(view)
        found = section.find("num_attention_heads") if section else None
    if found is None:
        return None
    value = found[1]
    if isinstance(value, list | tuple):
        heads = view.checked_counts(value, found[0], high=MAX_HEADS)
        if index is None:
            return max(heads, default=None)
        if index >= len(heads):
            raise InvalidFieldError(
                f"{found[0]} has {len(heads)} entries, layer {index} has none", field=found[0]
            )
        return heads[index]
    return as_count(value, found[0], low=1, high=MAX_HEADS)


def attention_section(view: ConfigView) -> ConfigView | None:
    """Return the nested object that some families keep their attention geometry in, or None."""
    for name in ("attn_config", "attn"):
        if isinstance(view.values.get(name), Mapping):
            return view.section(name)
    return None


_MPT_MULTI_QUERY = "multiquery_attention"


def _per_layer(view: ConfigView, name: str, index: int, count: int, high: int) -> int | None:
    """Return a whole number that may also be a list with one entry a layer."""
    found = view.find(name)
    if found is None:
        return None
    where, value = found
    if isinstance(value, list | tuple):
        if len(value) < count:
            raise InvalidFieldError(f"{where} has {len(value)} entries for {count} layers", field=where)
        return as_count(value[index], f"{where}[{index}]", low=0, high=high)
    return as_count(value, where, low=1, high=high)


def kv_heads(view: ConfigView, row: ModelTypeRow, index: int, count: int) -> int:
    """Return the KV heads of a layer, in every spelling.

    Raises:
        MissingFieldError: absent, and the model type does not define what that means.
    """
    grouped = _heads_in_group(view, index)
    if grouped is not None:
        return grouped
    if view.has("num_key_value_heads"):
        return _per_layer(view, "num_key_value_heads", index, count, MAX_HEADS) or 0
    heads = query_heads(view, index)
    single = _multi_query(view, heads)
    if single is not None:
        return single
    for name in _KV_HEAD_NAMES:
        if view.has(name):
            return _per_layer(view, name, index, count, MAX_HEADS) or 0
    return _nested_kv_heads(view) or _default_kv_heads(view, row, heads)


def _nested_kv_heads(view: ConfigView) -> int | None:
    """Return the KV heads that a nested attention object states (MPT, DBRX, flash-linear-attention)."""
    section = attention_section(view)
    if section is None:
        return None
    if section.text("attn_type") == _MPT_MULTI_QUERY:
        return 1
    name = next((n for n in _KV_HEAD_NAMES if section.has(n)), None)
    return None if name is None else section.count(name, high=MAX_HEADS)


def _default_kv_heads(view: ConfigView, row: ModelTypeRow, heads: int | None) -> int:
    """Return what an omitted or null field means: the class default, or one KV head a query head."""
    default = view.optional_count("num_key_value_heads", high=MAX_HEADS)
    if default is not None:
        return default
    if heads is not None and (row.multi_head_default or view.mentions("num_key_value_heads")):
        return heads
    raise view.missing("num_key_value_heads", f"{row.model_type or 'this model type'} needs to size K and V")


def _multi_query(view: ConfigView, heads: int | None) -> int | None:
    """Falcon, StarCoder and ChatGLM say it with switches."""
    if view.has("multi_query_attention"):
        if view.flag("multi_query_attention", default=False):
            return view.count("multi_query_group_num", high=MAX_HEADS)
        return heads
    if view.has("multi_query_group_num"):
        raise view.missing("multi_query_attention", "switches multi_query_group_num on")
    if view.has("new_decoder_architecture") and view.flag("new_decoder_architecture", default=False):
        return view.count("num_kv_heads", high=MAX_HEADS, because="this Falcon architecture needs")
    if view.find("multi_query") is not None:
        if view.has("num_kv_heads") and not view.mentions("new_decoder_architecture"):
            raise view.missing("new_decoder_architecture", "says whether num_kv_heads or multi_query holds")
        return 1 if view.flag("multi_query", default=False) else heads
    return None


def _heads_in_group(view: ConfigView, index: int) -> int | None:
    """Nemotron-NAS: query heads over the heads of a group, block by block."""
    blocks = view.items("block_configs") if view.has("block_configs") else None
    if blocks is None:
        return None
    where = f"{view.path}block_configs[{index}].attention.n_heads_in_group"
    block = blocks[index]
    attention = block.get("attention", {}) if isinstance(block, Mapping) else {}
    group = as_count(attention.get("n_heads_in_group"), where, low=1, high=MAX_HEADS)
    heads = view.count("num_attention_heads", high=MAX_HEADS)
    if heads % group:
        raise InvalidFieldError(f"{where} is {group}, which does not divide the {heads} heads", field=where)
    return heads // group


def head_width(view: ConfigView, row: ModelTypeRow, index: int, count: int) -> int:
    """Return head_dim: stated, or hidden_size over heads where the model type defines it so.

    Raises:
        MissingFieldError: absent and not defined by other fields.
        InvalidFieldError: hidden_size is no multiple of the heads.
    """
    stated = _per_layer(view, "head_dim", index, count, MAX_WIDTH)
    if stated is not None:
        return stated
    heads = query_heads(view, index)
    hidden = view.optional_count("hidden_size")
    if heads is None or hidden is None:
        raise view.missing(
            "head_dim" if hidden is None else "num_attention_heads", "gives the width of a head"
        )
    width, rest = divmod(hidden, heads)
    declared = class_defaults(row.model_type).get("head_dim")
    if rest or (row.head_dim_stated and width != declared and not _is_class_dump(view)):
        raise view.missing(
            "head_dim", f"is not hidden_size / num_attention_heads ({hidden} / {heads}) for this model type"
        )
    return width


def _is_class_dump(view: ConfigView) -> bool:
    """Whether the file is a full dump of a config object: what it lacks, the class computes."""
    return "chunk_size_feed_forward" in view.values and "return_dict" in view.values


def varies_by_layer(view: ConfigView) -> bool:
    """Whether layers of one kind may differ: geometry in lists, blocks or per-layer overrides."""
    if any(name in view.values for name in ("per_layer_config", "block_configs")):
        return True
    names = (
        "num_attention_heads_per_layer",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        *_KV_HEAD_NAMES,
    )
    found = (view.find(name) for name in names)
    return any(entry is not None and isinstance(entry[1], list | tuple) for entry in found)


def per_layer_table(view: ConfigView, count: int) -> Mapping[str, object] | None:
    """Return ``per_layer_config`` (Transformers v5), or None where it is absent or left from another model.

    A table that names layers beyond the model's, or stands beside lists of the same geometry, is stale.
    """
    table = view.values.get("per_layer_config")
    if not isinstance(table, Mapping):
        return None
    listed = any(isinstance(view.values.get(name), list) for name in ("head_dim", "num_key_value_heads"))
    beyond = any(str(key).isdigit() and len(str(key)) < 9 and int(str(key)) >= count for key in table)
    return None if listed or beyond else table


def overlaid(view: ConfigView, index: int, count: int) -> ConfigView:
    """Apply ``per_layer_config`` to one layer."""
    table = per_layer_table(view, count) or {}
    for key in (str(index), f"{index:02d}", f"{index:03d}"):
        entry = table.get(key)
        if isinstance(entry, Mapping):
            view.log.used[f"{view.path}per_layer_config.{key}"] = dict(entry)
            return ConfigView({**view.values, **entry}, view.log, view.path, view.outer, view.class_defaults)
    return view


def _kind_specific(view: ConfigView, word: str, name: str, count: int) -> int | None:
    """Return a geometry field of one kind of layer (``swa_*``, ``global_*``), or None."""
    prefixed = {
        ("sliding", "heads"): ("swa_num_key_value_heads", "swa_num_kv_heads"),
        ("sliding", "head_dim"): ("swa_head_dim",),
        ("sliding", "v_head_dim"): ("swa_v_head_dim",),
        ("full", "heads"): ("num_global_key_value_heads", "global_num_key_value_heads"),
        ("full", "head_dim"): ("global_head_dim",),
        ("full", "v_head_dim"): ("global_v_head_dim",),
    }.get((word, name), ())
    if word == "full" and name == "heads" and _lost_global_heads(view):
        raise view.missing("num_global_key_value_heads", "gives the KV heads of full layers")
    if per_layer_table(view, count) is not None:
        return None  # re-saved by Transformers v5: the geometry of each kind was moved there
    if isinstance(view.values.get("num_key_value_heads" if name == "heads" else "head_dim"), list):
        return None  # one entry a layer says it already
    if word == "full" and name == "heads" and not view.flag("attention_k_eq_v", default=True):
        return None  # Gemma 4: heads of their own only where K and V are one projection
    for field in prefixed:
        value = view.optional_count(field)
        if value is not None:
            return value
    return None


def _lost_global_heads(view: ConfigView) -> bool:
    """Gemma 4 with one projection for K and V has KV heads of its own on full layers."""
    if view.find("attention_k_eq_v") is None or not view.flag("attention_k_eq_v", default=False):
        return False
    return not any(view.mentions(name) for name in ("num_global_key_value_heads", "per_layer_config"))


def attention_geometry(
    view: ConfigView, row: ModelTypeRow, index: int, count: int, word: str
) -> tuple[int, int, int]:
    """Return (KV heads, K width, V width) of a layer of one kind; no widths where it has no heads."""
    heads = _kind_specific(view, word, "heads", count)
    if heads is None:
        heads = kv_heads(view, row, index, count) * (row.sliding_heads_multiple if word == "sliding" else 1)
    if heads == 0:
        return 0, 0, 0
    key_width = _kind_specific(view, word, "head_dim", count) or head_width(view, row, index, count)
    stated = view.optional_count("v_head_dim", low=0)  # 0 beside plain attention: DeepSeek-OCR
    value_width = _kind_specific(view, word, "v_head_dim", count) or stated or key_width
    return heads, key_width, value_width


def attention_cache(
    base: ConfigView, row: ModelTypeRow, index: int, count: int, word: str, window: int | None
) -> tuple[LayerCache, ...]:
    """Return the cache of one attention layer; nothing where the layer has no KV heads."""
    view = overlaid(base, index, count)
    heads, key_width, value_width = attention_geometry(view, row, index, count, word)
    if heads == 0:
        return (LayerCache(index, LayerKind.NONE, Mechanism.NONE),)
    _check_heads(view, heads, index, word)
    axis = Axis.IMAGE if word == "cross" else Axis.DECODER
    counted = Counted(axis, to_tokens=window)
    return (
        LayerCache(
            index,
            _KIND[word],
            Mechanism.CROSS_ATTENTION if word == "cross" else Mechanism.ATTENTION,
            key_value_streams(heads, key_width, value_width, counted),
            window_tokens=window,
            sources=_sources(view, word),
        ),
    )


def _check_heads(view: ConfigView, heads: int, index: int, word: str) -> None:
    queries = query_heads(view, index)
    if word == "sliding":
        queries = view.optional_count("swa_num_attention_heads", high=MAX_HEADS) or queries
    if queries is not None and (queries % heads or heads > queries):
        raise InvalidFieldError(
            f"{heads} KV heads do not divide the {queries} query heads of num_attention_heads",
            hint="check num_attention_heads and num_key_value_heads",
            field=view.path + "num_key_value_heads",
        )


def _sources(view: ConfigView, word: str) -> tuple[str, ...]:
    specific = (
        ("swa_num_key_value_heads", "swa_head_dim", "swa_v_head_dim", "sliding_window")
        if word == "sliding"
        else (
            ("num_global_key_value_heads", "global_head_dim") if word == "full" else ("attention_chunk_size",)
        )
    )
    names = ("num_key_value_heads", *_KV_HEAD_NAMES, "multi_query", "multi_query_group_num",
             "num_attention_heads", "head_dim", "v_head_dim", "hidden_size", *specific)  # fmt: skip
    return view.sources(*names)


def window_of(view: ConfigView, word: str, window: int | None) -> int | None:
    """Return the window or chunk of a layer kind.

    Raises:
        MissingFieldError: the layer slides and no window is stated.
    """
    if word == "sliding":
        return window or _listed_window(view)
    if word == "chunked":
        return view.count("attention_chunk_size", high=MAX_WINDOW, because="chunked layers need")
    return None


def _listed_window(view: ConfigView) -> int:
    """Return the window of layers that a list says slide, where no switch is needed to turn it on."""
    if view.mentions("use_sliding_window") and not view.flag("use_sliding_window", default=True):
        where = view.path + "use_sliding_window"
        raise InvalidFieldError(f"{where} is false, but layers are listed as sliding", field=where)
    return view.count("sliding_window", high=MAX_WINDOW, because="sliding layers need")
