"""Which config fields the shapes of a model's tensors come from, for explanations."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.errors import KvgaugeError
from kvgauge.readers import is_gguf
from kvgauge.sources import RawModel


def fields_behind(raw: RawModel) -> Mapping[str, Mapping[str, object]]:
    """Return tensor name -> dotted path -> value; nothing for a GGUF or a config that can't be read."""
    if is_gguf(raw.config):
        return {}
    from kvgauge.readers.hf.weights import weight_fields  # noqa: PLC0415 - one dialect is loaded

    try:
        return weight_fields(raw.config)
    except KvgaugeError:
        return {}
