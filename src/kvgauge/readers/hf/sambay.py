"""SambaY (Phi-4-mini-flash): Mamba-1 and windows below, one full layer in the middle that the rest reads.

Source: arXiv 2507.06607. Even layers are Mamba-1 up to the middle; odd layers below it slide; layer
L/2 + 1 keeps the one full cache; odd layers above it read that cache, even ones above it keep nothing.
"""

from __future__ import annotations

from kvgauge.errors import InvalidFieldError
from kvgauge.layers import LayerCache, LayerKind, Mechanism
from kvgauge.readers.hf.config import MAX_LAYERS, ConfigView, as_count
from kvgauge.readers.hf.mixers.attention import attention_cache
from kvgauge.readers.hf.mixers.state import state_cache
from kvgauge.readers.hf.model_code import window_tokens
from kvgauge.readers.hf.rows import ModelTypeRow


def read_layers(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Return the caches of a SambaY decoder-hybrid-decoder."""
    count = view.count("num_hidden_layers", high=MAX_LAYERS, because="says how deep the model is")
    if (view.optional_count("mb_per_layer", high=MAX_LAYERS) or 2) != 2:
        where = view.path + "mb_per_layer"
        raise InvalidFieldError(f"{where} must be 2: every other layer is Mamba in this design", field=where)
    middle = count // 2 + 1
    layers: list[LayerCache] = []
    for index in range(count):
        if index % 2 == 0 and index < middle:
            layers.append(state_cache(view, row, index))
        elif index % 2 == 0:
            layers.append(LayerCache(index, LayerKind.NONE, Mechanism.NONE))
        elif index < middle:
            window = _window(view, row, index)
            layers.extend(attention_cache(view, row, index, count, "sliding", window))
        elif index == middle:
            layers.extend(attention_cache(view, row, index, count, "full", None))
        else:
            layers.append(LayerCache(index, LayerKind.SHARED, Mechanism.SHARED, shares_cache_of=middle))
    return tuple(layers), (), count


def _window(view: ConfigView, row: ModelTypeRow, index: int) -> int:
    found = view.find("sliding_window")
    if found is not None and isinstance(found[1], list):
        if index >= len(found[1]):
            raise InvalidFieldError(f"{found[0]} does not reach layer {index}", field=found[0])
        return as_count(found[1][index], f"{found[0]}[{index}]", low=1, high=1 << 50)
    window = window_tokens(view, row)
    if window is None:
        raise view.missing("sliding_window", "layers below the middle slide")
    return window
