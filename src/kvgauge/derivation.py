"""``explain``: every number of a size answer, opened.

One step a layer group, then what they add up to, then the same layers as plain multi-head attention. A
step's formula evaluates to its ``value_bytes`` with its symbols, and each definition to its symbol.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from kvgauge.arithmetic import evaluate, number_text, with_numbers
from kvgauge.cache import CacheAnswer
from kvgauge.comparison import design_of
from kvgauge.config_fields import ConfigFields
from kvgauge.design import Design
from kvgauge.engines.base import GroupDemand
from kvgauge.formulas import Definition, Number, group_formula
from kvgauge.layers import Axis, Role
from kvgauge.reasons import why_sentence
from kvgauge.sizing import ModelLike, SizeResult, size
from kvgauge.texts import Words, formula_source
from kvgauge.units import json_number

_SUMS = "kvgauge: sum of the groups above"
_PLAIN = "arXiv 1706.03762 (MHA), 1911.02150 (MQA), 2305.13245 (GQA)"


@dataclass(frozen=True)
class Step:
    """One number and where it comes from.

    Attributes:
        formula: in the article's symbols; evaluates to ``value_bytes``.
        config_path: dotted paths of the config fields behind the symbols, or None for sums.
        symbol_paths: the field, or the option, behind each symbol that has one.
        fields: path -> value of the config fields read for this step.
        definitions: how computed symbols follow from others.
    """

    id: str
    title: str
    text: str
    formula: str
    symbols: Mapping[str, Number]
    value_bytes: int
    source: str
    config_path: str | None = None
    symbol_paths: Mapping[str, str] = field(default_factory=dict)
    symbol_meanings: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()

    @property
    def with_numbers(self) -> str:
        """The formula with the numbers put in, and what it comes to."""
        return f"{with_numbers(self.formula, self.symbols)} = {number_text(self.value_bytes)}"

    def to_dict(self) -> dict[str, object]:
        """Return the step of the JSON contract."""
        return {
            "id": self.id,
            "title": self.title,
            "text": self.text,
            "formula": self.formula,
            "with_numbers": self.with_numbers,
            "symbols": dict(self.symbols),
            "symbol_meanings": dict(self.symbol_meanings),
            "symbol_paths": dict(self.symbol_paths),
            "definitions": [self._definition_dict(d) for d in self.definitions],
            "config_path": self.config_path,
            "fields": [{"path": path, "value": value} for path, value in self.fields.items()],
            "value_bytes": self.value_bytes,
            "source": self.source,
        }

    def _definition_dict(self, definition: Definition) -> dict[str, object]:
        value = self.symbols[definition.symbol]
        numbers = f"{with_numbers(definition.formula, self.symbols)} = {number_text(value)}"
        return {
            "symbol": definition.symbol,
            "formula": definition.formula,
            "with_numbers": numbers,
            "value": value,
        }


@dataclass(frozen=True)
class Explanation:
    """The answer of ``explain``."""

    result: SizeResult
    lang: str
    steps: tuple[Step, ...]

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


def explain(
    model_or_result: ModelLike | SizeResult,
    *,
    lang: str = "en",
    **size_kwargs: Any,  # noqa: ANN401 - the keywords of size
) -> Explanation:
    """Open every number of a size answer.

    Args:
        model_or_result: anything ``load`` accepts, or an answer of ``size``.
        lang: en or zh.
        size_kwargs: the keywords of ``size``, for a model.

    Raises:
        KvgaugeError: the model or the request is refused.

    >>> config = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32,
    ...           "hidden_size": 4096, "num_key_value_heads": 8, "head_dim": 128, "torch_dtype": "bfloat16"}
    >>> explain(config, context="32k").steps[0].with_numbers  # Qwen3-8B
    '36 × 2 × 8 × 128 × 32,768 × 1 × 2 = 4,831,838,208'
    """
    words = Words(lang)
    result = (
        model_or_result if isinstance(model_or_result, SizeResult) else size(model_or_result, **size_kwargs)
    )
    cache, design = result.cache, design_of(result)
    fields = ConfigFields.of(result.model.architecture, result.model.raw.config)
    steps = [
        _group_step(d, b, cache, fields, words)
        for d, b in zip(cache.demand.groups, cache.group_bytes, strict=True)
    ]
    steps += [_sequence_step(cache, words), _total_step(cache, words), _fixed_step(cache, words)]
    steps += [_growth_step(cache, words), _rank_step(cache, words)]
    if result.theory is not None:
        steps.append(_theory_step(result, result.theory, words))
    steps += _plain_steps(design, cache, words)
    steps.append(_why_step(design, cache, words))
    return Explanation(result, lang, tuple(_with_meanings(step, words) for step in steps))


def _with_meanings(step: Step, words: Words) -> Step:
    meanings = {name: words.symbol(name) or name for name in step.symbols}
    return replace(step, symbol_meanings={**meanings, **step.symbol_meanings})


def _group_step(
    demand: GroupDemand, size_bytes: int, cache: CacheAnswer, fields: ConfigFields, words: Words
) -> Step:
    group = demand.group
    formula = fields.spell_out(group_formula(demand, cache.workload), group)
    steps = [s.counted.step_tokens for s in demand.streams if s.counted.step_tokens > 1]
    values = {"window": number_text(group.window_tokens or 0), "step": steps[0] if steps else 1}
    kind, mechanism = group.kind.value, group.mechanism.value
    paths = {name: path for name, value in formula.symbols.items()
             if (path := _symbol_path(name, value, demand, cache, fields))}  # fmt: skip
    config = [p for p in paths.values() if not p.startswith("--")]
    own = fields.of_group(group)
    idle = not demand.streams
    colon, space = ("：", "") if words.lang == "zh" else (": ", " ")
    design = "" if idle else colon + words.title("mechanisms", mechanism)
    lines = [words.text("mechanisms", mechanism)] * (not idle) + [words.text("kinds", kind, **values)]
    return Step(
        f"group.{group.name}",
        f"{words.title('kinds', kind)}{design} × {group.num_layers}",
        space.join(lines),
        formula.formula,
        formula.symbols,
        size_bytes,
        formula_source(mechanism),
        ", ".join(dict.fromkeys(config or own)) or None,
        paths,
        {},
        {**{p: fields.values[p] for p in config if p in fields.values}, **own},
        formula.definitions,
    )


_OPTIONS = {"T": "--context", "B": "--sequences", "T_enc": "--encoder-tokens", "T_img": "--image-tokens"}
_DTYPE_OPTIONS = {"b": "--kv-dtype", "b_k": "--k-dtype", "b_v": "--v-dtype", "b_S": "--state-dtype"}


def _symbol_path(
    name: str, value: Number, demand: GroupDemand, cache: CacheAnswer, fields: ConfigFields
) -> str | None:
    """Return the config field or the option behind a symbol, or None where it is computed."""
    if name in _OPTIONS:
        return _OPTIONS[name]
    stored = {s.dtype for s in demand.streams if (s.role is Role.CONV) == (name == "b_C")}
    if name in ("b", "b_k", "b_v", "b_C") and stored == {cache.architecture.model_dtype}:
        tails = ("dtype", "torch_dtype")
        return next((p for p in fields.values if p.rpartition(".")[2] in tails), _DTYPE_OPTIONS.get(name))
    if name in ("b", "b_k", "b_v"):
        return _DTYPE_OPTIONS[name]
    if name == "b_S" and Role.COMPRESSOR not in {s.role for s in demand.streams}:
        return fields.path_of(name, None, demand.group) or _DTYPE_OPTIONS[name]
    return fields.path_of(name, value, demand.group)


def _sum_step(
    step_id: str,
    words: Words,
    sizes: Mapping[str, int],
    value_bytes: int,
    *,
    key: str = "",
    source: str = _SUMS,
    **values: object,
) -> Step:
    """A sum over groups; those that add nothing are left out of the formula."""
    kept = {name: value for name, value in sizes.items() if value}
    title, text = (
        words.title("steps", key or step_id, **values),
        words.text("steps", key or step_id, **values),
    )
    meanings = {name: f"group.{name}" for name in kept}
    formula = " + ".join(kept) or "0"
    return Step(step_id, title, text, formula, kept, value_bytes, source, symbol_meanings=meanings)


def _sequence_step(cache: CacheAnswer, words: Words) -> Step:
    sizes = {d.group.name: d.group.num_layers * d.sequence_bytes(cache.workload) for d in cache.demand.groups}
    context = number_text(cache.workload.context_tokens)
    return _sum_step("per_sequence", words, sizes, cache.bytes_per_sequence, context=context)


def _total_step(cache: CacheAnswer, words: Words) -> Step:
    load = cache.workload
    prefix = load.shared_prefix_tokens
    key = "total_shared" if prefix else "total"
    text = words.text("steps", key, sequences=number_text(load.sequences), prefix=number_text(prefix))
    symbols: dict[str, Number] = {"B": load.sequences, "sequence": cache.bytes_per_sequence}
    formula = "B × sequence"
    if prefix:
        formula = "B × sequence - (B - 1) × shared"
        symbols["shared"] = sum(d.group.num_layers * d.shared_bytes(load) for d in cache.demand.groups)
    paths = {"B": "--sequences"}
    return Step(
        "total",
        words.title("steps", key),
        text,
        formula,
        symbols,
        cache.total_bytes,
        _SUMS,
        symbol_paths=paths,
    )


def _fixed_step(cache: CacheAnswer, words: Words) -> Step:
    sizes: dict[str, int] = {}
    for demand in cache.demand.groups:
        fixed = [s for s in demand.streams if s.counted.axis is not Axis.DECODER]
        rows = sum(s.row_bytes * s.counted.rows(cache.workload.tokens_on(s.counted.axis)) for s in fixed)
        sizes[demand.group.name] = demand.group.num_layers * rows
    return _sum_step("fixed", words, sizes, cache.fixed_bytes_per_sequence)


def _growth_step(cache: CacheAnswer, words: Words) -> Step:
    """The slope; over a whole period where rows appear every few tokens, so that it is whole bytes."""
    tokens = cache.workload.context_tokens
    growing = [term for term in cache.terms if term.slope_at(tokens)]
    period = math.lcm(*(term.step_tokens for term in growing))
    slopes: dict[str, Fraction] = {}
    for term in growing:
        slopes[term.group] = slopes.get(term.group, Fraction(0)) + term.slope_at(tokens)
    return _sum_step(
        "growth",
        words,
        {group: int(slope * period) for group, slope in slopes.items()},
        int(cache.growth_bytes_per_token * period),
        key="growth" if period == 1 else "growth_period",
        period=period,
        average=number_text(cache.growth_bytes_per_token),
        context=number_text(tokens),
    )


def _rank_step(cache: CacheAnswer, words: Words) -> Step:
    ranks = cache.rank_group_bytes
    fullest = max(ranks, key=sum)
    sizes = {d.group.name: b for d, b in zip(cache.demand.groups, fullest, strict=True)}
    return _sum_step(
        "per_rank",
        words,
        sizes,
        sum(fullest),
        key="single_rank" if len(ranks) == 1 else "per_rank",
        source="vLLM distributed/utils.py, model_executor/models/llama.py",
        ranks=number_text(len(ranks)),
    )


def _theory_step(result: SizeResult, theory: CacheAnswer, words: Words) -> Step:
    sizes = {d.group.name: b for d, b in zip(theory.demand.groups, theory.group_bytes, strict=True)}
    return _sum_step(
        "theory",
        words,
        sizes,
        theory.total_bytes,
        source="kvgauge: the same load under --engine theory",
        engine=result.request.engine,
        engine_bytes=number_text(result.cache.total_bytes),
        theory_bytes=number_text(theory.total_bytes),
    )


def _plain_steps(design: Design, cache: CacheAnswer, words: Words) -> list[Step]:
    """The same token-mixing layers as MHA, as GQA where the config has groups, and as MQA."""
    layers, heads = design.num_mixing_layers, design.query_heads
    if not heads or not design.shapes_of(layers):
        return []
    shapes = design.shapes_of(layers)
    groups = {shape.kv_heads for shape in shapes}
    own = groups.pop() if len(groups) == 1 else None
    load = cache.workload
    steps: list[Step] = []
    for key, count in (("mha", heads), ("gqa", own), ("mqa", 1)):
        row = design.plain_row_bytes(layers, count) if count else None
        if count is None or row is None or (key == "gqa" and count in (1, heads)):
            continue
        widths = sum(n * (s.key_width + s.value_width) for s, n in shapes.items())
        name = "H_q" if key == "mha" else "H_kv"
        symbols: dict[str, Number] = {
            name: count,
            "D_sum": widths,
            "T": load.context_tokens,
            "B": load.sequences,
        }
        size_bytes = row * load.context_tokens * load.sequences
        symbols["b"] = json_number(Fraction(row, count * widths))
        formula = f"{name} × D_sum × T × B × b"
        if evaluate(formula, symbols) != size_bytes:  # packed formats: bytes of a row, not elements
            formula = "R × T × B"
            symbols = {"R": row, "T": load.context_tokens, "B": load.sequences}
        text = words.text("steps", key, layers=layers, heads=heads, kv_heads=own)
        steps.append(Step(key, words.title("steps", key), text, formula, symbols, size_bytes, _PLAIN))
    return steps


def _why_step(design: Design, cache: CacheAnswer, words: Words) -> Step:
    text = words.text("steps", "why", sentence=why_sentence(design, words))
    return Step("why", words.title("steps", "why"), text, "sequence", {"sequence": cache.bytes_per_sequence},
                cache.bytes_per_sequence, _PLAIN)  # fmt: skip


__all__ = ["Explanation", "Step", "explain"]
