"""Readers: words of a model family into what each layer keeps, in two dialects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvgauge.architecture import ModelArchitecture


def is_gguf(config: Mapping[str, object]) -> bool:
    """Whether a mapping is GGUF metadata rather than a config: ``general.architecture`` tells."""
    return "general.architecture" in config


def read_architecture(
    config: Mapping[str, object],
    quantization: Mapping[str, object] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> ModelArchitecture:
    """Read a config or GGUF metadata.

    Args:
        config: the parsed JSON object, or GGUF keys and values.
        quantization: ``hf_quant_config.json`` beside a config.
        shapes: tensor name -> shape, of a GGUF whose tensor table is at hand.

    Raises:
        UnknownArchitectureError, MissingFieldError, InvalidFieldError: it can't be understood; says why.
    """
    if is_gguf(config):
        from kvgauge.readers.gguf import read_metadata  # noqa: PLC0415 - one dialect is loaded

        return read_metadata(config, shapes)
    from kvgauge.readers.hf import read_config  # noqa: PLC0415

    return read_config(config, quantization)
