"""LongCat-Flash: every block holds two attention sublayers, each with a latent cache of its own.

``num_layers`` counts blocks. Transformers derives ``num_hidden_layers`` as twice that, so a file that it
saved states both; where ``num_hidden_layers`` stands alone it is the number of blocks.
"""

from __future__ import annotations

from kvgauge.layers import LayerCache
from kvgauge.readers.hf.config import MAX_LAYERS, ConfigView, as_count
from kvgauge.readers.hf.mixers.latent import is_latent, latent_cache
from kvgauge.readers.hf.patterns import layer_count
from kvgauge.readers.hf.rows import ModelTypeRow

_SUBLAYERS = 2


def read_layers(
    view: ConfigView, row: ModelTypeRow
) -> tuple[tuple[LayerCache, ...], tuple[LayerCache, ...], int]:
    """Return two latent caches a block.

    Raises:
        MissingFieldError: no block count, or no latent rank.
    """
    if not is_latent(view):
        raise view.missing("kv_lora_rank", "is the width of the latent rows")
    count = _blocks(view)
    layers = [cache for i in range(count) for _ in range(_SUBLAYERS) for cache in latent_cache(view, i, None)]
    return tuple(layers), (), count


def _blocks(view: ConfigView) -> int:
    stated = view.values.get("num_layers")
    if stated is not None:
        view.log.used[f"{view.path}num_layers"] = stated
        return as_count(stated, f"{view.path}num_layers", low=1, high=MAX_LAYERS)
    count = layer_count(view)
    if count is None:
        raise view.missing("num_layers", "says how many blocks of two sublayers there are")
    return count
