"""``fit``: does a load fit, and what is the most that would. The public call behind the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.card_budget import CardBudget, Spread
from kvgauge.cards import card_of
from kvgauge.engines import ENGINES, load_engine, parse_engine
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.fit_result import Device, FitResult, Verdict
from kvgauge.fit_search import Search, keep_free, largest
from kvgauge.fit_words import suggestions
from kvgauge.models import Model, ModelLike, load
from kvgauge.preparing import Options, Prepared, prepare
from kvgauge.readers import is_gguf
from kvgauge.sizing import weigh_request
from kvgauge.units import format_bytes, parse_size

if TYPE_CHECKING:
    from kvgauge.card_budget import Rank
    from kvgauge.cards import NamedCard
    from kvgauge.engines.pools import Capacity
    from kvgauge.sources.weight_files import Progress
    from kvgauge.weight_answer import WeightAnswer

DEFAULT_ENGINE = "vllm"
GGUF_ENGINE = "llama.cpp"


def fit(
    model: ModelLike,
    *,
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
        gpu: a card by name, ``NAME:COUNT`` for several; it sets the engine's defaults.
        memory: ``SIZE[:COUNT]``, what the runtime reports as the card's total; in place of that of ``gpu``.
        gpu_file: JSON with devices of your own, which ``gpu`` may name.
        reserve: kept free on each GPU beside all that the engine takes.
        utilization: share that the engine may use, in its own meaning; None: its default.
        num_gpus: cards; None: the count of ``gpu``, else tp x pp x dp. Alone it is tensor parallelism.
        kv_memory: bytes of cache and state on each rank, given instead of computed.
        engine: ``name[@version]``; None is the newest vllm known, llama.cpp for a GGUF.
        check: ``FitResult.exit_code`` is 3 where the load does not fit.

    The other keywords are those of ``size``.

    Raises:
        KvgaugeError: the model, the request or their combination is refused; says why.

    >>> config = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32,
    ...           "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16"}
    >>> pool = fit(config, kv_memory=75931582464, context=32768, engine="vllm@0.19.0").pool
    >>> pool.num_blocks, pool.capacity_tokens  # Qwen3-8B, as its start-up log prints them
    (32184, 514944)
    """
    loaded = load(
        model, overrides=overrides, revision=revision, refresh=refresh, offline=offline, progress=progress
    )
    named = card_of(gpu, memory, gpu_file)
    options = Options(
        context, max_model_len, sequences, encoder_tokens, image_tokens, shared_prefix, kv_dtype, k_dtype,
        v_dtype, state_dtype, index_dtype, mtp, tp, pp, dp, ep, dcp, kv_memory, utilization,
    )  # fmt: skip
    name, notes = (engine, ()) if engine is not None else _default_engine(loaded)
    count = num_gpus if num_gpus is not None or named is None else named.count
    options = _spread(options, count, load_engine(parse_engine(name)[0]).told(engine_args))
    card = None if named is None else named.card
    prepared = prepare(loaded, options, engine=name, engine_args=engine_args, card=card)
    notes = (*notes, *(named.notes if named is not None else ()), *_idle(options, prepared, reserve))
    asked = Search(prepared, None).capacity(prepared.request.workload)  # refuses before weights are cut
    weighed, weight_notes = weigh_request(prepared, scheme=weights, without=no_weights)
    search, kept_notes = _search(prepared, named, weighed, reserve)
    if search.prepared is not prepared:
        asked = search.capacity(prepared.request.workload)
    answer = _answer(search, asked, weighed)
    return replace(answer, check=check, notes=(*notes, *answer.notes, *kept_notes, *weight_notes))


def _default_engine(model: Model) -> tuple[str, tuple[Note, ...]]:
    name = GGUF_ENGINE if is_gguf(model.raw.config) else DEFAULT_ENGINE
    versions = ENGINES[name].versions if name in ENGINES else ()
    shown = f"{name} {versions[-1]}" if versions else name
    text = f"no engine was named; {shown} is taken"
    return name, (Note("engine_default", "info", text, (("engine", shown),)),)


def _idle(options: Options, prepared: Prepared, reserve: int | str | None) -> Iterator[Note]:
    """Name the options that a given pool leaves without effect, or an engine without a share."""
    is_given = prepared.setup.kv_memory_bytes is not None
    if options.utilization is not None and (is_given or prepared.engine.reads_gguf):
        yield _without_effect("--utilization", is_given=is_given)
    if reserve is not None and is_given:
        yield _without_effect("--reserve", is_given=True)


def _without_effect(name: str, *, is_given: bool) -> Note:
    text = f"{name} changes nothing where the pool is given"
    if not is_given:
        text = f"{name} changes nothing with this engine"
    return Note("option_without_effect", "warning", text, (("option", name),))


def _spread(options: Options, num_gpus: int | None, told: Mapping[str, object]) -> Options:
    """Return the options with the cards as tensor-parallel ranks where no ranks are given.

    Args:
        told: what the engine's flags say of options.

    Raises:
        InvalidRequestError: more ranks than cards.
    """
    if num_gpus is None:
        return options
    if isinstance(num_gpus, bool) or not isinstance(num_gpus, int) or num_gpus < 1:
        raise InvalidRequestError(f"there can't be {num_gpus!r} GPUs", hint="give 1 or more", field="gpu")
    stated = {name: count for name in ("tp", "pp", "dp") if isinstance(count := told.get(name), int)}
    if not stated and options.tp is None and options.pp is None and options.dp is None:
        return replace(options, tp=num_gpus)
    ranks = replace(options, **stated).parallelism.num_gpus  # type: ignore[arg-type]
    if ranks > num_gpus:
        raise InvalidRequestError(
            f"--tp, --pp and --dp make {ranks} ranks, and there are {num_gpus} GPUs",
            hint=f"give {ranks} GPUs, or fewer ranks",
            field="gpu",
        )
    return options


def _search(
    prepared: Prepared, named: NamedCard | None, weighed: WeightAnswer | None, reserve: int | str | None
) -> tuple[Search, tuple[Note, ...]]:
    """Return the request with its pool: given, or what the cards leave.

    Raises:
        InvalidRequestError: neither a pool nor a device is given.
        FeatureUnsupportedError: only a device is given, and the weights are not known.
    """
    given = prepared.setup.kv_memory_bytes
    if given is not None:
        return Search(prepared, given), ()
    if named is None:
        raise InvalidRequestError(
            "fit needs a device, or the bytes of its pool",
            hint="--gpu H100 or --memory 80GiB names a device; --kv-memory 40GiB gives the pool on each GPU",
            field="gpu",
        )
    if weighed is None:
        raise FeatureUnsupportedError(
            "what a card leaves for the cache is not known without the weights",
            hint="--kv-memory 40GiB gives the pool on each GPU instead",
            field="weights",
        )
    kept = 0 if reserve is None else parse_size(reserve, what="reserve")
    cards = CardBudget(prepared, named.memory, weighed, kept)
    search = Search(prepared, None, cards)
    return keep_free(search, kept) if kept else (search, ())


def _answer(search: Search, asked: Capacity, weighed: WeightAnswer | None) -> FitResult:
    prepared = search.prepared
    request = prepared.request
    longest, widest = search.longest(asked), search.widest(asked)
    left = search.available(asked)
    verdict = _verdict(search, asked, left)
    pool_bytes = search.pool_bytes(asked, longest)
    admission = asked.admission(pool_bytes)
    room = 0 if search.told_too_much(asked) else asked.budget(left.central_bytes)
    return FitResult(
        prepared.model,
        request,
        prepared.setup,
        asked.dtypes,
        verdict,
        _devices(search, asked, pool_bytes, weighed),
        asked.pool(pool_bytes),
        longest,
        widest,
        asked.launch_command(prepared.model.raw.id, pool_bytes),
        suggestions(verdict, longest, widest, _smaller(search, asked), admission, room),
        (
            *prepared.notes,
            *asked.notes,
            *admission,
            *prepared.late_notes,
            *_assumed(search, asked),
            *_overdrawn(search, asked, verdict),
        ),
        asked.details,
        weighed,
        Spread(*(asked.budget(size) for size in left)) if search.cards is not None else None,
    )


def _verdict(search: Search, asked: Capacity, left: Spread) -> Verdict:
    load, needed = search.prepared.request.workload, asked.needed_bytes
    room = [asked.budget(size) for size in left]
    taken, own = 0, needed
    if search.cards is not None:
        tightest = search.cards.tightest(asked)
        taken = tightest.taken_bytes
        own = needed if tightest.needed_bytes is None else tightest.needed_bytes
    stated = search.told_too_much(asked)
    if stated is not None:
        needed = own = stated[0]
        room = [stated[1]] * 3
    told_sequences, told_context = asked.max_sequences, asked.max_context_tokens
    is_told = (told_sequences is not None and load.sequences > told_sequences) or (
        told_context is not None and load.context_tokens > told_context
    )
    fits = needed <= room[1] and not is_told
    return Verdict(
        ("fits" if needed <= room[0] else "tight") if fits else "does_not_fit",
        "memory" if needed > room[1] or not is_told else "flag",
        taken + own,
        taken + own + room[1] - needed,
        max(0, taken + own - (room[2] - room[1])),
        taken + own + room[1] - room[0],
        taken,
        search.cards is not None,
    )


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


def _smaller(search: Search, asked: Capacity) -> int | None:
    """Return the bytes that the load needs with a cache in fp8; None where that is no less, or refused."""
    prepared = search.prepared
    told = prepared.engine.told(prepared.request.engine_args)
    if asked.dtypes.k not in ("bf16", "f16", "f32") or "kv_dtype" in told:
        return None
    packed = replace(
        prepared,
        setup=replace(prepared.setup, kv_word="fp8"),
        request=replace(
            prepared.request, dtypes=replace(prepared.request.dtypes, k="fp8_e4m3", v="fp8_e4m3")
        ),
    )
    try:
        needed = replace(search, prepared=packed).capacity(prepared.request.workload).needed_bytes
    except FeatureUnsupportedError:
        return None
    return needed if needed < asked.needed_bytes else None


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
    return Device(number, memory, rank.weights_bytes, grade, because, size, rank.held, spread)


__all__ = ["FitResult", "fit", "largest"]
