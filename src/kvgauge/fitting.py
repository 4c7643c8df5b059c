"""``fit``: does a load fit, and what is the most that would. The public call behind the command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.cards import card_of
from kvgauge.engines import ENGINES
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.fit_result import Device, FitResult, Reach, Verdict
from kvgauge.fit_words import suggestions, verdict_note
from kvgauge.models import Model, ModelLike, load
from kvgauge.preparing import Options, Prepared, prepare
from kvgauge.readers import is_gguf
from kvgauge.sizing import weigh_request
from kvgauge.units import MAX_SEQUENCES, MAX_TOKENS
from kvgauge.workload import Workload

if TYPE_CHECKING:
    from kvgauge.engines.pools import Capacity
    from kvgauge.engines.setup import Card
    from kvgauge.sources.weight_files import Progress
    from kvgauge.weight_answer import WeightAnswer

DEFAULT_ENGINE = "vllm"
GGUF_ENGINE = "llama.cpp"


def fit(
    model: ModelLike,
    *,
    gpu: str | None = None,
    num_gpus: int | None = None,
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

    Args:
        model: anything ``load`` accepts.
        gpu: a card by name, ``NAME:COUNT`` for several; it sets the engine's defaults.
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
    named = card_of(gpu) if gpu is not None else None
    card, count = (named.card, named.count) if named is not None else (None, None)
    options = Options(
        context, max_model_len, sequences, encoder_tokens, image_tokens, shared_prefix, kv_dtype, k_dtype,
        v_dtype, state_dtype, index_dtype, mtp, tp, pp, dp, ep, dcp, kv_memory, utilization,
    )  # fmt: skip
    options = _spread(options, num_gpus if num_gpus is not None else count)
    name, notes = (engine, ()) if engine is not None else _default_engine(loaded)
    notes = (*notes, *(named.notes if named is not None else ()), *_idle(utilization, kv_memory))
    prepared = prepare(loaded, options, engine=name, engine_args=engine_args, card=card)
    search = _Search(prepared, _available(prepared, card))
    asked = search.capacity(prepared.request.workload)
    weighed, weight_notes = weigh_request(prepared, scheme=weights, without=no_weights)
    answer = _answer(search, asked, weighed, card)
    return replace(answer, check=check, notes=(*notes, *answer.notes, *weight_notes))


def _default_engine(model: Model) -> tuple[str, tuple[Note, ...]]:
    name = GGUF_ENGINE if is_gguf(model.raw.config) else DEFAULT_ENGINE
    versions = ENGINES[name].versions if name in ENGINES else ()
    shown = f"{name} {versions[-1]}" if versions else name
    text = f"no engine was named; {shown} is taken"
    return name, (Note("engine_default", "info", text, (("engine", shown),)),)


def _idle(utilization: float | str | None, kv_memory: int | str | None) -> tuple[Note, ...]:
    """Name the option that a given pool leaves without effect."""
    if utilization is None or kv_memory is None:
        return ()
    name = "--utilization"
    text = f"{name} changes nothing where the pool is given"
    return (Note("option_without_effect", "warning", text, (("option", name),)),)


def _spread(options: Options, num_gpus: int | None) -> Options:
    """Return the options with the cards as tensor-parallel ranks where no ranks are given.

    Raises:
        InvalidRequestError: more ranks than cards.
    """
    if num_gpus is None:
        return options
    if isinstance(num_gpus, bool) or not isinstance(num_gpus, int) or num_gpus < 1:
        raise InvalidRequestError(f"there can't be {num_gpus!r} GPUs", hint="give 1 or more", field="gpu")
    if options.tp is None and options.pp is None and options.dp is None:
        return replace(options, tp=num_gpus)
    ranks = options.parallelism.num_gpus
    if ranks > num_gpus:
        raise InvalidRequestError(
            f"--tp, --pp and --dp make {ranks} ranks, and there are {num_gpus} GPUs",
            hint=f"give {ranks} GPUs, or fewer ranks",
            field="gpu",
        )
    return options


def _available(prepared: Prepared, card: Card | None) -> int:
    """Return the bytes of the pool on each rank.

    Raises:
        InvalidRequestError: neither a pool nor a device is given.
        FeatureUnsupportedError: only a device is given.
    """
    given = prepared.setup.kv_memory_bytes
    if given is not None:
        return given
    if card is None:
        raise InvalidRequestError(
            "fit needs a device, or the bytes of its pool",
            hint="--kv-memory 40GiB gives the pool on each GPU",
            field="gpu",
        )
    raise FeatureUnsupportedError(
        "the pool is given with --kv-memory in this release",
        hint="an engine's start-up log prints it: --kv-memory 40GiB",
        field="kv-memory",
    )


@dataclass(frozen=True)
class _Search:
    """The engine's answers for other loads of one request."""

    prepared: Prepared
    available_bytes: int

    def capacity(self, workload: Workload) -> Capacity:
        prepared = self.prepared
        request = prepared.request
        return prepared.engine.capacity(
            prepared.architecture,
            workload,
            request.dtypes,
            version=request.engine_version,
            args=request.engine_args,
            setup=prepared.setup,
        )

    def holds(self, workload: Workload) -> bool:
        found = self.capacity(workload)
        return found.needed_bytes <= found.budget(self.available_bytes)

    def longest(self, asked: Capacity) -> Reach:
        """Return the longest context of as many sequences as were asked for."""
        load = self.prepared.request.workload
        limit = self.prepared.architecture.context_limit_tokens
        told = asked.max_context_tokens
        bounds = [(told, "flag"), (limit if told is None else None, "model"), (MAX_TOKENS, "engine")]
        most, by = min(((n, word) for n, word in bounds if n is not None), key=lambda bound: bound[0])

        def fits(tokens: int) -> bool:
            prefix = min(load.shared_prefix_tokens, tokens)
            return self.holds(replace(load, context_tokens=tokens, shared_prefix_tokens=prefix))

        found = largest(most, fits)
        return Reach(found, by if found == most else "memory")

    def widest(self, asked: Capacity) -> Reach:
        """Return the most sequences of the context that was asked for."""
        told = asked.max_sequences
        limit: int = getattr(asked, "engine_max_sequences", MAX_SEQUENCES)
        most, by = (limit, "engine") if told is None else (told, "flag")
        room = asked.budget(self.available_bytes)
        found = largest(most, lambda count: asked.with_sequences(count).needed_bytes <= room)
        return Reach(found, by if found == most else "memory")


def largest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number up to ``most`` that fits, 0 if 1 does not; what fits never resumes.

    >>> largest(1000, lambda n: n <= 300), largest(10, lambda n: n <= 300), largest(10, lambda n: False)
    (300, 10, 0)
    """
    low, high = 0, max(0, most) + 1
    if most > 0 and fits(most):
        return most
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _answer(search: _Search, asked: Capacity, weighed: WeightAnswer | None, card: Card | None) -> FitResult:
    prepared, available_bytes = search.prepared, search.available_bytes
    request = prepared.request
    longest, widest = search.longest(asked), search.widest(asked)
    verdict = _verdict(asked, request.workload, asked.budget(available_bytes))
    admission = asked.admission(available_bytes)
    return FitResult(
        prepared.model,
        request,
        prepared.setup,
        asked.dtypes,
        verdict,
        _devices(asked, available_bytes, weighed, card, request.parallelism.tensor),
        asked.pool(available_bytes),
        longest,
        widest,
        asked.launch_command(prepared.model.raw.id, available_bytes),
        suggestions(verdict, longest, widest, _smaller(search, asked), admission),
        (*prepared.notes, *asked.notes, *admission, *prepared.late_notes),
        asked.details,
        weighed,
    )


def _verdict(asked: Capacity, load: Workload, available_bytes: int) -> Verdict:
    needed = asked.needed_bytes
    told_sequences, told_context = asked.max_sequences, asked.max_context_tokens
    is_told = (told_sequences is not None and load.sequences > told_sequences) or (
        told_context is not None and load.context_tokens > told_context
    )
    limiting = "memory" if needed > available_bytes or not is_told else "flag"
    fits = needed <= available_bytes and not is_told
    return Verdict(
        fits, limiting, needed, available_bytes, verdict_note(fits, limiting, needed, available_bytes)
    )


def _smaller(search: _Search, asked: Capacity) -> int | None:
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
        needed = _Search(packed, search.available_bytes).capacity(prepared.request.workload).needed_bytes
    except FeatureUnsupportedError:
        return None
    return needed if needed < asked.needed_bytes else None


def _devices(
    asked: Capacity, available_bytes: int, weighed: WeightAnswer | None, card: Card | None, tensor: int
) -> tuple[Device, ...]:
    pools = [size for size in asked.allocated_bytes(available_bytes) for _ in range(tensor)]
    held = weighed.per_rank_bytes if weighed is not None else (None,) * len(pools)
    grade = weighed.grade if weighed is not None else "exact"
    because = weighed.because if weighed is not None else ""
    memory = None if card is None else card.memory_bytes
    return tuple(
        Device(rank, memory, weights, grade, because, pool)
        for rank, (weights, pool) in enumerate(zip(held, pools, strict=True))
    )


__all__ = ["FitResult", "fit", "largest"]
