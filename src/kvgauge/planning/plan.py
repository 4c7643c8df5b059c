"""``plan``: the public call behind the command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvgauge.default_engine import default_engine
from kvgauge.engine_cards import foreign_code_notes
from kvgauge.engines import parse_engine
from kvgauge.errors import InvalidRequestError
from kvgauge.fit_asking import WEIGHTS_ELSEWHERE, idle_notes
from kvgauge.fitting import fit
from kvgauge.models import ModelLike, load
from kvgauge.planning.asking import AXES, Asked, context_of, refuse_unread
from kvgauge.planning.cases import Case, Formats
from kvgauge.planning.devices import PlanDevice, devices_of, named_devices
from kvgauge.planning.path import Walk, decision_path, rack_step
from kvgauge.planning.prices import read_prices
from kvgauge.planning.ranking import Ranked, order_of, rank, shown_cases
from kvgauge.planning.result import PathStep, PlanOption, PlanResult
from kvgauge.planning.rules import plan_rules
from kvgauge.planning.search import Found, Machine, machines_of, search
from kvgauge.planning.splitting import SplitWish, plan_splits
from kvgauge.planning.unloaded import refuse_unloaded
from kvgauge.planning.words import fit_words
from kvgauge.preparing import Options, with_command

if TYPE_CHECKING:
    from kvgauge.architecture import Note
    from kvgauge.planning.search import Watcher
    from kvgauge.sources.weight_files import Progress

DEFAULT_TOP = 5
MAX_TOP = 100


def plan(
    model: ModelLike | None = None,
    *,
    command: str | None = None,
    gpu: str | None = None,
    memory: int | str | None = None,
    gpu_file: str | None = None,
    price_file: str | None = None,
    reserve: int | str | None = None,
    context: int | str | None = None,
    prompt_tokens: int | str | None = None,
    output_tokens: int | str | None = None,
    max_model_len: int | str | None = None,
    sequences: int | None = None,
    engine: str | None = None,
    engine_args: str = "",
    utilization: float | str | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    ep: int | None = None,
    dcp: int | None = None,
    kv_dtype: str | None = None,
    k_dtype: str | None = None,
    v_dtype: str | None = None,
    state_dtype: str | None = None,
    index_dtype: str | None = None,
    encoder_tokens: int | str | None = None,
    image_tokens: int | str | None = None,
    shared_prefix: int | str | None = None,
    mtp: int | None = None,
    weights: str | None = None,
    no_weights: bool = False,
    split: str | None = None,
    sram: str | None = None,
    host_memory: int | str | None = None,
    network: str | None = None,
    top: int = DEFAULT_TOP,
    check: bool = False,
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
    progress: Progress | None = None,
    watch: Watcher | None = None,
) -> PlanResult:
    """Return which GPUs hold a load, how many, and in which parallelism: cheapest first, with the reasons.

    Every option is the answer of ``fit`` for it. What is kept fits at the far end of every estimate with 3 %
    of what the engine may use to spare. The order is price where one is known, else the number of GPUs, then
    how many times the load the pool holds.

    Args:
        model: anything ``load`` accepts.
        command: a whole launch line, as in ``fit``.
        gpu: a card by name, ``NAME:COUNT`` where there are no more than that, several joined by commas, or
            ``all``; None: those that the catalogue marks (``planned``).
        memory: ``SIZE[:COUNT]``, what the runtime reports of a card, in place of that of ``gpu``.
        gpu_file: JSON with devices of your own; all of them are looked at where ``gpu`` names none.
        price_file: JSON with prices of your own by name; they go before the catalogue's.
        prompt_tokens, output_tokens: parts of the context; with them its length is their sum.
        tp, pp, dp, ep, dcp: ranks that are not to be searched over.
        kv_dtype: else the engine's own choice, and what halves it, are looked at.
        weights: a quantisation; else the checkpoint's own, then others, which are marked.
        no_weights: they lie elsewhere: what is laid out is cache and working memory alone.
        split: other ways to divide the load, joined by commas: prefix, offload, disaggregated,
            attention-ffn, sram; ``all`` for all.
        sram: the card of the last two that holds weights in on-chip memory.
        host_memory: of the host, for caches that wait there; ``network``: of one GPU, ``400g`` or ``50GB/s``.
        top: options that are returned, those with other weights apart.
        check: ``PlanResult.exit_code`` is 3 where nothing holds the load.
        watch: called with (machines looked at, machines).

    The other keywords are those of ``fit``.

    Raises:
        KvgaugeError: the model, the request or their combination is refused; says why.

    >>> found = plan("Qwen/Qwen3-8B", context="32k", sequences=8, gpu="RTX 4090", kv_dtype="bf16")
    >>> found.best.num_gpus, found.best.parallelism.tensor
    (4, 4)
    """
    model, engine, engine_args = with_command(command, model, engine, engine_args)
    loaded = load(
        model, overrides=overrides, revision=revision, refresh=refresh, offline=offline, progress=progress
    )
    context = context_of(context, prompt_tokens, output_tokens)
    if split is None:
        refuse_unread({"sram": sram, "host_memory": host_memory, "network": network}, "split")
    if isinstance(top, bool) or not isinstance(top, int) or not 1 <= top <= MAX_TOP:
        raise InvalidRequestError(f"--top must be a whole number from 1 to {MAX_TOP}", field="top")
    told: dict[str, Any] = {
        "context": context, "max_model_len": max_model_len, "sequences": sequences,
        "encoder_tokens": encoder_tokens, "image_tokens": image_tokens, "shared_prefix": shared_prefix,
        "kv_dtype": kv_dtype, "k_dtype": k_dtype, "v_dtype": v_dtype, "state_dtype": state_dtype,
        "index_dtype": index_dtype, "mtp": mtp, "utilization": utilization,
    }  # fmt: skip
    prices = read_prices(price_file)
    named = [device.named for device in named_devices(gpu, memory, gpu_file, prices)]
    name, notes = (engine, ()) if engine is not None else default_engine(loaded, named)
    asked = Asked(
        loaded,
        Options(**told, tp=tp, pp=pp, dp=dp, ep=ep, dcp=dcp),
        name,
        engine_args,
        weights,
        reserve,
        no_weights,
    )
    idle = idle_notes(asked.options, asked.prepared, reserve)
    notes = (*notes, *asked.prepared.notes, *idle)  # refuses what is wrong whatever the card
    if no_weights:
        notes = (*notes, WEIGHTS_ELSEWHERE)
    refuse_unloaded(asked.prepared)
    asked.refuse_ranks()
    devices = devices_of(gpu, memory, gpu_file, asked.rules, prices, parse_engine(name)[1])
    if named:
        notes = (*notes, *(note for device in devices for note in _of_named(name, device)))
    told |= {"engine": engine, "engine_args": engine_args, "weights": weights, "reserve": reserve}
    told |= {"no_weights": True} if no_weights else {}
    told = {key: value for key, value in told.items() if value not in (None, "")}
    ranked = _ranked(asked, [device for device in devices if device.runs_engines], top, watch)
    options = tuple(_option(asked, one, told) for one in ranked)
    path = tuple(_path(asked, devices, ranked[0].case if ranked else None))
    divided = None
    if split is not None:
        wish = SplitWish(split, gpu, sram, host_memory, network, prompt_tokens)
        ranks = {"tp": tp, "pp": pp, "dp": dp, "ep": ep, "dcp": dcp}
        divided = plan_splits(loaded, wish, told, ranks, options[0] if options else None)
    return PlanResult(loaded, options, path, len(devices), notes, check, divided)


def _of_named(engine: str, device: PlanDevice) -> Iterator[Note]:
    """Yield what is to be known of a device that was named."""
    yield from device.named.notes
    yield from foreign_code_notes(parse_engine(engine)[0], device.name, device.named.make)


def _ranked(asked: Asked, devices: list[PlanDevice], top: int, watch: Watcher | None) -> tuple[Ranked, ...]:
    """Return the options in their order, the cheapest that leaves all formats as they are among them."""
    if not devices:
        return ()
    machines = _able(asked, machines_of(devices, asked.given_ranks))
    _refuse_few(asked, machines)
    found = search(asked.evaluator, asked.space, machines, asked.formats, enough=top, watch=watch)
    several = len(devices) > 1
    cases = shown_cases(found.fitting, several=several)
    unchanged = [case for case in cases if case.formats == Formats()]
    if not unchanged and len(asked.formats) > 1:
        more = search(asked.evaluator, asked.space, machines, asked.formats[:1], enough=1)
        unchanged = shown_cases(more.fitting, several=True)
        found.failing += more.failing
    kept = cases[:top]
    if unchanged and not any(case.formats == Formats() for case in kept):
        kept = [*kept[: max(0, top - 1)], unchanged[0]] if top > 1 else kept
    kept += _other_weights(asked, machines, kept[0] if kept else None, found)
    return rank(sorted(kept, key=order_of), found, asked)


def _refuse_few(asked: Asked, machines: list[Machine]) -> None:
    """Refuse ranks that are given where no machine has as many GPUs as they take.

    Raises:
        InvalidRequestError: says how many they take.
    """
    if not asked.pinned or any(any(asked.space.layouts(count)) for count in {m.count for m in machines}):
        return
    ranks, most = asked.given_ranks, max(machine.count for machine in machines)
    raise InvalidRequestError(
        f"the ranks that are given can't be laid on the GPUs: they make {ranks}, and there are up to {most}",
        hint="leave some of --tp, --pp, --dp, --ep and --dcp out, or give other GPUs",
        field="gpu",
    )


def _able(asked: Asked, machines: list[Machine]) -> list[Machine]:
    """Leave out machines without kernels for the weights' formats, where there are others."""
    able = [machine for machine in machines if machine.device.named.card.capability is not None]
    return able if asked.needs_nvidia and able else machines


def _other_weights(asked: Asked, machines: list[Machine], first: Case | None, found: Found) -> Iterator[Case]:
    """Yield what is cheaper with other weights: the cheapest published checkpoint, then ones to be made."""
    below = None if first is None else Machine(first.device, first.count).order
    cases: list[Case] = []
    for name, other in asked.published.items():
        cases += _cheapest(other, machines, Formats(checkpoint=name), below, found)
    best = min(cases, key=order_of, default=None)
    if best is not None:
        yield best
        below = Machine(best.device, best.count).order
    for scheme in asked.schemes:
        yield from _cheapest(asked, machines, Formats(weights=scheme), below, found)


def _cheapest(
    asked: Asked,
    machines: list[Machine],
    stored: Formats,
    below: tuple[int, float, int] | None,
    found: Found,
) -> list[Case]:
    """Return the cheapest machine for some weights, the cache as it is before one of half the bytes."""
    machines = _able(asked, machines)
    formats = tuple(replace(stored, kv=each.kv) for each in asked.formats)
    more = search(asked.evaluator, asked.space, machines, formats, enough=1, below=below)
    found.failing += more.failing
    return shown_cases(more.fitting, several=True)[:1]


def _option(asked: Asked, ranked: Ranked, told: Mapping[str, Any]) -> PlanOption:
    """Return an option: the answer of ``fit`` for it."""
    case = ranked.case
    layout, formats, device = case.layout, case.formats, case.device
    counts = (layout.tensor, layout.pipeline, layout.data, layout.expert, layout.context)
    ranks = dict(zip(AXES, counts, strict=True))
    changed = {"kv_dtype": formats.kv, "weights": formats.weights}
    if "engine" not in told and default_engine(asked.model, (device.named,))[0] != asked.engine:
        changed["engine"] = asked.engine  # fit alone would take another on this card
    keywords = {**told, **{key: word for key, word in changed.items() if word is not None}}
    whole: dict[str, Any] = {**device.words, "num_gpus": case.count, **ranks, **keywords}
    answer = fit(asked.of(formats).model, **whole)
    per_machine = plan_rules().machine_gpus
    return PlanOption(
        answer,
        device,
        case.count,
        -(-case.count // per_machine),
        formats,
        case.multiple,
        fit_words(device.words, case.count, ranks, keywords, asked.model.raw.overrides),
        ranked.reasons,
    )


def _path(asked: Asked, devices: tuple[PlanDevice, ...], best: Case | None) -> Iterator[PathStep]:
    """Yield the decision: on the device of the first option, else on the largest."""
    stored = asked.model.weighed.stored
    for device in devices:
        if not device.runs_engines and stored is not None and not asked.no_weights:
            yield rack_step(device, asked.evaluator.weights_bytes(None))
    running = tuple(device for device in devices if device.runs_engines)
    if running:
        device = best.device if best is not None else max(running, key=lambda one: one.memory_bytes)
        walk = Walk(asked.evaluator, asked.space, asked, device, running, best)
        yield from decision_path(walk)


__all__ = ["PlanOption", "PlanResult", "plan"]
