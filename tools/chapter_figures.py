"""What the expressions of the chapters may say: sizes, shapes and runs of the library, shown in units.

An expression stands in ``docs/learn/source/figures.toml`` under a name; a chapter writes ``{{name}}``.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from io import StringIO
from typing import Any
from unittest.mock import patch

import kvgauge
from kvgauge.cli.app import execute
from kvgauge.hardware import accelerator, parse_gpu
from kvgauge.lab.activations import learn_activations
from kvgauge.lab.exercises import longest_context
from kvgauge.lab.flash.answer import learn_flash
from kvgauge.lab.paging.answer import learn_paged
from kvgauge.lab.walk import learn_walk
from kvgauge.splits import splits
from kvgauge.units import GIB, KIB, MIB, format_bytes

Number = int | float | Fraction
#: Width of a command's output on a page.
COLUMNS = 96


@lru_cache(maxsize=256)
def _sized(model: str, options: tuple[tuple[str, Any], ...]) -> Any:
    return kvgauge.size(model, **dict(options))


def size(model: str, **options: Any) -> Any:
    """Return the answer of ``kvgauge.size``."""
    return _sized(model, tuple(sorted(options.items())))


def token_bytes(model: str, **options: Any) -> Fraction:
    """Return what a further token adds to one sequence."""
    return size(model, **options).cache.growth_bytes_per_token


def cache_bytes(model: str, context: int, sequences: int = 1, **options: Any) -> int:
    """Return the growing cache of a load, without what does not grow."""
    cache = size(model, context=context, sequences=sequences, **options).cache
    return cache.total_bytes - sequences * cache.fixed_bytes_per_sequence


def kept_bytes(model: str, context: int, sequences: int = 1, **options: Any) -> int:
    """Return cache and state of a load."""
    return size(model, context=context, sequences=sequences, **options).cache.total_bytes


def state_bytes(model: str) -> int:
    """Return what one sequence keeps whatever its length."""
    return size(model).cache.fixed_bytes_per_sequence


def weight_bytes(model: str, **options: Any) -> int:
    """Return the weights."""
    return size(model, **options).weights.total_bytes


def parameters(model: str) -> int:
    """Return the number of parameters."""
    return size(model).weights.stored.num_parameters


def field(model: str, name: str) -> Any:
    """Return a field of the model's config, nested text configs included."""
    config = kvgauge.load(model).raw.config
    for part in (config, *(config.get(key) or {} for key in ("text_config", "llm_config"))):
        if name in part:
            return part[name]
    raise KeyError(f"{model} has no {name}")


def layers(model: str, kind: str = "") -> int:
    """Return the number of layers, or of those with a cache of one kind."""
    architecture = kvgauge.load(model).architecture
    if not kind:
        return architecture.num_layers
    return sum(group.num_layers for group in architecture.groups if group.kind.value == kind)


def rates(model: str) -> list[int]:
    """Return how many tokens share a kept row, for each layer that compresses."""
    return [rate for rate in field(model, "compress_ratios") if rate]


def plain_parameters(model: str) -> int:
    """Return the parameters of embedding and head, which quantisers leave as they are."""
    copies: int = 1 if field(model, "tie_word_embeddings") else 2
    return copies * int(field(model, "vocab_size")) * int(field(model, "hidden_size"))


def fit(model: str, **options: Any) -> Any:
    """Return the answer of ``kvgauge.fit``."""
    return kvgauge.fit(model, **options)


def keeping(model: str, scheme: str, part: str) -> int:
    """Return what keeping a part at 16 bit adds to weights that a scheme quantises."""
    advice = size(model, weights=scheme).weights.what_if.advice
    return sum(row.keeping_costs_bytes for row in advice if row.part.value == part)


def split(model: str, kind: str, figure: str, **options: Any) -> Number:
    """Return a figure of another way to divide serving."""
    (found,) = splits(model, [kind], **options).splits
    value: Number = found[figure]
    return value


def overhead_bytes(model: str, **options: Any) -> int:
    """Return what an engine budgets beside weights and cache, by estimate: what its own sum has."""
    answer = fit(model, **options)
    held = answer.devices[0]
    return answer.verdict.available_bytes - (held.weight_bytes or 0) - answer.pool.bytes


@lru_cache(maxsize=1)
def measured_case() -> Any:
    """Return the answer for the article's measured start."""
    return fit("Qwen/Qwen3-8B", engine="vllm@0.19.0", context=32768, memory="95830MiB", utilization=0.95)


@lru_cache(maxsize=1)
def given_case() -> Any:
    """Return the same with the pool that was measured."""
    return fit("Qwen/Qwen3-8B", engine="vllm@0.19.0", context=32768, kv_memory=75931582464)


def own_overhead() -> int:
    """Return what the article's measured start leaves beside weights and pool."""
    share = Fraction(95, 100) * card_bytes("H100 NVL")
    return int(share) - weight_bytes("Qwen/Qwen3-8B") - given_case().pool.bytes


def by_rule(model: str, context: int, sequences: int) -> int:
    """Return W + K + W/10, the article's rule of thumb."""
    weights = weight_bytes(model)
    return weights + kept_bytes(model, context, sequences) + weights // 10


def fit_sentence(model: str, lang: str, **options: Any) -> str:
    """Return whether a load fits, and what is left, in words."""
    verdict = fit(model, **options).verdict
    words = {"en": ("{} left", "{} short"), "zh": ("剩余 {}", "缺少 {}")}[lang]
    return words[0 if verdict.fits else 1].format(auto(abs(verdict.slack_bytes)))


def rank_rows(model: str, context: int, tp: int) -> int:
    """Return the rows of one sequence on one rank, states left out."""
    groups = size(model, context=context, tp=tp).cache
    held = groups.rank_group_bytes[0]
    kinds = [found.group.kind.value for found in groups.demand.groups]
    return sum(own for own, kind in zip(held, kinds, strict=True) if kind != "recurrent")


def card(name: str) -> Any:
    """Return a card of the catalogue by its id."""
    return accelerator(name)


def card_bytes(name: str) -> int:
    """Return what a runtime is given of a card."""
    return parse_gpu(name)[0].memory_bytes


@lru_cache(maxsize=1)
def flash() -> Any:
    """Return the answer of ``learn flash``."""
    return learn_flash()


@lru_cache(maxsize=1)
def paged() -> Any:
    """Return the answer of ``learn paged``."""
    return learn_paged()


@lru_cache(maxsize=1)
def lives() -> Any:
    """Return the life of a layer of Qwen3-8B over 32,768 tokens."""
    return learn_activations("Qwen/Qwen3-8B", tokens=32768).groups[0]


def kept_share() -> Fraction:
    """Return the share of what one token makes in a layer in decode that is kept, scores left out."""
    made = [one for one in lives().decode.made if one.life.name not in ("scores", "weights")]
    kept = sum(one.size_bytes for one in made if one.life.fate.value == "cached")
    return Fraction(kept, sum(one.size_bytes for one in made))


_SCHEMES = {
    "en": {
        "reserve_maximum": "one piece, the longest", "buddy": "one piece, a power of two",
        "true_length": "one piece, the true length", "paged": "blocks of {}",
    },
    "zh": {
        "reserve_maximum": "整块，按最长", "buddy": "整块，按二的幂", "true_length": "整块，按真实长度",
        "paged": "分页，每页 {}",
    },
}  # fmt: skip


def paged_table(lang: str) -> str:
    """Return the schemes of ``learn paged`` as rows of a table."""
    rows = []
    for row in paged().schemes:
        name = _SCHEMES[lang][row.scheme].format(row.block_tokens)
        shares = (row.filled_fraction, row.reserved_fraction, row.internal_fraction, row.external_fraction)
        rows.append(
            f"| {name} | {' | '.join(percent(share, 1) for share in shares)} | {row.mean_running:.1f} |"
        )
    return "\n".join(rows)


def below(value: float, bound: float) -> str:
    """Show a bound that a value keeps; its last digits depend on the machine.

    Raises:
        ValueError: it does not keep it.
    """
    if not 0 <= value < bound:
        raise ValueError(f"{value} is not below {bound}")
    return f"< {bound:.0e}"


@lru_cache(maxsize=1)
def walk() -> Any:
    """Return the answer of ``learn walk`` for the article's example."""
    return learn_walk("今天天气")


def looks_table() -> str:
    """Return what the newest token sees of each, as rows of a table."""
    answer = walk()
    return "\n".join(
        f"| {answer.tokens[look.position].text} | {look.score:+.2f} | {percent(look.share)} |"
        for look in answer.attention.looks
    )


def guesses_table() -> str:
    """Return the likeliest next tokens, as rows of a table."""
    return "\n".join(f"| {one.text} | {percent(one.share)} |" for one in walk().candidates)


def generation_table() -> str:
    """Return the steps of the generation, as rows of a table."""
    rows = enumerate(walk().generation.steps, 1)
    return "\n".join(
        f"| {number} | {step.tokens} | {step.rows} | {step.rows_without} | {b(step.held_bytes)} |"
        for number, step in rows
    )


def softmax(*scores: float) -> list[float]:
    """Return the shares of some scores."""
    grown = [math.exp(score) for score in scores]
    return [one / sum(grown) for one in grown]


def ms(seconds: Number, digits: int = 1) -> str:
    """Show a time."""
    return f"{float(seconds) * 1000:,.{digits}f} ms"


def us(seconds: Number, digits: int = 1) -> str:
    """Show a short time."""
    return f"{float(seconds) * 1e6:,.{digits}f} µs"


def run(command: str) -> str:
    """Return what a command prints, ``kvgauge`` left out."""
    printed = StringIO()
    as_wide = patch.dict(os.environ, COLUMNS=str(COLUMNS))  # a page is as wide wherever it is built
    with as_wide, contextlib.redirect_stdout(printed), contextlib.redirect_stderr(StringIO()):
        code = execute([*shlex.split(command), "--color", "never"])
    if code:
        raise RuntimeError(f"kvgauge {command}: exit {code}")
    return printed.getvalue().rstrip("\n")


def b(value: Number) -> str:
    """Show bytes exactly."""
    return format_bytes(Fraction(value), "bytes")


def auto(value: Number) -> str:
    """Show bytes in the binary unit that suits them."""
    return format_bytes(Fraction(value))


def gb(value: Number) -> str:
    """Show bytes in decimal units."""
    return format_bytes(Fraction(value), "gb")


def _fixed(unit_bytes: int, name: str) -> Callable[..., str]:
    def show(value: Number, digits: int = 2) -> str:
        text = f"{float(Fraction(value) / unit_bytes):,.{digits}f}"
        return f"{text.rstrip('0').rstrip('.') if digits else text} {name}"

    return show


kib, mib, gib = _fixed(KIB, "KiB"), _fixed(MIB, "MiB"), _fixed(GIB, "GiB")


def n(value: Number, digits: int = 0) -> str:
    """Show a number."""
    return f"{float(value):,.{digits}f}" if digits else f"{round(value):,}"


def tokens(value: Number, lang: str) -> str:
    """Show a number of tokens."""
    return n(value) + {"en": " tokens", "zh": " 个 token"}[lang]


def percent(value: Number, digits: int = 0) -> str:
    """Show a share."""
    return f"{float(value) * 100:.{digits}f} %"


def times(value: Number, digits: int = 1) -> str:
    """Show a ratio."""
    return f"{float(value):.{digits}f}".removesuffix(".0") + "×"


#: The names of expressions; builtins are left out.
NAMES: Mapping[str, Any] = {
    own.__name__: own
    for own in (
        size, token_bytes, cache_bytes, kept_bytes, state_bytes, weight_bytes, parameters, field, layers,
        longest_context, rates, plain_parameters, own_overhead, tokens, fit, keeping, split, overhead_bytes,
        measured_case,
        given_case, by_rule, fit_sentence, rank_rows, card, card_bytes, flash, paged, lives,
        kept_share, paged_table, walk, looks_table, guesses_table, generation_table, softmax,
        below, ms, us, run, b, auto, gb, n, percent, times,
    )
} | {
    "kib": kib, "mib": mib, "gib": gib, "KIB": KIB, "MIB": MIB, "GIB": GIB, "K": 1024,
    "Fraction": Fraction,
    "sum": sum, "max": max, "min": min, "round": round, "int": int, "len": len, "range": range, "str": str,
}  # fmt: skip
