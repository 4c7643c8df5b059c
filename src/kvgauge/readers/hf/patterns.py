"""Which layer does what: every spelling of a layer pattern becomes one word a layer.

``PATTERN_FIELDS`` is tried in order; the first field that is present decides. What lives in model code
and not in the file (interleaves, periods) comes from the model type's row in ``model_types.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from kvgauge.errors import InvalidFieldError, UnknownArchitectureError
from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.hf.model_code import words_from_code
from kvgauge.readers.hf.rows import ModelTypeRow
from kvgauge.readers.hf.words import LayerPattern, cut, periodic, word_of
from kvgauge.readers.values import MAX_LAYERS, as_count

_SMALLEST_RATIO = 4
_LARGEST_OVERLAPPING_RATIO = 16


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
        if view.find(name) is not None:
            words = read(view, name, count)
            if words is not None:
                return cut(words, count, (view.sources(name) or (view.path + name,))[0])
    if count is None:
        raise view.missing("num_hidden_layers", "says how many layers keep a cache")
    words, source = words_from_code(view, row, count)
    return LayerPattern(words, (), source)


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
    if count is None:
        raise view.missing(
            "num_hidden_layers", "tells the layers from the prediction layers at the list's end"
        )
    if view.has("kv_source_layer_ids") or view.has("index_source_layer_ids"):
        raise UnknownArchitectureError(
            "compressed caches that layers share (kv_source_layer_ids) are of a design that is not known",
            hint="kvgauge knows DeepSeek-V4, whose layers keep caches of their own",
            field=view.path + "kv_source_layer_ids",
        )
    return tuple(_ratio_word(ratio, view.path + name) for ratio in view.counts(name) or ())


def _ratio_word(ratio: int, where: str) -> str:
    """Ratio 0 keeps its window only; small ratios overlap and are indexed (CSA); large ones are not (HCA)."""
    if ratio == 0:
        return "sliding"
    if ratio < _SMALLEST_RATIO:
        raise UnknownArchitectureError(
            f"{where} holds a ratio of {ratio}, of a design that is not known",
            hint="known ratios: 0, 4, 128",
            field=where,
        )
    return "csa" if ratio <= _LARGEST_OVERLAPPING_RATIO else "hca"


def _linear_attn_config(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    """1-based lists of Kimi-Linear and Kimi-K3."""
    section = cast(ConfigView, view.section(name))
    listed = section.counts("kda_layers"), section.counts("full_attn_layers")
    if count is None or (listed == (None, None) and view.has("layer_types")):
        return None
    if listed == (None, None):
        raise section.missing("kda_layers", "says which layers keep a state")
    every = frozenset(range(1, count + 1))
    state = every - frozenset(listed[1] or ()) if listed[0] is None else frozenset(listed[0])
    full = every - state if listed[1] is None else frozenset(listed[1])
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
    return None if count is None else periodic(count, interval, (interval - 1,), "full", "state")


def _attn_period(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    if count is None:
        return None
    period = view.count(name, high=MAX_LAYERS)
    because = "says where in each period attention stands"
    offset = view.count("attn_layer_offset", low=0, high=period - 1, because=because)
    return periodic(count, period, (offset,), "full", "state")


def _layer_group_size(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    size = view.count(name, high=MAX_LAYERS)
    if count is None or size <= 1:
        return None
    # The last layer of each group is softmax; in Ling-linear, so is what is left of a broken group.
    whole = count // size * size if view.text("layer_group_rest") == "full" else count
    return tuple("full" if (i + 1) % size == 0 or i >= whole else "state" for i in range(count))


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


def _attention_types(view: ConfigView, name: str, count: int | None) -> tuple[str, ...]:
    """GPT-Neo: ``[[["global", "local"], 12]]``, each list repeated."""
    where = view.path + name
    words: list[str] = []
    for entry in view.items(name) or ():
        if not isinstance(entry, list | tuple) or len(entry) != 2 or not isinstance(entry[0], list | tuple):
            raise InvalidFieldError(f"{where} must hold pairs of a list and a number", field=where)
        times = as_count(entry[1], where, low=0, high=MAX_LAYERS)
        if len(words) + times * len(entry[0]) > MAX_LAYERS:
            raise InvalidFieldError(f"{where} names more than {MAX_LAYERS} layers", field=where)
        words += [word_of(word, where) for word in entry[0]] * times
    return tuple(words)


def _attn_section(view: ConfigView, name: str, count: int | None) -> tuple[str, ...] | None:
    """flash-linear-attention: ``attn.layers`` lists the attention layers between recurrent ones."""
    if not isinstance(view.values.get(name), Mapping):
        return None
    section = cast(ConfigView, view.section(name))
    layers = section.counts("layers")
    if count is None or (layers is None and not view.has("state_size")):
        return None
    if layers is None:
        raise section.missing("layers", "says which layers are attention")
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
    ("attention_types", _attention_types),
    ("attn", _attn_section),
)
