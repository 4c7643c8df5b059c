"""``compare``: the same load on several models, and where the ratio to the first one comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from typing import Any

from kvgauge.design import Axes, Design, SequenceParts, sequence_parts
from kvgauge.errors import InvalidRequestError, KvgaugeError
from kvgauge.models import Model, ModelLike
from kvgauge.size_result import SizeResult
from kvgauge.sizing import size
from kvgauge.units import json_number
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class Unfound:
    """A model that was looked for before the comparison, and not found or not understood."""

    name: str
    error: KvgaugeError


@dataclass(frozen=True)
class ComparisonRow:
    """One model: its size, or the error that kept it from being sized.

    Attributes:
        ratio: all bytes (cache and state, all sequences) over the first model's.
        growing_ratio: one sequence's growing cache over the first model's; what the article compares.
        axes_to_first: the growing ratio split along the axes of ``kvgauge.design``: the five factors
            multiply to ``growing_ratio``, exactly. None where either model has no growing cache.
        rank: place by growing cache, 1 the smallest, counted over rows without error.
        is_first: whether it is the row that the others are compared to.
    """

    name: str
    result: SizeResult | None = None
    error: KvgaugeError | None = None
    ratio: Fraction | None = None
    growing_ratio: Fraction | None = None
    axes_to_first: Axes | None = None
    rank: int | None = None
    is_first: bool = False

    @property
    def growing_change(self) -> Fraction | None:
        """The growing cache against the first model's, as a change: -9/20 is 45 % less."""
        return None if self.growing_ratio is None else self.growing_ratio - 1

    @cached_property
    def parts(self) -> SequenceParts | None:
        """One sequence's growing cache, state and cross-attention."""
        return sequence_parts(self.result.cache) if self.result else None

    @cached_property
    def axes(self) -> Axes | None:
        """The factors of the growing cache against plain multi-head attention."""
        return design_of(self.result).axes if self.result else None

    @property
    def rank_bytes(self) -> int:
        """Cache and weights that the fullest GPU holds."""
        if self.result is None:
            return 0
        cache = self.result.cache.per_rank_bytes
        weights = self.result.weights.per_rank_bytes if self.result.weights is not None else ()
        held = (*weights, *(0,) * (len(cache) - len(weights)))
        return max((a + b for a, b in zip(cache, held, strict=False)), default=0)

    def to_dict(self) -> dict[str, object]:
        """Return the size object without ``cache.layers`` and with ``comparison``, or the error object."""
        if self.result is None or self.parts is None:
            error = self.error or KvgaugeError("no answer")
            return {**error.to_dict(), "model": {"id": self.name}}
        answer = self.result.to_dict()
        answer["cache"] = {k: v for k, v in self.result.cache_dict().items() if k != "layers"}
        answer["comparison"] = {
            "ratio": _number(self.ratio),
            "growing_ratio": _number(self.growing_ratio),
            "growing_bytes_per_sequence": self.parts.growing_bytes,
            "state_bytes_per_sequence": self.parts.state_bytes,
            "cross_bytes_per_sequence": self.parts.cross_bytes,
            "rank": self.rank,
            "axes": _axes_dict(self.axes),
            "axes_to_first": _axes_dict(self.axes_to_first),
        }
        return answer


@dataclass(frozen=True)
class Comparison:
    """The answer of ``compare``, rows in the order that was asked for."""

    rows: tuple[ComparisonRow, ...]

    @property
    def errors(self) -> tuple[KvgaugeError, ...]:
        """The errors of rows that could not be sized."""
        return tuple(row.error for row in self.rows if row.error)

    def ranked(self) -> tuple[ComparisonRow, ...]:
        """Return the sized rows, smallest growing cache first."""
        return tuple(sorted((r for r in self.rows if r.rank is not None), key=lambda r: r.rank or 0))

    def to_dict(self) -> dict[str, Any]:
        """Return the ``kvgauge.compare/1`` object."""
        return {"schema": "kvgauge.compare/1", "rows": [row.to_dict() for row in self.rows]}

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from kvgauge.render.notebook import comparison_html  # noqa: PLC0415 - the core draws nothing

        return comparison_html(self)


def compare(models: Iterable[ModelLike | Unfound], **size_kwargs: Any) -> Comparison:  # noqa: ANN401 - the keywords of size
    """Size several models under one load; a model that can't be sized becomes an error row.

    Args:
        models: anything ``load`` accepts, two or more to be of use; an ``Unfound`` is an error row.
        size_kwargs: the keywords of ``size``.

    Raises:
        InvalidRequestError: no models, or a request that is wrong for every one of them.

    >>> head = {"num_attention_heads": 32, "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16"}
    >>> eight_b = {"model_type": "qwen3", "num_hidden_layers": 36, "num_key_value_heads": 8, **head}
    >>> every_head = {**eight_b, "num_key_value_heads": 32}
    >>> answer = compare([every_head, eight_b], context="32k")
    >>> answer.rows[1].growing_ratio  # Qwen3-8B: grouped heads save three quarters
    Fraction(1, 4)
    """
    if isinstance(models, str | Mapping | Model):
        raise InvalidRequestError("compare takes a list of models", hint="compare([a, b])", field="MODEL")
    named: list[ModelLike | Unfound | None] = list(models)
    if not named and size_kwargs.get("command") is not None:
        named = [None]  # the one that the launch line names
    rows = [_sized(model, size_kwargs) for model in named]
    if not rows:
        raise InvalidRequestError("there is no model to compare", hint="give two or more", field="MODEL")
    errors = [row.error for row in rows]
    if errors[0] and all(isinstance(error, InvalidRequestError) for error in errors):
        raise errors[0]
    ranks = _ranks(rows)
    return Comparison(tuple(_related(row, rows[0], rank) for row, rank in zip(rows, ranks, strict=True)))


def _sized(model: ModelLike | Unfound | None, size_kwargs: Mapping[str, Any]) -> ComparisonRow:
    if isinstance(model, Unfound):
        return ComparisonRow(model.name, error=model.error)
    try:
        result = size(model, **size_kwargs)
    except KvgaugeError as error:
        return ComparisonRow(_name(model), error=error)
    return ComparisonRow(result.model.raw.id, result)


def _name(model: ModelLike | None) -> str:
    if isinstance(model, Model):
        return model.raw.id
    if model is None:
        return "--command"
    return str(model.get("_name_or_path") or "config") if isinstance(model, Mapping) else str(model)


def _ranks(rows: list[ComparisonRow]) -> list[int | None]:
    growing = [row.parts.growing_bytes if row.parts else None for row in rows]
    known = [value for value in growing if value is not None]
    return [None if value is None else 1 + sum(other < value for other in known) for value in growing]


def _related(row: ComparisonRow, first: ComparisonRow, rank: int | None) -> ComparisonRow:
    """Return the row with its ratios to the first."""
    if not (row.result and row.parts and first.result and first.parts):
        return ComparisonRow(row.name, row.result, row.error, rank=rank, is_first=row is first)
    axes = row.axes.over(first.axes) if row.axes and first.axes else None
    return ComparisonRow(
        row.name,
        row.result,
        None,
        _quotient(row.result.cache.total_bytes, first.result.cache.total_bytes),
        _quotient(row.parts.growing_bytes, first.parts.growing_bytes),
        axes,
        rank,
        row is first,
    )


def design_of(result: SizeResult) -> Design:
    """Return a size answer as a design."""
    return Design(result.theory or result.cache, result.cache)


def _quotient(value: int, base: int) -> Fraction | None:
    return Fraction(value, base) if base else None


def _number(value: Fraction | None) -> int | float | None:
    return None if value is None else json_number(value)


def _axes_dict(axes: Axes | None) -> dict[str, object] | None:
    return None if axes is None else {f.name: json_number(getattr(axes, f.name)) for f in fields(axes)}


__all__ = ["Comparison", "ComparisonRow", "compare", "design_of"]
