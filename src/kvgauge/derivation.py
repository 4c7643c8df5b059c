"""``explain``: every number of a size answer, opened.

One step a layer group, then what they add up to, what each rank holds, and the same layers as plain
multi-head attention. A step's formula evaluates to its ``value_bytes`` with its symbols, and each definition
to its symbol.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from kvgauge.block_steps import block_steps
from kvgauge.cache import CacheAnswer
from kvgauge.formulas import Number, packed_bits
from kvgauge.group_steps import group_step, group_title, with_meanings
from kvgauge.layers import Axis, Mechanism, Role
from kvgauge.models import ModelLike
from kvgauge.placed_steps import placed_steps
from kvgauge.plain_steps import PLAIN_SOURCE, plain_steps
from kvgauge.rank_steps import rank_steps
from kvgauge.reasons import less_reason, why_sentence
from kvgauge.size_result import SizeResult
from kvgauge.sizing import size
from kvgauge.steps import Facts, Step, sum_symbols
from kvgauge.texts import Words
from kvgauge.units import Units
from kvgauge.values import dataclass
from kvgauge.weight_fields import fields_behind
from kvgauge.weight_steps import weight_steps


@dataclass(frozen=True)
class Explanation:
    """The answer of ``explain``."""

    result: SizeResult
    lang: str
    steps: tuple[Step, ...]
    units: Units = "gib"

    def in_units(self, units: Units) -> Explanation:
        """Return the explanation with the sizes in its sentences written in other units."""
        return self if units == self.units else explain(self.result, lang=self.lang, units=units)

    def to_dict(self) -> dict[str, Any]:
        """Return the ``kvgauge.explain/1`` object."""
        answer = self.result.to_dict()
        return {
            "schema": "kvgauge.explain/1",
            "model": answer["model"],
            "request": answer["request"],
            "lang": self.lang,
            "steps": [step.to_dict() for step in self.steps],
        }

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from kvgauge.render.notebook import explanation_html  # noqa: PLC0415 - the core draws nothing

        return explanation_html(self)


def explain(
    model_or_result: ModelLike | SizeResult,
    *,
    lang: str = "en",
    units: Units = "gib",
    **size_kwargs: Any,  # noqa: ANN401 - the keywords of size
) -> Explanation:
    """Open every number of a size answer.

    Args:
        model_or_result: anything ``load`` accepts, or an answer of ``size``.
        lang: en or zh.
        units: how sizes in sentences are written.
        size_kwargs: the keywords of ``size``, for a model.

    Raises:
        KvgaugeError: the model or the request is refused.

    >>> config = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32,
    ...           "hidden_size": 4096, "num_key_value_heads": 8, "head_dim": 128, "torch_dtype": "bfloat16"}
    >>> explain(config, context="32k").steps[0].with_numbers  # Qwen3-8B
    '36 × 2 × 8 × 128 × 32,768 × 1 × 2 = 4,831,838,208 B'
    """
    words = Words(lang, units)
    result = (
        model_or_result if isinstance(model_or_result, SizeResult) else size(model_or_result, **size_kwargs)
    )
    facts = Facts(result, words)
    steps = [group_step(number, facts) for number in range(len(facts.cache.demand.groups))]
    steps += [_sequence_step(facts), _total_step(facts), _fixed_step(facts), _growth_step(facts)]
    if "blocks" in facts.cache.demand.details:
        steps += block_steps(facts)
    steps += placed_steps(facts)
    steps += rank_steps(facts)
    if result.theory is not None:
        steps.append(_theory_step(result.theory, facts))
    steps += [*plain_steps(facts), _why_step(facts)]
    if not result.cache.total_bytes and not (result.theory and result.theory.total_bytes):
        steps = [
            s if s.id.startswith("group.") or s.id == "why" else replace(s, is_repeat=True) for s in steps
        ]
    told = [with_meanings(step, facts) for step in steps]
    *before, why = told
    return Explanation(result, lang, (*before, *_weights(result, words), why), units)


def _weights(result: SizeResult, words: Words) -> list[Step]:
    """Return the steps of the weights, with the config fields behind each part where a config says."""
    weights = result.weights
    if weights is None:
        return []
    fields = fields_behind(result.model.raw) if weights.stored.source in ("config", "index") else {}
    return weight_steps(weights, words, fields)


def _sum_step(
    step_id: str, facts: Facts, sizes: Mapping[int, int], meaning: str, *, key: str = "", **values: object
) -> Step:
    """A sum over groups; those that add nothing are left out of the formula."""
    words = facts.words
    formula, symbols = sum_symbols(sizes)
    meanings = {
        f"G_{number}": words.phrase(meaning, title=group_title(demand, facts), number=number)
        for number, demand in enumerate(facts.cache.demand.groups, 1)
        if f"G_{number}" in symbols
    }
    title, text = (
        words.title("steps", key or step_id, **values),
        words.text("steps", key or step_id, **values),
    )
    source = words.source("sum")
    total = sum(sizes.values())
    return Step(step_id, title, text, formula, symbols, total, source, symbol_meanings=meanings)


def _sequence_step(facts: Facts) -> Step:
    cache = facts.cache
    sizes = {
        number: d.group.num_layers * d.sequence_bytes(cache.workload)
        for number, d in enumerate(cache.demand.groups, 1)
    }
    context = cache.workload.context_tokens
    step = _sum_step("per_sequence", facts, sizes, "step_one", context=context)
    is_repeat = cache.workload.sequences == 1 and sum(map(bool, sizes.values())) < 2
    return replace(step, is_repeat=is_repeat)


def _total_step(facts: Facts) -> Step:
    cache, load, words = facts.cache, facts.cache.workload, facts.words
    if any(demand.pooled for demand in cache.demand.groups):
        return _sum_step(
            "total",
            facts,
            dict(enumerate(cache.group_bytes, 1)),
            "step_all",
            key="total_pooled",
            sequences=load.sequences,
        )
    prefix = load.shared_prefix_tokens
    key = "total_shared" if prefix else "total"
    text = words.text("steps", key, sequences=load.sequences, prefix=prefix)
    symbols: dict[str, Number] = {"B": load.sequences, "M": cache.bytes_per_sequence}
    formula = "B × M"
    if prefix:
        formula = "B × M - (B - 1) × M_shared"
        symbols["M_shared"] = sum(d.group.num_layers * d.shared_bytes(load) for d in cache.demand.groups)
    return Step(
        "total",
        words.title("steps", key),
        text,
        formula,
        symbols,
        cache.total_bytes,
        words.source("sum"),
        symbol_paths={"B": "--sequences"},
        is_repeat=load.sequences == 1,
    )


def _fixed_step(facts: Facts) -> Step:
    load = facts.cache.workload
    sizes: dict[int, int] = {}
    parts: list[str] = []
    for number, demand in enumerate(facts.cache.demand.groups, 1):
        sizes[number] = 0
        for stream in demand.streams:
            counted = stream.counted
            if counted.axis is Axis.DECODER:
                continue
            sizes[number] += (
                demand.group.num_layers * stream.row_bytes * counted.rows(load.tokens_on(counted.axis))
            )
            parts.append(_fixed_word(stream.role, counted.axis, demand.group.mechanism))
    total = sum(sizes.values())
    words = sorted(set(parts), key=_FIXED_ORDER.index)
    text = facts.words.listed([facts.words.phrase(word) for word in words])
    key = "fixed" if total else "fixed_none"
    return replace(_sum_step("fixed", facts, sizes, "step_fixed", key=key, parts=text), is_repeat=not total)


_FIXED_ORDER = (
    "fixed_state", "fixed_conv", "fixed_shift", "fixed_ring", "fixed_encoder", "fixed_image", "fixed_ahead",
)  # fmt: skip


def _fixed_word(role: Role, axis: Axis, mechanism: Mechanism) -> str:
    """Return the key of the words for a part that does not grow with the context."""
    if axis in (Axis.ENCODER, Axis.IMAGE):
        return "fixed_encoder" if axis is Axis.ENCODER else "fixed_image"
    if role is Role.CONV:
        return "fixed_shift" if mechanism is Mechanism.RWKV else "fixed_conv"
    return {Role.RECURRENT: "fixed_state", Role.COMPRESSOR: "fixed_ring"}.get(role, "fixed_ahead")


def _growth_step(facts: Facts) -> Step:
    """The slope; over a whole period where rows appear every few tokens, so that it is whole bytes."""
    cache, tokens = facts.cache, facts.cache.workload.context_tokens
    growing = [term for term in cache.terms if term.slope_at(tokens)]
    period = math.lcm(*(term.step_tokens for term in growing))
    numbers = {d.group.name: number for number, d in enumerate(cache.demand.groups, 1)}
    slopes: dict[int, Fraction] = {}
    for term in growing:
        number = numbers[term.group]
        slopes[number] = slopes.get(number, Fraction(0)) + term.slope_at(tokens)
    packed = any(packed_bits(s) for d in cache.demand.groups for s in d.streams)
    blocks = any(d.block_tokens for d in cache.demand.groups)
    key = "growth_packed" if packed else "growth_blocks" if blocks else "growth_period"
    if period == 1:
        key = "growth" if any(slopes.values()) else "growth_none"
    return _sum_step(
        "growth",
        facts,
        {number: int(slope * period) for number, slope in slopes.items()},
        "step_growth",
        key=key,
        period=period,
        average=facts.words.size(cache.growth_bytes_per_token),
        context=tokens,
    )


def _theory_step(theory: CacheAnswer, facts: Facts) -> Step:
    words, result = facts.words, facts.result
    sizes = dict(enumerate(theory.group_bytes, 1))
    formula, symbols = sum_symbols(sizes)
    meanings = {
        f"G_{number}": words.phrase(
            "step_theory", title=group_title(demand, Facts(replace(result, cache=theory), words))
        )
        for number, demand in enumerate(theory.demand.groups, 1)
        if f"G_{number}" in symbols
    }
    more = result.cache.total_bytes - theory.total_bytes
    key = "theory" if more > 0 else "theory_less" if more < 0 else "theory_equal"
    text = words.text(
        "steps",
        key,
        engine=facts.engine,
        engine_bytes=words.size(result.cache.total_bytes),
        theory_bytes=words.size(theory.total_bytes),
        difference=words.size(abs(more)),
        because=less_reason(facts),
    )
    title, source = words.title("steps", key), words.source("theory")
    return Step("theory", title, text, formula, symbols, theory.total_bytes, source, symbol_meanings=meanings)


def _why_step(facts: Facts) -> Step:
    words, kept = facts.words, facts.cache.bytes_per_sequence
    text = words.text("steps", "why", sentence=why_sentence(facts))
    return Step("why", words.title("steps", "why"), text, "M", {"M": kept}, kept, PLAIN_SOURCE)


__all__ = ["Explanation", "Step", "explain"]
