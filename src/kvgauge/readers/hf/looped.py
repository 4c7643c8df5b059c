"""Hierarchical looped models (HRM-Text): two stacks run again and again, every pass with a cache of its own.

A high-level cycle runs ``L_cycles`` passes of the low stack and one of the high stack, ``H_cycles`` times.
Transformers rewrites ``num_hidden_layers`` to the layers of all passes and keeps the depth of a stack in
``num_layers_per_stack``; a file without that field states the depth of a stack.
"""

from __future__ import annotations

from kvgauge.layers import LayerCache
from kvgauge.readers.hf.config import MAX_LAYERS, ConfigView
from kvgauge.readers.hf.mixers.attention import attention_cache
from kvgauge.readers.hf.rows import ModelTypeRow

_DEFAULT_H_CYCLES, _DEFAULT_L_CYCLES = 2, 3  # of the HrmTextConfig class


def read_layers(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Return one full cache for every layer of every pass."""
    stated = view.count("num_hidden_layers", high=MAX_LAYERS, because="says how deep a stack is")
    rewritten = view.optional_count("num_layers_per_stack", high=MAX_LAYERS) is not None
    count = stated if rewritten else stated * _passes(view)
    layers = [cache for i in range(count) for cache in attention_cache(view, row, i, count, "full", None)]
    return tuple(layers), (), count


def _passes(view: ConfigView) -> int:
    high = view.optional_count("H_cycles", high=MAX_LAYERS) or _DEFAULT_H_CYCLES
    low = view.optional_count("L_cycles", high=MAX_LAYERS) or _DEFAULT_L_CYCLES
    return high * (low + 1)
