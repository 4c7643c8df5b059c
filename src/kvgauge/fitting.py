"""``fit``: does a load fit, and what is the most that would. The public call behind the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.card_budget import Spread
from kvgauge.card_rules import card_notes
from kvgauge.cards import card_of
from kvgauge.default_engine import default_engine
from kvgauge.fit_asking import Posed, Question, pose
from kvgauge.fit_result import Device, FitResult, Suggestion, Verdict
from kvgauge.fit_search import Search, largest
from kvgauge.launching import launch_of
from kvgauge.models import ModelLike, load
from kvgauge.preparing import Options, with_command
from kvgauge.units import format_bytes

if TYPE_CHECKING:
    from kvgauge.card_budget import Rank
    from kvgauge.engines.pools import Capacity
    from kvgauge.sources.weight_files import Progress
    from kvgauge.weight_answer import WeightAnswer


def fit(
    model: ModelLike | None = None,
    *,
    command: str | None = None,
    gpu: str | None = None,
    num_gpus: int | None = None,
    memory: int | str | None = None,
    gpu_file: str | None = None,
    reserve: int | str | None = None,
    kv_memory: int | str | None = None,
    context: int | str | None = None,
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
    check: bool = False,
    suggestions: bool = True,
    overrides: Mapping[str, object] | None = None,
    revision: str | None = None,
    refresh: bool = False,
    offline: bool = False,
    progress: Progress | None = None,
) -> FitResult:
    """Return whether a load fits an engine's pool, the pool itself, and the most that would fit.

    The pool and the most that fits are those of the estimates' central values, as the engine's log would
    print them; the verdict says whether the load fits at the far end of their range too.

    Args:
        model: anything ``load`` accepts.
        command: a whole launch line: it says engine and flags, and the model where ``model`` is None.
        gpu: a card by name, ``NAME:COUNT`` for several; it sets the engine's defaults.
        memory: ``SIZE[:COUNT]``, what the runtime reports as the card's total; in place of that of ``gpu``.
        gpu_file: JSON with devices of your own, which ``gpu`` may name.
        reserve: kept free on each GPU beside all that the engine takes.
        utilization: share that the engine may use, in its own meaning; None: its default.
        num_gpus: cards; None: the count of ``gpu``, else tp x pp x dp. Alone it is tensor parallelism.
        kv_memory: bytes of cache and state on each rank, given instead of computed.
        engine: ``name[@version]``; None is llama.cpp for a GGUF, else the newest vllm known, or what runs on
            the card where that does not.
        check: ``FitResult.exit_code`` is 3 where the load does not fit.
        no_weights: they lie elsewhere: the devices hold cache and working memory alone; no line starts that.
        suggestions: say what would help where it does not; each is tried, which takes longer than the rest.

    The other keywords are those of ``size``.

    Raises:
        KvgaugeError: the model, the request or their combination is refused; says why.

    >>> config = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32,
    ...           "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16"}
    >>> pool = fit(config, kv_memory=75931582464, context=32768, engine="vllm@0.19.0").pool
    >>> pool.num_blocks, pool.capacity_tokens  # Qwen3-8B, as its start-up log prints them
    (32184, 514944)
    """
    model, engine, engine_args = with_command(command, model, engine, engine_args)
    loaded = load(
        model, overrides=overrides, revision=revision, refresh=refresh, offline=offline, progress=progress
    )
    options = Options(
        context, max_model_len, sequences, encoder_tokens, image_tokens, shared_prefix, kv_dtype, k_dtype,
        v_dtype, state_dtype, index_dtype, mtp, tp, pp, dp, ep, dcp, kv_memory, utilization,
    )  # fmt: skip
    card = card_of(gpu, memory, gpu_file) if engine is None else None
    name, notes = (engine, ()) if engine is not None else default_engine(loaded, (card,) if card else ())
    posed = pose(
        Question(
            loaded, options, name, engine_args, gpu, num_gpus, memory, gpu_file, reserve, weights, no_weights
        )
    )
    answer = _answer(posed, suggests=suggestions)
    return replace(answer, check=check, notes=(*notes, *posed.notes, *answer.notes, *posed.late_notes))


def _answer(posed: Posed, *, suggests: bool) -> FitResult:
    search, asked, verdict = posed.search, posed.asked, posed.verdict
    prepared = search.prepared
    longest, widest = posed.longest, posed.widest
    pool_bytes = search.pool_bytes(asked, longest)
    admission = asked.admission(pool_bytes)
    launch = launch_of(posed, pool_bytes)
    return FitResult(
        prepared.model,
        prepared.request,
        prepared.setup,
        asked.dtypes,
        verdict,
        _devices(search, asked, pool_bytes, posed.weighed),
        asked.pool(pool_bytes),
        longest,
        widest,
        launch,
        _suggestions(posed, admission) if suggests else (),
        (
            *prepared.notes,
            *asked.notes,
            *admission,
            *prepared.late_notes,
            *_assumed(search, asked),
            *_overdrawn(search, asked, verdict),
            *launch.notes,
            *card_notes(posed),
        ),
        asked.details,
        posed.weighed,
        Spread(*(asked.budget(size) for size in search.available(asked)))
        if search.cards is not None
        else None,
    )


def _suggestions(posed: Posed, admission: tuple[Note, ...]) -> tuple[Suggestion, ...]:
    """Return what would help; nothing where the load fits and the engine starts."""
    if posed.verdict.fits and not admission:
        return ()
    from kvgauge.remedies import remedies  # noqa: PLC0415 - what fits needs none

    return remedies(posed, admission)


def _overdrawn(search: Search, asked: Capacity, verdict: Verdict) -> tuple[Note, ...]:
    """Say where the engine would take more than the card has once it runs, although its pool fits."""
    free = 0 if search.cards is None or not verdict.fits else search.cards.free_bytes(asked)
    if free >= 0:
        return ()
    size = format_bytes(-free)
    text = f"the engine is likely to take {size} more than the GPU has: lower its share with --utilization"
    return (Note("memory_overdrawn", "warning", text, (("size", size),), (-free,)),)


def _assumed(search: Search, asked: Capacity) -> Iterator[Note]:
    """Say which of the engine's own memory no record stands behind, or records of other cards."""
    if search.cards is None:
        return
    terms = search.cards.tightest(asked).terms
    names = ", ".join(dict.fromkeys(term.name for term in terms if term.grade == "assumed"))
    if names:
        text = f"no measurement stands behind these figures, their ranges are wide: {names}"
        yield Note("working_memory_assumed", "info", text, (("names", names),))
    card = search.prepared.setup.card
    if card is not None and card.capability is None:
        text = "working memory was measured on NVIDIA's cards; on this one it may be another"
        yield Note("working_memory_of_others", "warning", text)


def _devices(
    search: Search, asked: Capacity, pool_bytes: int, weighed: WeightAnswer | None
) -> tuple[Device, ...]:
    tensor, card = search.prepared.request.parallelism.tensor, search.prepared.setup.card
    pools = [size for size in asked.allocated_bytes(pool_bytes) for _ in range(tensor)]
    grade = weighed.grade if weighed is not None else "exact"
    because = weighed.because if weighed is not None else ""
    if search.cards is None:
        held = weighed.per_rank_bytes if weighed is not None else (None,) * len(pools)
        memory = None if card is None else card.memory_bytes
        return tuple(
            Device(rank, memory, weights, grade, because, pool)
            for rank, (weights, pool) in enumerate(zip(held, pools, strict=True))
        )
    ranks = zip(search.cards.ranks(asked), pools, strict=True)
    return tuple(
        _device(number, rank, pool, grade, because, asked.budget) for number, (rank, pool) in enumerate(ranks)
    )


def _device(
    number: int, rank: Rank, pool_bytes: int, grade: str, because: str, budget: Callable[[int], int]
) -> Device:
    """Return a rank of a card; where ranks differ in what they need, the engine takes just that."""
    size, spread = pool_bytes, None
    if rank.needed_bytes is not None:
        size = rank.needed_bytes
    else:
        low, _, high = (max(0, budget(left)) for left in rank.left)
        spread = (min(size, low), max(size, high))
    memory = rank.memory.central_bytes
    return Device(number, memory, rank.weights_bytes, grade, because, size, rank.held, spread, rank.inside)


__all__ = ["FitResult", "fit", "largest"]
