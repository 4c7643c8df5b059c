"""A question of ``fit`` as a value, and its verdict: what changes a question may be asked again.

``fit`` asks one; its remedies ask the same with one thing changed, so that what they promise is what ``fit``
answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.card_budget import CardBudget
from kvgauge.cards import card_of
from kvgauge.engine_cards import foreign_code_notes, refuse_foreign
from kvgauge.engines import load_engine, parse_engine
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.fit_result import Reach, Verdict
from kvgauge.fit_search import Search, is_refused, keep_free
from kvgauge.preparing import Options, Prepared, prepare
from kvgauge.sizing import beside_weights, weigh_request
from kvgauge.units import parse_size
from kvgauge.values import dataclass

if TYPE_CHECKING:
    from kvgauge.cards import NamedCard
    from kvgauge.engines.pools import Capacity
    from kvgauge.models import Model
    from kvgauge.weight_answer import WeightAnswer


#: What is to be known of an answer without the weights.
WEIGHTS_ELSEWHERE = Note(
    "weights_elsewhere",
    "warning",
    "the weights are left out: this is what GPUs hold that none of them lie on",
)


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that a verdict follows from, as it was given; the fields are keywords of ``fit``.

    Args:
        scheme: ``weights`` of ``fit``.
        no_weights: they lie on none of the devices.
    """

    model: Model
    options: Options
    engine: str
    engine_args: str = ""
    gpu: str | None = None
    num_gpus: int | None = None
    memory: int | str | None = None
    gpu_file: str | None = None
    reserve: int | str | None = None
    scheme: str | None = None
    no_weights: bool = False


@dataclass(frozen=True)
class Posed:
    """A question with what was found for it.

    Args:
        asked: the engine's capacity for the load itself.
        notes: what to say before the engine's notes; ``late_notes``: after them.
    """

    question: Question
    search: Search
    asked: Capacity
    weighed: WeightAnswer | None
    named: NamedCard | None
    notes: tuple[Note, ...]
    late_notes: tuple[Note, ...]
    verdict: Verdict

    @cached_property
    def longest(self) -> Reach:
        """The longest context of as many sequences as are asked for."""
        return self.search.longest(self.asked)

    @cached_property
    def widest(self) -> Reach:
        """The most sequences of the context that is asked for."""
        return self.search.widest(self.asked)


def pose(question: Question, like: Posed | None = None) -> Posed:
    """Return what is found for a question, the search for the most that fits left out.

    Args:
        like: a question that differs in a few things; what both have in common is not worked out again.

    Raises:
        KvgaugeError: the request or its combination is refused; says why.
    """
    named = card_of(question.gpu, question.memory, question.gpu_file)
    count = question.num_gpus
    if count is None and named is not None:
        count = named.count
    told = load_engine(parse_engine(question.engine)[0]).told(question.engine_args)
    options = _spread(question.options, count, told)
    card = None if named is None else named.card
    if named is not None:
        refuse_foreign(*parse_engine(question.engine), named.card.name, named.make)
    prepared = prepare(
        question.model, options, engine=question.engine, engine_args=question.engine_args, card=card
    )
    notes = (*_of_card(named, prepared.request.engine), *idle_notes(options, prepared, question.reserve))
    asked = Search(prepared, None).capacity(prepared.request.workload)  # refuses before weights are cut
    weighed, weight_notes = weigh_request(
        prepared,
        scheme=question.scheme,
        without=question.no_weights and prepared.setup.kv_memory_bytes is not None,
        like=None if like is None else like.weighed,
    )
    if question.no_weights and weighed is not None:
        weighed, weight_notes = replace(weighed, elsewhere=True), (*weight_notes, WEIGHTS_ELSEWHERE)
    plain, prepared = prepared, beside_weights(prepared, weighed)
    search, kept_notes = _search(prepared, named, weighed, question.reserve, like)
    if search.prepared is not plain:
        asked = search.capacity(prepared.request.workload)
    verdict = verdict_of(search, asked)
    return Posed(question, search, asked, weighed, named, notes, (*kept_notes, *weight_notes), verdict)


def _of_card(named: NamedCard | None, engine: str) -> Iterator[Note]:
    """Say how the name of a card was read, and through whose code the engine runs on it."""
    if named is not None:
        yield from named.notes
        yield from foreign_code_notes(engine, named.card.name, named.make)


def idle_notes(options: Options, prepared: Prepared, reserve: int | str | None) -> Iterator[Note]:
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
    prepared: Prepared,
    named: NamedCard | None,
    weighed: WeightAnswer | None,
    reserve: int | str | None,
    like: Posed | None,
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
    if like is not None and like.search.cards is not None and like.weighed is weighed:
        cards = cards.knowing(like.search.cards)
    search = Search(prepared, None, cards)
    return keep_free(search, kept) if kept else (search, ())


def verdict_of(search: Search, asked: Capacity) -> Verdict:
    """Return whether a load fits the pool that it finds.

    Args:
        asked: the engine's capacity for the load.
    """
    left = search.available(asked)
    load, needed = search.prepared.request.workload, asked.needed_bytes
    room = [asked.budget(size) for size in left]
    taken, own, weights = 0, needed, 0
    if search.cards is not None:
        tightest = search.cards.tightest(asked)
        taken, weights = tightest.taken_bytes, tightest.weights_bytes
        own = needed if tightest.needed_bytes is None else tightest.needed_bytes
    stated = search.told_too_much(asked)
    if stated is not None:
        needed = own = stated[0]
        room = [stated[1]] * 3
    is_told = is_refused(asked, load)
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
        weights,
    )


__all__ = ["WEIGHTS_ELSEWHERE", "Posed", "Question", "idle_notes", "pose", "verdict_of"]
