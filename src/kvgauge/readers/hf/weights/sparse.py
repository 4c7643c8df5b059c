"""Which layers of a stack have experts: every spelling of the pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.values import MAX_LAYERS, is_int


def has_experts(
    view: ConfigView, index: int, count: int, defaults: Mapping[str, object], *, patterned: bool = False
) -> bool:
    """Whether layer ``index`` of ``count`` is a mixture of experts, by the first field that says so.

    Args:
        view: the language model's level.
        index: of the layer.
        count: number of layers.
        defaults: the class's; they count where the file has no such field at all.
        patterned: layers without experts are usual in this design, so a pattern must be stated.

    Raises:
        MissingFieldError: nothing states the pattern of a patterned design.
    """
    if not any(_states(view, name) for name, _ in _PATTERNS):
        view = replace(view, class_defaults={**defaults, **view.class_defaults})
    for name, read in _PATTERNS:
        if view.find(name) is not None and (not patterned or _states(view, name)):
            return read(view, index, count)
    if patterned:
        raise view.missing("first_k_dense_replace", "says which layers are sparse")
    return True


def _states(view: ConfigView, name: str) -> bool:
    """Whether a field tells the layers apart; a step alone does not say from which layer on."""
    found = view.find(name)
    if name == "moe_layer_freq" and found is not None and is_int(found[1]):
        return False
    return found is not None or view.mentions(name)


def _listed(view: ConfigView, index: int, count: int) -> bool:
    words = view.items("mlp_layer_types") or ()
    return index < len(words) and words[index] in ("sparse", "moe", 1, True, "hash_moe")


def _numbers(name: str) -> Callable[[ConfigView, int, int], bool]:
    def read(view: ConfigView, index: int, count: int) -> bool:
        found = view.find(name)
        if found is not None and isinstance(found[1], str):
            return str(index) in [word.strip() for word in found[1][: 8 * MAX_LAYERS].split(",")]
        return index in (view.counts(name) or ())

    return read


def _first_dense(view: ConfigView, index: int, count: int) -> bool:
    dense = view.optional_count("first_k_dense_replace", low=0, high=MAX_LAYERS) or 0
    found = view.find("moe_layer_freq")
    if found is not None and isinstance(found[1], list | tuple):
        flags = view.counts("moe_layer_freq", high=1) or ()
        return index < len(flags) and bool(flags[index])
    step = view.optional_count("moe_layer_freq", high=MAX_LAYERS) or 1
    return index >= dense and index % step == 0


def _dense_layers(view: ConfigView, index: int, count: int) -> bool:
    return index >= (view.optional_count("num_dense_layers", low=0, high=MAX_LAYERS) or 0)


def _sparse_step(view: ConfigView, index: int, count: int) -> bool:
    step = view.optional_count("decoder_sparse_step", low=0, high=MAX_LAYERS) or 1
    return (index + 1) % step == 0 and index not in (view.counts("mlp_only_layers") or ())


def _interleave(view: ConfigView, index: int, count: int) -> bool:
    step = view.optional_count("interleave_moe_layer_step", low=0, high=MAX_LAYERS) or 0
    return bool(step) and (index + 1) % step == 0


def _period(view: ConfigView, index: int, count: int) -> bool:
    period = view.count("expert_layer_period", high=MAX_LAYERS)
    return index % period == (view.optional_count("expert_layer_offset", low=0, high=MAX_LAYERS) or 0)


def _ernie(view: ConfigView, index: int, count: int) -> bool:
    start = view.optional_count("moe_layer_start_index", low=0, high=MAX_LAYERS) or 0
    last = view.optional_count("moe_layer_end_index", low=0, high=MAX_LAYERS)
    step = view.optional_count("moe_layer_interval", high=MAX_LAYERS) or 1
    return (index + 1) % step == 0 and start <= index <= (count - 1 if last is None else last)


_PATTERNS: tuple[tuple[str, Callable[[ConfigView, int, int], bool]], ...] = (
    ("mlp_layer_types", _listed),
    ("moe_layers_enum", _numbers("moe_layers_enum")),
    ("moe_layers", _numbers("moe_layers")),
    ("first_k_dense_replace", _first_dense),
    ("moe_layer_freq", _first_dense),
    ("num_dense_layers", _dense_layers),
    ("decoder_sparse_step", _sparse_step),
    ("interleave_moe_layer_step", _interleave),
    ("expert_layer_period", _period),
    ("moe_layer_start_index", _ernie),
)
