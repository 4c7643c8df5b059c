"""The answer of ``plan`` in words: options, why each stands where it does, the decision. Drawn by others."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from kvgauge.planning.ranking import layout_text
from kvgauge.render.clean import clean
from kvgauge.render.fit_facts import said
from kvgauge.render.sheet import Listing, Sheet, TableOf
from kvgauge.render.size_facts import Pairs, engine_text, load_text

if TYPE_CHECKING:
    from kvgauge.hardware import Price
    from kvgauge.planning.result import PathStep, PlanOption, PlanResult
    from kvgauge.render.view import View

OPTION_KEYS = (
    "column_place",
    "column_gpus",
    "column_spread",
    "column_formats",
    "column_price",
    "column_holds",
)
PATH_KEYS = ("column_question", "column_answer", "column_because")


def plan_headline(result: PlanResult, view: View) -> str:
    """Return the first line: how much was found, for which load."""
    texts, best = view.texts, result.best
    name = clean(result.model.raw.id) or texts("source_stdin")
    if best is None:
        return texts("plan_none", model=name, devices=f"{result.num_devices:,}")
    load = best.fit.request.workload
    return texts(
        "plan_headline",
        model=name,
        load=load_text(load.sequences, load.context_tokens, view),
        engine=engine_text(best.fit.request),
        options=f"{len(result.options):,}",
        devices=f"{result.num_devices:,}",
    )


def option_rows(result: PlanResult, view: View) -> list[tuple[str, ...]]:
    """Return one row an option: place, GPUs, layout, formats, price, how many times the load."""
    return [
        (
            f"{place}.",
            option_name(option),
            layout_text(option.parallelism),
            _formats(option, view),
            price_text(option, view),
            view.texts("plan_times", times=f"{option.headroom:.1f}"),
        )
        for place, option in enumerate(result.options, 1)
    ]


def option_name(option: PlanOption) -> str:
    """Return how many of what: ``4 x L4``."""
    return f"{option.num_gpus} x {clean(option.device.name) or 'GPU'}"


def _formats(option: PlanOption, view: View) -> str:
    formats = option.formats
    parts = (
        ("plan_format_cache", "dtype", formats.kv),
        ("plan_format_checkpoint", "name", formats.checkpoint),
        ("plan_format_weights", "scheme", formats.weights),
    )
    words = [view.texts(key, **{name: clean(word)}) for key, name, word in parts if word is not None]
    return ", ".join(words) or view.texts("plan_format_own")


def price_text(option: PlanOption, view: View) -> str:
    """Return an hour of all GPUs, else what they cost to buy."""
    texts = view.texts
    if option.price_per_hour is not None:
        return texts("plan_price_hour", price=_dollars(option.price_per_hour))
    if option.purchase_price is not None:
        return texts("plan_price_buy", price=_dollars(option.purchase_price))
    return texts("plan_price_none")


def _dollars(amount: float) -> str:
    return f"{amount:,.2f}".removesuffix(".00")


def _source(price: Price | None, view: View) -> str:
    if price is None:
        return ""
    source = clean(view.texts.origin(price.source))
    if price.date is None:
        return view.texts("plan_price_undated", source=source)
    return view.texts("plan_price_source", date=price.date, source=source)


def option_lines(option: PlanOption, view: View) -> Pairs:
    """Return what is to be known of an option: need, price, reasons."""
    texts = view.texts
    rows = [("plan_verdict_label", said(option.fit.verdict.note, view))]
    source = _source(option.device.hourly or option.device.purchase, view)
    if source:
        rows.append(("plan_price_label", f"{price_text(option, view)} {source}"))
    why = texts("plan_join").join(said(note, view) for note in option.reasons)
    rows.append(("plan_why_label", why))
    return [(texts(label), text) for label, text in rows]


def fit_line(option: PlanOption) -> str:
    """Return the command that gives this option's whole answer."""
    return shlex.join(["kvgauge", "fit", clean(option.fit.model.raw.id), *map(clean, option.words)])


def path_rows(steps: tuple[PathStep, ...], view: View) -> list[tuple[str, str, str]]:
    """Return the decision: question, answer, the numbers behind it."""
    join = view.texts("plan_join")
    return [
        (
            said(step.question, view),
            said(step.answer, view),
            join.join(said(note, view) for note in step.because),
        )
        for step in steps
    ]


def plan_sheet(result: PlanResult, view: View) -> Sheet:
    """Return the answer as title, tables and commands."""
    texts = view.texts
    blocks: list[str | TableOf | Listing] = []
    if result.options:
        names = tuple(texts(key) for key in OPTION_KEYS)
        blocks.append(TableOf(names, tuple(option_rows(result, view)), frozenset({4, 5})))
    for place, option in enumerate(result.options, 1):
        blocks.append(f"{place}. {option_name(option)}, {layout_text(option.parallelism)}")
        blocks += [texts("subject", name=label) + text for label, text in option_lines(option, view)]
        commands = [option.fit.launch_command, fit_line(option)]
        blocks.append(Listing("", "\n".join(clean(command) for command in commands if command)))
    path = tuple(path_rows(result.decision_path, view))
    blocks.append(TableOf(tuple(texts(key) for key in PATH_KEYS), path))
    if result.splits is not None:
        from kvgauge.render.splits import split_blocks  # noqa: PLC0415 - few ask

        blocks += split_blocks(result.splits, view)
    return Sheet(plan_headline(result, view), tuple(blocks))
