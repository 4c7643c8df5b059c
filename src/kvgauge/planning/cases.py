"""One question to the pipeline of ``fit``: does the load fit so many of a device, spread this way.

A model is prepared once for each layout and card, weighed once for each layout; what an engine works with is
estimated once for each way to run it.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.cache import CacheAnswer
from kvgauge.card_budget import CardBudget
from kvgauge.engine_cards import refuse_foreign
from kvgauge.engines import load_engine, parse_engine
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError, KvgaugeError
from kvgauge.fit_asking import verdict_of
from kvgauge.fit_search import Search, keep_free
from kvgauge.layers import STATE_KINDS
from kvgauge.planning.rules import plan_rules
from kvgauge.preparing import Options, prepare
from kvgauge.sizing import weigh_request
from kvgauge.values import dataclass
from kvgauge.weight_answer import LOADED_AT_LEAST
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from kvgauge.engines.pools import Capacity
    from kvgauge.estimate import Estimate, Running
    from kvgauge.fit_result import Verdict
    from kvgauge.models import Model
    from kvgauge.planning.devices import PlanDevice
    from kvgauge.preparing import Prepared
    from kvgauge.weight_answer import WeightAnswer


_ALONE = Parallelism()


@dataclass(frozen=True, slots=True)
class Formats:
    """What is stored how: None is the checkpoint's own, or what the request says.

    Args:
        kv: KV dtype in the engine's words.
        weights: a quantisation that the checkpoint does not have.
        checkpoint: another published checkpoint of the model; an evaluator of that one is asked.
    """

    kv: str | None = None
    weights: str | None = None
    checkpoint: str | None = None

    @property
    def num_changes(self) -> int:
        """How much of the checkpoint's own is given up."""
        return (self.checkpoint is not None) + (self.weights is not None) + (self.kv is not None)

    @property
    def weights_order(self) -> int:
        """The place of the weights: the checkpoint's own, then published ones, then ones to be made."""
        return 2 if self.weights is not None else int(self.checkpoint is not None)


OWN = Formats()


class Least(NamedTuple):
    """Bytes that all ranks together hold at least: weights as they are loaded, and what must be kept."""

    weights: int
    cache: int


@dataclass(frozen=True)
class Case:
    """An answer, or why there is none.

    Args:
        verdict: of ``fit``; None where the engine refuses, or a bound from below is more than the memory.
        refusal: why the engine or the weights refuse this.
        weights_bytes: on the fullest rank.
        free_bytes: what stays free of the fullest GPU.
    """

    device: PlanDevice
    count: int
    layout: Parallelism
    formats: Formats
    verdict: Verdict | None = None
    refusal: KvgaugeError | None = None
    weights_bytes: int = 0
    free_bytes: int = 0
    search: Search | None = field(default=None, compare=False, repr=False)
    asked: Capacity | None = field(default=None, compare=False, repr=False)

    @property
    def is_cut_short(self) -> bool:
        """Whether a bound was enough to tell that it can't fit."""
        return self.verdict is None and self.refusal is None

    @property
    def margin_bytes(self) -> int:
        """What is to stay beside the load on each GPU."""
        available = self.verdict.available_bytes if self.verdict is not None else 0
        return -(-available * plan_rules().margin.numerator // plan_rules().margin.denominator)

    @property
    def failure(self) -> str | None:
        """Why it is no option (refused, bound, weights, short, flag, tight, margin, overdrawn), or None."""
        verdict = self.verdict
        if verdict is None:
            return "bound" if self.refusal is None else "refused"
        if verdict.taken_bytes > verdict.available_bytes:
            return "weights"
        if not verdict.fits:
            return "short" if verdict.limiting == "memory" else "flag"
        if verdict.status != "fits":
            return "tight"
        if verdict.slack_bytes < self.margin_bytes:
            return "margin"
        return "overdrawn" if self.free_bytes < 0 else None

    @property
    def lack_bytes(self) -> int:
        """What each GPU lacks to be an option, as far as bytes say it."""
        verdict, failure = self.verdict, self.failure
        if verdict is None or failure is None:
            return 0
        worst = verdict.required_high_bytes - verdict.available_bytes
        lacks = {
            "weights": verdict.taken_bytes - verdict.available_bytes,
            "short": -verdict.slack_bytes,
            "tight": worst,
            "margin": self.margin_bytes - verdict.slack_bytes,
            "overdrawn": -self.free_bytes,
        }
        return lacks.get(failure, 0)

    @cached_property
    def multiple(self) -> float:
        """How many times the load the pool holds."""
        verdict = self.verdict
        if verdict is None:
            return 0.0
        needed = verdict.required_bytes - verdict.taken_bytes
        return (verdict.available_bytes - verdict.taken_bytes) / max(1, needed)


@dataclass
class Evaluator:
    """Asks ``fit``'s pipeline, and remembers what several questions have in common.

    Args:
        options: the load, without what is searched over.
        scheme: weights that the request asks for.
        reserve_bytes: to be kept free on each GPU.
        no_weights: they lie on none of the devices.
    """

    model: Model
    options: Options
    engine: str
    engine_args: str = ""
    scheme: str | None = None
    reserve_bytes: int = 0
    no_weights: bool = False
    _weighed: dict[object, WeightAnswer | KvgaugeError] = field(default_factory=dict, repr=False)
    _loaded: dict[int, list[tuple[int, ...]]] = field(default_factory=dict, repr=False)
    _terms: dict[object, dict[Running, tuple[Estimate, ...]]] = field(default_factory=dict, repr=False)
    _cases: dict[object, Case] = field(default_factory=dict, repr=False)
    _least: dict[object, Least] = field(default_factory=dict, repr=False)

    def ask(
        self, device: PlanDevice, layout: Parallelism, formats: Formats = OWN, *, whole: bool = False
    ) -> Case:
        """Return what ``fit`` says of a layout on a device; what an engine refuses is a case too.

        Args:
            whole: with all figures, also where a bound says already that it can't fit.
        """
        key = (device.name, device.named.memory, layout, formats)
        known = self._cases.get(key)
        if known is None or (whole and known.is_cut_short):
            known = self._cases[key] = self._ask(device, layout, formats, whole=whole)
        return known

    def is_hopeless(self, device: PlanDevice, count: int, formats: Formats) -> bool:
        """Whether so many of a device can't hold weights and cache, however they are spread."""
        least = self.least_bytes(device, formats)
        return sum(least) > count * _most(device)

    def least_bytes(self, device: PlanDevice, formats: Formats) -> Least:
        """Return what is held at least, over all ranks: no layout and no engine holds less."""
        key = (device.named.card.capability, formats)
        if key not in self._least:
            self._least[key] = self._bound(device, formats)
        return self._least[key]

    def _bound(self, device: PlanDevice, formats: Formats) -> Least:
        try:
            prepared = self.prepared(device, _ALONE, formats)
            weighed = self._weigh(prepared, device, formats)
            request = prepared.request
            asked = Search(prepared, None).capacity(request.workload)
        except KvgaugeError:
            return Least(0, 0)  # one rank alone is refused: nothing is known
        weights = min(sum(weighed.per_rank_bytes), weighed.total_bytes)
        return Least(int(weights * LOADED_AT_LEAST), _kept(prepared, asked).total_bytes)

    def _ask(self, device: PlanDevice, layout: Parallelism, formats: Formats, *, whole: bool) -> Case:
        case = Case(device, layout.num_gpus, layout, formats)
        try:
            prepared = self.prepared(device, layout, formats)
            weighed = self._weigh(prepared, device, formats)
            heaviest = max(weighed.per_rank_bytes)
            least = int(LOADED_AT_LEAST * heaviest) + self.least_bytes(device, formats).cache // case.count
            if least > _most(device) and not whole:
                return replace(case, weights_bytes=heaviest)
            search = self._search(prepared, device, weighed, formats)
            asked = search.capacity(search.prepared.request.workload)
            verdict = verdict_of(search, asked)
            free = search.cards.free_bytes(asked) if search.cards is not None and verdict.fits else 0
        except (FeatureUnsupportedError, InvalidRequestError) as error:
            return replace(case, refusal=error)
        return replace(
            case, verdict=verdict, weights_bytes=heaviest, free_bytes=free, search=search, asked=asked
        )

    def needed_bytes(self, device: PlanDevice, layout: Parallelism, formats: Formats = OWN) -> int | None:
        """Return what the load takes of the fullest rank's pool, whether or not it fits; None if refused."""
        try:
            prepared = self.prepared(device, layout, formats)
            return Search(prepared, None).capacity(prepared.request.workload).needed_bytes
        except KvgaugeError:
            return None

    def state_bytes(self, device: PlanDevice, layout: Parallelism) -> int | None:
        """Return the recurrent state that the fullest rank must keep for all sequences; None if refused."""
        try:
            prepared = self.prepared(device, layout)
            kept = _kept(prepared, Search(prepared, None).capacity(prepared.request.workload))
            ranks = kept.rank_group_bytes
        except KvgaugeError:
            return None
        kinds = [demand.group.kind for demand in kept.demand.groups]
        return max(
            sum(size for kind, size in zip(kinds, sizes, strict=True) if kind in STATE_KINDS)
            for sizes in ranks
        )

    def of_sequences(self, count: int) -> Evaluator:
        """Return who is asked about so many sequences; what does not depend on them is shared."""
        return replace(self, options=replace(self.options, sequences=count), _cases={}, _least={})

    def weights_bytes(self, scheme: str | None) -> int:
        """Return the bytes of the whole model: in a scheme, else in what is asked for, else as it is."""
        word = scheme or self.scheme
        stored = (self.model.weighed if word is None else self.model.weighed_as(word)).stored
        return 0 if stored is None else stored.num_bytes

    def prepared(self, device: PlanDevice, layout: Parallelism, formats: Formats = OWN) -> Prepared:
        """Return the request for a layout on a device.

        Raises:
            KvgaugeError: the request is refused.
        """
        options = replace(
            self.options,
            tp=layout.tensor,
            pp=layout.pipeline,
            dp=layout.data,
            ep=layout.expert,
            dcp=layout.context,
            kv_dtype=formats.kv or self.options.kv_dtype,
        )
        refuse_foreign(*parse_engine(self.engine), device.name, device.named.make)
        return prepare(
            self.model, options, engine=self.engine, engine_args=self.engine_args, card=device.named.card
        )

    def _weigh(self, prepared: Prepared, device: PlanDevice, formats: Formats) -> WeightAnswer:
        """Return the weights cut for a layout."""
        key = (prepared.request.parallelism, formats.weights, device.named.card.capability)
        if key not in self._weighed:
            try:
                self._weighed[key] = self._cut(prepared, formats.weights or self.scheme)
            except KvgaugeError as error:
                self._weighed[key] = error
        weighed = self._weighed[key]
        if isinstance(weighed, KvgaugeError):
            raise weighed
        return weighed

    def _cut(self, prepared: Prepared, scheme: str | None) -> WeightAnswer:
        """Return the weights of a request; cut as its engine cuts them."""
        found, _ = weigh_request(prepared, scheme=scheme, without=False)
        if found is None:
            raise FeatureUnsupportedError(
                "what a card leaves for the cache is not known without the weights",
                hint="--kv-memory 40GiB gives the pool on each GPU instead",
                field="weights",
            )
        return replace(found, elsewhere=True) if self.no_weights else found

    def _search(
        self,
        prepared: Prepared,
        device: PlanDevice,
        weighed: WeightAnswer,
        formats: Formats,
    ) -> Search:
        loaded = self._loaded.setdefault(id(weighed), [])
        terms = self._terms.setdefault(formats.weights, {})
        kept = self.reserve_bytes
        cards = CardBudget(prepared, device.named.memory, weighed, kept, terms, loaded)
        search = Search(prepared, None, cards)
        return keep_free(search, kept)[0] if kept else search


def _kept(prepared: Prepared, asked: Capacity) -> CacheAnswer:
    """Return what must be kept of a load, whatever the engine sets aside for it."""
    architecture, request = prepared.model.architecture, prepared.request
    demand = load_engine("theory").demand(architecture, request.workload, asked.dtypes, version=None, args="")
    return CacheAnswer(architecture, request.workload, request.parallelism, demand)


def _most(device: PlanDevice) -> int:
    """Return more than any engine may use of a device."""
    return device.named.memory.high_bytes


__all__ = ["OWN", "Case", "Evaluator", "Formats"]
