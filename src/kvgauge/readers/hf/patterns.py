"""Which layer does what: every spelling of a layer pattern becomes one word a layer.

``PATTERN_FIELDS`` is tried in order; the first field that is present decides. What lives in model code
and not in the file (interleaves, periods) comes from the model type's row in ``model_types.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from kvgauge.errors import InvalidFieldError, UnknownArchitectureError
from kvgauge.readers.hf.config import MAX_LAYERS, MAX_WINDOW, ConfigView, as_count, is_int, short
from kvgauge.readers.hf.rows import LayerCycle, ModelTypeRow

#: Words of configs -> what the layer keeps. "state" is any recurrence; which one, the geometry fields say.
WORDS = {
    "full_attention": "full", "attention": "full", "attn": "full", "full": "full", "global": "full",
    "global_attention": "full", "softmax": "full", "self_attention": "full", "g": "full", "*": "full",
    "sliding_attention": "sliding", "window_attention": "sliding", "local_attention": "sliding",
    "sliding": "sliding", "local": "sliding", "swa": "sliding", "l": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "state", "linear": "state", "mamba": "state", "mamba2": "state", "recurrent": "state",
    "jet": "state", "gdn": "state", "kda": "state", "lightning": "state", "m": "state", "ssm": "state",
    "rwkv": "state", "gated_delta_net": "state",
    "conv": "conv", "short_conv": "conv",
    "mlp": "none", "moe": "none", "-": "none", "e": "none", "no_op": "none", "identity": "none",
    "hybrid": "full+state", "hybrid_sliding": "sliding+state",
    "indexed_attention": "full", "deepseek_sparse_attention": "full", "minimax_m3_sparse": "full",
    "compressed_sparse_attention": "csa", "heavily_compressed_attention": "hca",
    "cross_attention": "cross",
}  # fmt: skip

KINDS = frozenset(WORDS.values())


@dataclass(frozen=True, slots=True)
class LayerPattern:
    """One word a layer, the words of the multi-token-prediction tail, and the field that said so."""

    words: tuple[str, ...]
    tail: tuple[str, ...] = ()
    source: str = ""


def word_of(value: object, where: str) -> str:
    """Return the kind that a config word stands for.

    Raises:
        UnknownArchitectureError: the word is not known.
    """
    word = WORDS.get(value.lower()) if isinstance(value, str) else None
    if word is None:
        raise UnknownArchitectureError(
            f"{where} names a layer type that is not known: {short(value)}",
            hint="known words: " + ", ".join(sorted(w for w in WORDS if len(w) > 1)),
            field=where,
        )
    return word


def layer_count(view: ConfigView) -> int | None:
    """Return ``num_hidden_layers`` in any spelling, or None."""
    return view.optional_count("num_hidden_layers", high=MAX_LAYERS)


def read_pattern(view: ConfigView, row: ModelTypeRow) -> LayerPattern:
    """Return the layer pattern of a decoder.

    Raises:
        MissingFieldError: neither a list nor a layer count.
        InvalidFieldError: a list shorter than the layer count.
    """
    count = layer_count(view)
    for name, read in PATTERN_FIELDS:
        if view.has(name):
            words = read(view, name, count)
            if words is not None:
                return _cut(words, count, view.sources(name)[0])
    if count is None:
        raise view.missing("num_hidden_layers", "says how many layers keep a cache")
    words, source = _from_code(view, row, count)
    return LayerPattern(words, (), source)


def _cut(words: Sequence[str], count: int | None, source: str) -> LayerPattern:
    """Cut a list at the layer count; what is left belongs to multi-token prediction."""
    if count is None:
        return LayerPattern(tuple(words), (), source)
    if len(words) < count:
        raise InvalidFieldError(
            f"{source} describes {len(words)} layers, num_hidden_layers says {count}",
            hint="make the list as long as the layer count",
            field=source,
        )
    return LayerPattern(tuple(words[:count]), tuple(words[count:]), source)


# -- one function a spelling ----------------------------------------------------------------------


def _words_list(view: ConfigView, name: str, count: int | None) -> tuple[str, ...]:
    return tuple(word_of(v, f"{view.path}{name}[{i}]") for i, v in enumerate(view.items(name) or ()))


def _words_cycled(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    words = _words_list(view, name, count)
    if count is None or not words:
        return words or None
    return tuple(words[i % len(words)] for i in range(count)) if len(words) < count else words


def _hybrid_override(view: ConfigView, name: str, count: int | None) -> tuple[str, ...]:
    text = view.text(name) or ""
    if len(text) > MAX_LAYERS:
        raise InvalidFieldError(f"{view.path}{name} has {len(text)} letters", field=view.path + name)
    letters = text.split("|")[0] if "/" not in text else text.replace("/", "")
    return tuple(word_of(letter, f"{view.path}{name}[{i}]") for i, letter in enumerate(letters))


def _binary(zero: str, one: str) -> Callable[[ConfigView, str, int | None], tuple[str, ...]]:
    def read(view: ConfigView, name: str, count: int | None) -> tuple[str, ...]:
        return tuple(one if v else zero for v in view.counts(name, high=1) or ())

    return read


def _compress_ratios(view: ConfigView, name: str, count: int | None) -> tuple[str, ...]:
    return tuple(_ratio_word(ratio) for ratio in view.counts(name) or ())


def _ratio_word(ratio: int) -> str:
    """Ratio 0 keeps its window only; small ratios overlap and are indexed (CSA); large ones are not (HCA)."""
    if ratio == 0:
        return "sliding"
    return "csa" if ratio <= 16 else "hca"


def _linear_attn_config(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    """1-based lists of Kimi-Linear and Kimi-K3."""
    section = cast(ConfigView, view.section(name))
    listed = section.counts("kda_layers"), section.counts("full_attn_layers")
    if listed[0] is None or listed[1] is None or count is None:
        return None
    state, full = frozenset(listed[0]), frozenset(listed[1])
    words: list[str] = []
    for number in range(1, count + 1):
        if (number in state) == (number in full):
            raise InvalidFieldError(
                f"{section.path}kda_layers and full_attn_layers do not say which one layer {number} is",
                field=section.path + "kda_layers",
            )
        words.append("state" if number in state else "full")
    return tuple(words)


def _chosen(chosen: str, other: str) -> Callable[[ConfigView, str, int | None], tuple[str, ...] | None]:
    def read(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
        indices = view.counts(name)
        if indices is None or count is None:
            return None
        for index in indices:
            if index >= count:
                raise InvalidFieldError(
                    f"{view.path}{name} names layer {index} of {count}", field=view.path + name
                )
        members = frozenset(indices)
        return tuple(chosen if i in members else other for i in range(count))

    return read


def _full_interval(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    interval = view.count(name, high=MAX_LAYERS)
    return None if count is None else _periodic(count, interval, (interval - 1,), "full", "state")


def _attn_period(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    if count is None:
        return None
    period = view.count(name, high=MAX_LAYERS)
    offset_name = "attn_layer_offset"
    offset = view.optional_count(offset_name, low=0, high=MAX_LAYERS)
    if offset is None:
        raise view.missing(offset_name, "says where in each period attention stands")
    return _periodic(count, period, (offset % period,), "full", "state")


def _layer_group_size(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    size = view.count(name, high=MAX_LAYERS)
    if count is None or size <= 1:
        return None
    # Ling/Ring 2.5: the last layer of each group is softmax, so is what is left of a broken group.
    whole = count // size * size
    return tuple("full" if (i + 1) % size == 0 or i >= whole else "state" for i in range(count))


def _periodic(count: int, period: int, chosen: Sequence[int], hit: str, miss: str) -> tuple[str, ...]:
    return tuple(hit if i % period in chosen else miss for i in range(count))


def _block_configs(view: ConfigView, name: str, count: int | None) -> tuple[str, ...]:
    """Nemotron-NAS: blocks whose attention was removed or replaced keep nothing."""
    words: list[str] = []
    for index, block in enumerate(view.items(name) or ()):
        where = f"{view.path}{name}[{index}].attention"
        attention = block.get("attention") if isinstance(block, Mapping) else None
        if not isinstance(attention, Mapping):
            raise InvalidFieldError(f"{where} must be an object", field=where)
        words.append("none" if attention.get("no_op") or attention.get("replace_with_linear") else "full")
    return tuple(words)


def _attn_section(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    """flash-linear-attention: ``attn.layers`` lists the attention layers between recurrent ones."""
    if not isinstance(view.values.get(name), Mapping):
        return None
    section = cast(ConfigView, view.section(name))
    layers = section.counts("layers")
    if layers is None or count is None:
        return None
    word = "sliding" if section.has("sliding_window") else "full"
    members = frozenset(layers)
    return tuple(word if i in members else "state" for i in range(count))


PATTERN_FIELDS: tuple[tuple[str, Callable[[ConfigView, str, int | None], tuple[str, ...] | None]], ...] = (
    ("block_configs", _block_configs),
    ("layer_types", _words_list),
    ("layers_block_type", _words_list),
    ("hybrid_override_pattern", _hybrid_override),
    ("block_types", _words_cycled),
    ("_block_types", _words_cycled),
    ("attention_layers", _words_list),
    ("attn_type_list", _binary("state", "full")),
    ("hybrid_layer_pattern", _binary("full", "sliding")),
    ("compress_ratios", _compress_ratios),
    ("linear_attn_config", _linear_attn_config),
    ("full_attn_idxs", _chosen("full", "conv")),
    ("attn_layer_indices", _chosen("full", "state")),
    ("full_attention_interval", _full_interval),
    ("attn_layer_period", _attn_period),
    ("layer_group_size", _layer_group_size),
    ("cross_attention_layers", _chosen("cross", "full")),
    ("attn", _attn_section),
)


# -- what lives in model code ---------------------------------------------------------------------


def _from_code(view: ConfigView, row: ModelTypeRow, count: int) -> tuple[tuple[str, ...], str]:
    """Windows, chunks and default patterns that no list in the file spells out."""
    if view.has("attention_chunk_size") and (
        row.chunked or view.mentions("no_rope_layers") or view.has("no_rope_layer_interval")
    ):
        return _chunked(view, count), "attention_chunk_size"
    window = window_tokens(view, row)
    if window is not None:
        for name in ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"):
            if view.has(name):
                return window_pattern(view, name, count), view.sources(name)[0]
    if row.layers is not None:
        return _cycled(row.layers, count, windows=window is not None), f"model code of {row.model_type}"
    if window is None:
        return (row.layer_word or "full",) * count, ""
    if view.has("use_sliding_window"):
        return _switched(view, count), view.path + "use_sliding_window"
    if not row.known:
        raise view.missing("layer_types", f"says which layers slide (sliding_window is {window})")
    return ("sliding",) * count, view.path + "sliding_window"


def _cycled(rule: LayerCycle, count: int, *, windows: bool) -> tuple[str, ...]:
    words = [rule.words[i % len(rule.words)] for i in range(count)]
    if not windows:
        words = ["full" if word == "sliding" else word for word in words]
    for index in rule.also_full:
        if -count <= index < count:
            words[index] = "full"
    return tuple(words)


def _chunked(view: ConfigView, count: int) -> tuple[str, ...]:
    """Llama 4: layers with rope are chunked, layers without are full; an empty list means the default."""
    rope = view.counts("no_rope_layers", high=1)
    if rope:
        return _cut(tuple("chunked" if v else "full" for v in rope), count, "no_rope_layers").words
    interval = view.optional_count("no_rope_layer_interval", high=MAX_LAYERS) or 4
    return _periodic(count, interval, (interval - 1,), "full", "chunked")


def _switched(view: ConfigView, count: int) -> tuple[str, ...]:
    """Qwen2 and Qwen3: layers from max_window_layers on slide."""
    start = view.optional_count("max_window_layers", low=0, high=MAX_LAYERS)
    if start is None:
        raise view.missing("max_window_layers", "says from which layer on windows slide")
    return tuple("sliding" if i >= start else "full" for i in range(count))


def window_pattern(view: ConfigView, name: str, count: int) -> tuple[str, ...]:
    """Read a window pattern given as a period, as letters ("LLLG") or as a list.

    A period of N: every Nth layer is full. Letters and lists are repeated as needed; in lists of
    numbers or truth values a true entry slides.
    """
    found = view.find(name)
    where, value = found if found else (name, None)
    if isinstance(value, str) and value and len(value) <= MAX_LAYERS:
        letters = [word_of(letter, where) for letter in value]
        return tuple(letters[i % len(letters)] for i in range(count))
    if isinstance(value, list | tuple) and value:
        entries = [_pattern_entry(v, f"{where}[{i}]") for i, v in enumerate(value[:MAX_LAYERS])]
        return tuple(entries[i % len(entries)] for i in range(count))
    period = as_count(value, where, low=0, high=MAX_LAYERS)
    if period == 0:
        return ("full",) * count
    return _periodic(count, period, (period - 1,), "full", "sliding")


def _pattern_entry(value: object, where: str) -> str:
    if isinstance(value, bool) or is_int(value):
        return "sliding" if value else "full"
    return word_of(value, where)


def window_tokens(view: ConfigView, row: ModelTypeRow) -> int | None:
    """Return the window in force, or None where windows are off.

    A number is a decoy where its switch is off (Qwen) or the model's code never reads it.
    """
    if row.window_unused or not view.flag("use_sliding_window", default=row.switch_default):
        return None
    found = view.find("sliding_window")
    if found is None or found[1] in (-1, 0, False):
        return None
    view.find("sliding_window_size")  # looked up to be recorded: engines may read it otherwise
    return as_count(found[1], found[0], low=1, high=MAX_WINDOW)
