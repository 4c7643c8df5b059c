"""Models whose every layer is the same recurrence (Mamba, RWKV, GLA), whatever other fields say."""

from __future__ import annotations

from kvgauge.layers import LayerCache
from kvgauge.readers.hf.config import MAX_LAYERS, ConfigView
from kvgauge.readers.hf.mixers.state import state_cache
from kvgauge.readers.hf.rows import ModelTypeRow


def read_layers(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Return one state a layer."""
    count = view.count("num_hidden_layers", high=MAX_LAYERS, because="says how many layers keep a state")
    return tuple(state_cache(view, row, index) for index in range(count)), (), count
