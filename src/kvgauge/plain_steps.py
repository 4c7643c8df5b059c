"""The same token-mixing layers as plain attention: MHA, the grouped heads of the config, and MQA."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from kvgauge.arithmetic import evaluate
from kvgauge.design import HeadShape
from kvgauge.dtypes import display_dtype
from kvgauge.formulas import Definition, Number
from kvgauge.steps import OPTIONS, Facts, Step
from kvgauge.units import json_number

PLAIN_SOURCE = "arXiv 1706.03762 (MHA), 1911.02150 (MQA), 2305.13245 (GQA)"


def plain_steps(facts: Facts) -> list[Step]:
    """Return what multi-head, grouped-query and multi-query attention would need, every token kept."""
    design = facts.design
    layers, heads = design.num_mixing_layers, design.query_heads
    shapes = design.shapes_of(layers)
    if not heads or not shapes:
        return []
    groups = {shape.kv_heads for shape in shapes}
    own = groups.pop() if len(groups) == 1 else None
    steps: list[Step] = []
    for key, count in (("mha", heads), ("gqa", own), ("mqa", 1)):
        row = design.plain_row_bytes(layers, count) if count else None
        if count is None or row is None or (key == "gqa" and count in (1, heads)):
            continue
        steps.append(_plain_step(key, count, row, shapes, own, facts))
    return steps


def _plain_step(
    key: str, count: int, row: int, shapes: Counter[HeadShape], own: int | None, facts: Facts
) -> Step:
    words, load, design = facts.words, facts.cache.workload, facts.design
    name = "H_q" if key == "mha" else "H_kv"
    widths, definitions = _widths(shapes)
    symbols: dict[str, Number] = {name: count, "D_sum": widths, "T": load.context_tokens, "B": load.sequences}
    symbols["b"] = json_number(Fraction(row, count * widths))
    formula, size_bytes = f"{name} × D_sum × T × B × b", row * load.context_tokens * load.sequences
    if evaluate(formula, symbols) != size_bytes:  # packed formats: bytes of a row, not elements
        formula, definitions = "R × T × B", ()
        symbols = {"R": row, "T": load.context_tokens, "B": load.sequences}
    values = {"layers": design.num_mixing_layers, "heads": design.query_heads or 0, "kv_heads": own or 0}
    paths = {s: OPTIONS[s] for s in symbols if s in OPTIONS}
    dtype = _dtype_path(facts)
    if "b" in symbols and dtype:
        paths["b"] = dtype
    for symbol, value in symbols.items():
        path = facts.fields.exact_path(symbol, value)
        if path and not (symbol == "H_kv" and key == "mqa"):
            paths.setdefault(symbol, path)
    return Step(
        key,
        words.title("steps", key),
        words.text("steps", key, **values),
        formula,
        symbols,
        size_bytes,
        PLAIN_SOURCE,
        symbol_paths=paths,
        definitions=definitions,
        symbol_meanings=_meaning_of_b(symbols, facts),
        told=frozenset(() if key == "mha" else (*symbols, *(d.symbol for d in definitions))),
    )


def _widths(shapes: Counter[HeadShape]) -> tuple[int, tuple[Definition, ...]]:
    """Return the widths of K and V summed over the layers, and how they come about."""
    counts: Counter[tuple[int, int]] = Counter()
    for shape, layers in shapes.items():
        counts[shape.key_width, shape.value_width] += layers
    total = sum(layers * (key + value) for (key, value), layers in counts.items())
    terms = [f"{layers} × ({key} + {value})" for (key, value), layers in counts.items()]
    return total, (Definition("D_sum", " + ".join(terms)),)


def _dtype_path(facts: Facts) -> str | None:
    """Return what states the dtype of K and V: the option, the checkpoint's scheme, or the model's field."""
    architecture, asked = facts.result.model.architecture, facts.result.request.dtypes
    if asked.k or asked.v:
        return "--kv-dtype"
    used = facts.design.theory.demand.dtypes.k
    return architecture.prescribed_by if used == architecture.prescribed_kv_dtype else facts.fields.dtype_path


def _meaning_of_b(symbols: Mapping[str, Number], facts: Facts) -> dict[str, str]:
    """Say which dtype is assumed where nothing states one."""
    if "b" not in symbols or _dtype_path(facts):
        return {}
    dtype, words = display_dtype(facts.cache.architecture.model_dtype), facts.words
    return {"b": words.phrase("by_option_default", meaning=words.symbol("b"), dtype=dtype)}
