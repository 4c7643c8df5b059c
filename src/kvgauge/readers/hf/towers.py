"""What stands beside the language model in a config: facts that engines set defaults by, without a cache."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.values import MAX_LAYERS, MAX_WIDTH, is_int

#: Size of an image tower, in the names that engines read; Kimi's own spellings stand for the same.
_SIZES = (
    ("num_hidden_layers", ("num_hidden_layers", "vt_num_hidden_layers"), MAX_LAYERS),
    ("hidden_size", ("hidden_size", "vt_hidden_size"), MAX_WIDTH),
)


def tower_dimensions(config: Mapping[str, object], view: ConfigView) -> tuple[tuple[str, int], ...]:
    """Return which other parts a config has, as 1, and the size of its image tower.

    ``text_config``: the language model is described inside of a larger one. ``vision_config.hidden_size`` and
    the like only where the file states them under a name that is read. Other spellings (``depth``) are not.
    ``use_bidirectional_attention``: tokens of an image attend both ways.
    """
    found: list[tuple[str, int]] = []
    if view.path:
        found.append(("text_config", 1))
    for name in ("vision_config", "audio_config"):
        if isinstance(config.get(name), Mapping):
            found.append((name, 1))
    vision = config.get("vision_config")
    if isinstance(vision, Mapping):
        for name, spellings, high in _SIZES:
            values = [vision[s] for s in spellings if is_int(vision.get(s)) and 0 < vision[s] <= high]
            found.extend((f"vision_config.{name}", value) for value in values[:1])
    if view.values.get("use_bidirectional_attention") == "vision":
        found.append(("use_bidirectional_attention", 1))
    if view.values.get("is_hybrid_swa") is True:
        found.append(("is_hybrid_swa", 1))
    return tuple(found)
