"""The answer of ``fit`` in words: verdict, pool, reach, groups, load. Drawn by others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.dtypes import display_dtype
from kvgauge.render.clean import clean
from kvgauge.render.note_units import in_units
from kvgauge.render.sheet import Listing, Sheet, TableOf
from kvgauge.render.size_facts import (
    Pairs,
    context_text,
    defaulted,
    engine_text,
    load_text,
    model_name,
    tokens_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvgauge.architecture import Note
    from kvgauge.engines.pools import Pool
    from kvgauge.estimate import Estimate
    from kvgauge.fit_result import Device, FitResult, Reach
    from kvgauge.render.view import View

GROUP_KEYS = ("column_group", "column_layers", "column_block", "column_page", "column_blocks")


def fit_headline(result: FitResult, view: View) -> str:
    """Return the first line: does it fit."""
    load, texts = result.request.workload, view.texts
    key = "fit_tight" if result.verdict.status == "tight" else "fit_yes" if result.verdict.fits else "fit_no"
    return texts(
        key,
        model=model_name(result, view),
        load=load_text(load.sequences, load.context_tokens, view),
        engine=engine_text(result.request),
    )


def fit_lines(result: FitResult, view: View) -> Pairs:
    """Return verdict, pool, what the log prints, the most that fits, and what would help."""
    texts = view.texts
    rows = [
        ("fit_verdict_label", said(result.verdict.note, view)),
        ("fit_pool_label", _pool(result, view)),
        *_capacity(result, view),
        ("fit_longest_label", _reach(result.max_context, tokens_text(result.max_context.count, view), view)),
        ("fit_most_label", _reach(result.max_sequences, f"{result.max_sequences.count:,}", view)),
    ]
    weights = [device.weight_bytes for device in result.devices if device.weight_bytes is not None]
    if any(weights):
        rows.append(("fit_weights_label", view.size(max(weights))))
    rows += _of_card(result, view)
    rows += [("fit_help_label", said(found.note, view)) for found in result.suggestions]
    return [(texts(label), text) for label, text in rows]


def _of_card(result: FitResult, view: View) -> Pairs:
    """Return what else is held of the card, and what stays free; nothing where the pool is given."""
    if result.left is None:
        return []
    fullest = _fullest(result)
    rows = list(_working_rows(result, fullest, view))
    free = min(device.free_bytes or 0 for device in result.devices)
    text = view.texts("fit_free" if free >= 0 else "fit_overdrawn", size=view.size(abs(free)))
    return [*rows, ("fit_free_label", text)]


def _fullest(result: FitResult) -> Device:
    return max(result.devices, key=lambda device: device.weight_bytes or 0)


def _working_rows(result: FitResult, device: Device, view: View) -> Iterator[tuple[str, str]]:
    """Yield what counts in the verdict beside weights and load, and what lies beside the engine's share."""
    if not device.beside:
        if device.terms:
            yield "fit_working_label", _working(device.terms, view)
        return
    if device.inside:
        yield "fit_inside_label", _working(device.inside, view)
    room = max(0, (device.memory_bytes or 0) - result.verdict.available_bytes)
    text = _working(device.beside, view)
    yield "fit_beside_label", view.texts("fit_beside", text=text, room=view.size(room))


def _working(terms: tuple[Estimate, ...], view: View) -> str:
    """Return what an engine works with, term by term, and the sum with its range."""
    sizes = [sum(getattr(t, f"{end}_bytes") for t in terms) for end in ("central", "low", "high")]
    total, low, high = (view.size(size) for size in sizes)
    parts = view.texts("aside_join").join(
        view.texts(
            "fit_term",
            name=view.texts.find(f"term.{term.name}", term.name),
            size=view.size(term.central_bytes),
        )
        for term in terms
        if term.central_bytes
    )
    if low == high:
        return view.texts("fit_working_exact", total=total, parts=parts)
    return view.texts("fit_working", total=total, low=low, high=high, parts=parts)


def said(note: Note, view: View) -> str:
    """Return a sentence in the language and units of a view."""
    return clean(view.texts.note(in_units(note, view.units)))


def _pool(result: FitResult, view: View) -> str:
    pool = result.pool
    if pool.num_blocks is None or pool.block_size_tokens is None or pool.bytes_per_block is None:
        text = view.texts("fit_pool_bytes", size=view.size(pool.bytes))
    else:
        text = view.texts(
            "fit_pool",
            blocks=f"{pool.num_blocks:,}",
            tokens=f"{pool.block_size_tokens:,}",
            size=view.size(pool.bytes_per_block),
        )
    if result.left is None or not pool.bytes or result.left.low_bytes == result.left.high_bytes:
        return text
    low, central, high = (view.size(max(0, size)) for size in result.left)
    if text == central:
        return view.texts("fit_pool_within", size=central, low=low, high=high)
    return view.texts("fit_pool_range", pool=text, size=central, low=low, high=high)


def _capacity(result: FitResult, view: View) -> Pairs:
    pool = result.pool
    label = "fit_holds_label" if result.request.engine == "theory" else "fit_capacity_label"
    if pool.capacity_tokens is None:
        return []
    if pool.max_concurrency is None:
        return [(label, _tokens(pool, view))]
    longest = result.details.get("max_model_len", result.request.workload.context_tokens)
    text = view.texts(
        "fit_capacity",
        tokens=f"{pool.capacity_tokens:,}",
        concurrency=f"{pool.max_concurrency:,.2f}",
        context=f"{longest:,}",
    )
    return [(label, text)]


def _tokens(pool: Pool, view: View) -> str:
    """Return what engines print that print no concurrency: tokens, and what is beside them."""
    parts = (
        ("fit_tokens", "tokens", pool.capacity_tokens),
        ("fit_tokens_window", "tokens", pool.swa_tokens),
        ("fit_tokens_states", "slots", pool.state_slots),
        ("fit_tokens_requests", "requests", pool.max_running_requests),
    )
    shown = [view.texts(key, **{name: f"{count:,}"}) for key, name, count in parts if count is not None]
    return view.texts("fit_tokens_join").join(shown)


def _reach(reach: Reach, shown: str, view: View) -> str:
    why = view.texts(f"fit_limited.{reach.limited_by}")
    return view.texts("fit_reach" if reach.count else "fit_none", count=shown, why=why)


def pool_rows(result: FitResult, view: View) -> list[tuple[str, str, str, str, str]]:
    """Return the groups of the pool: kind, layers, block, page, blocks of a request."""
    return [
        (
            view.texts(f"kind.{group.kind}"),
            f"{group.num_layers:,}",
            "" if group.block_size_tokens is None else f"{group.block_size_tokens:,}",
            "" if group.page_bytes is None else view.size(group.page_bytes),
            "" if group.blocks_per_request is None else f"{group.blocks_per_request:,}",
        )
        for group in result.pool.groups
    ]


def pool_parts(result: FitResult, view: View) -> list[tuple[str, int]]:
    """Return what the fullest GPU holds: weights, the load, and what is left of the pool."""
    fullest, texts = _fullest(result), view.texts
    pool = fullest.pool_bytes if result.left is not None else result.pool.bytes
    needed = min(result.verdict.required_bytes - result.verdict.taken_bytes, pool)
    parts = [
        (texts("weights_label"), fullest.weight_bytes or 0),
        (texts("fit_needed" if result.verdict.fits else "fit_whole_pool"), needed),
        (texts("fit_left"), pool - needed),
        (texts("fit_working_part"), sum(term.central_bytes for term in fullest.terms or ())),
    ]
    return [part for part in parts if part[1] > 0]


def fit_load_rows(result: FitResult, view: View) -> Pairs:
    """Return the load as it was understood, and what was assumed."""
    texts, request, raw = view.texts, result.request, result.model.raw
    load = request.workload
    rows = [
        ("context", context_text(result, view)),
        ("sequences", defaulted("sequences", f"{load.sequences:,}", request, view)),
    ]
    if result.setup.reserve_tokens:
        rows.append(("reserve", tokens_text(result.setup.reserve_tokens, view)))
    if load.shared_prefix_tokens:
        rows.append(("prefix", texts("prefix_value", tokens=tokens_text(load.shared_prefix_tokens, view))))
    if load.mtp:
        rows.append(("mtp", texts("mtp_one" if load.mtp == 1 else "mtp_many", count=load.mtp)))
    k, v = (
        display_dtype(word or result.model.architecture.model_dtype)
        for word in (result.dtypes.k, result.dtypes.v)
    )
    rows.append(("kv", defaulted("k_dtype", k if k == v else texts("kv_value", k=k, v=v), request, view)))
    if result.dtypes.state:
        rows.append(("state", display_dtype(result.dtypes.state)))
    rows.append(("engine", defaulted("engine", engine_text(request), request, view)))
    card = result.setup.card
    if card is not None:
        rows.append(("gpu", _card(result, view)))
    elif "gpu" in result.details:
        rows.append(("gpu", texts("fit_gpu_assumed", name=clean(str(result.details["gpu"])))))
    rows.append(("source", texts(f"source_{raw.source}", provenance=clean(raw.provenance))))
    return [(texts(f"assumed_{name}"), value) for name, value in rows]


def _card(result: FitResult, view: View) -> str:
    """Return the name of the card and what a runtime is given of it."""
    card, memory = result.setup.card, result.devices[0].memory_bytes
    name = clean(card.name) if card is not None else ""
    if memory is None or result.left is None:
        return name
    return view.texts("fit_card" if name else "fit_card_alone", name=name, size=view.size(memory))


def launch_title(result: FitResult, view: View) -> str:
    """Return what the launch lines are: of the load as asked, or with the remedy that makes it fit."""
    if result.verdict.fits:
        return view.texts("fit_launch_title")
    if result.remedy is None:
        return view.texts("fit_launch_fails")
    return view.texts("fit_launch_remedy", what=said(result.remedy.note, view))


def launch_lines(result: FitResult, view: View) -> list[str]:
    """Return the launch command, or those of every machine where there are several.

    Of a load that does not fit: the command with the remedy that makes it fit, where there is one.
    """
    remedy = result.remedy
    launch = result.launch if remedy is None or remedy.launch is None else remedy.launch
    if not launch.steps:
        return [clean(launch.command)]
    return [view.texts(f"launch.{step.where}", command=clean(step.command)) for step in launch.steps]


def fit_sheet(result: FitResult, view: View) -> Sheet:
    """Return the answer as title, lines and tables."""
    lines = tuple(view.texts("subject", name=label) + value for label, value in fit_lines(result, view))
    right = frozenset(range(1, len(GROUP_KEYS)))
    names = tuple(view.texts(key) for key in GROUP_KEYS)
    groups = TableOf(names, tuple(pool_rows(result, view)), right)
    load = TableOf((view.texts("assumed_title"), ""), tuple(fit_load_rows(result, view)))
    tables = (groups,) if result.pool.groups else ()
    command = "\n".join(launch_lines(result, view))
    launch = (launch_title(result, view), Listing("", command)) if command else ()
    return Sheet(fit_headline(result, view), (*lines, *tables, load, *launch))
