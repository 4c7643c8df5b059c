"""Ranks that no engine takes: more stages than layers, tensor ranks that do not divide the query heads."""

from __future__ import annotations

from kvgauge.architecture import ModelArchitecture
from kvgauge.errors import FeatureUnsupportedError

#: Degrees that are named where one is refused.
_DEGREES = (1, 2, 4, 8, 16, 32, 64)


def refuse_ranks(
    architecture: ModelArchitecture, tensor: int, pipeline: int, over: int | None = None
) -> None:
    """Refuse ranks that do not spread a model.

    Args:
        tensor: as ``--tp`` says it.
        over: ranks that the heads are divided over, where these are fewer.

    Raises:
        FeatureUnsupportedError: stages exceed layers, or ranks don't divide the query heads.
    """
    if pipeline > max(1, architecture.num_layers):
        raise FeatureUnsupportedError(
            f"--pp {pipeline} exceeds the {architecture.num_layers} layers", field="pp"
        )
    heads = architecture.num_attention_heads
    if heads and heads % (tensor if over is None else over):
        fits = [degree for degree in _DEGREES if heads % degree == 0]
        raise FeatureUnsupportedError(
            f"--tp {tensor} does not divide the {heads} attention heads",
            hint=f"--tp {', '.join(map(str, fits))} can",
            field="tp",
        )


__all__ = ["refuse_ranks"]
