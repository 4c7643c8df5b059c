"""The decision as questions with the numbers in: one GPU, more copies, other formats, then more ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.fit_search import largest
from kvgauge.planning.asking import AXES
from kvgauge.planning.cases import OWN, Case, Evaluator, Formats
from kvgauge.planning.needs import lack_notes, need_note
from kvgauge.planning.ranking import layout_text
from kvgauge.planning.ranks_path import rank_steps
from kvgauge.planning.result import PathStep
from kvgauge.planning.search import closest, machines_of
from kvgauge.units import format_bytes
from kvgauge.values import dataclass
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from kvgauge.planning.asking import Asked
    from kvgauge.planning.devices import PlanDevice
    from kvgauge.planning.layouts import Space

_ALONE = Parallelism()
YES, NO = Note("plan_yes", "info", "yes"), Note("plan_no", "info", "no")


@dataclass(frozen=True)
class Walk:
    """What the questions are asked of.

    Args:
        device: the device of the first option, or what comes closest.
        devices: all that were looked at.
        chosen: the first option; None where nothing holds the load.
    """

    evaluator: Evaluator
    space: Space
    asked: Asked
    device: PlanDevice
    devices: tuple[PlanDevice, ...]
    chosen: Case | None

    @property
    def axes(self) -> frozenset[str]:
        """Options of parallelism that the engine has."""
        return self.asked.rules.axes

    @property
    def gpu(self) -> str:
        """The name of the device."""
        return self.device.name or "GPU"

    def ask(self, layout: Parallelism = _ALONE, formats: Formats = OWN) -> Case:
        """Return what ``fit`` says."""
        return self.evaluator.ask(self.device, layout, formats, whole=True)


def decision_path(walk: Walk) -> Iterator[PathStep]:
    """Yield the questions in their order; those that an answer settles are left out."""
    yield from _given(walk) if walk.asked.given_ranks > 1 else _searched(walk)
    if walk.chosen is not None:
        yield _chosen(walk.chosen)


def _given(walk: Walk) -> Iterator[PathStep]:
    """Yield what is left to ask where ranks are given: one GPU is out of the question."""
    if walk.chosen is None:
        question, case = (
            Note("plan_ask_given", "info", "Do the ranks that are given hold the load?"),
            _fullest(walk),
        )
        yield PathStep(question, NO, ()) if case is None else _outcome(question, case)
    if not walk.asked.told.keys() & set(AXES):  # flags would answer for every other layout too
        yield from rank_steps(walk, needed=False)


def _fullest(walk: Walk) -> Case | None:
    """Return what comes closest on the most GPUs of the device that can be laid out as given."""
    machines = reversed(machines_of([walk.device], walk.asked.given_ranks))
    cases = (closest(walk.evaluator, walk.space, machine) for machine in machines)
    return next((case for case in cases if case is not None), None)


def _searched(walk: Walk) -> Iterator[PathStep]:
    alone = walk.ask()
    if alone.failure == "refused":
        yield _refused(alone)
    else:
        has_weights = alone.verdict is not None and alone.verdict.taken_bytes <= alone.verdict.available_bytes
        if not (walk.asked.no_weights and has_weights):
            yield _weights_step(walk, alone, fits=has_weights)
        if has_weights:
            yield _cache_step(walk, alone)
            yield _copies_step(walk, alone)
    if alone.failure is not None:
        yield from _other_formats(walk, alone)
        yield _bigger(walk)
    yield from rank_steps(walk, needed=alone.failure is not None)


def _refused(alone: Case) -> PathStep:
    why = alone.refusal.message if alone.refusal is not None else ""
    question = Note("plan_ask_one", "info", "Does one GPU do?")
    return PathStep(question, NO, (Note("plan_refused", "info", why, (("why", why),)),))


def _weights_step(walk: Walk, alone: Case, *, fits: bool) -> PathStep:
    text = f"Do the weights fit one {walk.gpu}?"
    question = Note("plan_ask_weights", "info", text, (("gpu", walk.gpu),))
    verdict = alone.verdict
    assert verdict is not None  # noqa: S101 - refusals were told before
    sizes = (verdict.weights_bytes, verdict.taken_bytes - verdict.weights_bytes, verdict.available_bytes)
    weights, beside, available = (format_bytes(size) for size in sizes)
    text = f"{weights} of weights and {beside} to work with, of {available} that the engine may use"
    shown = (("weights", weights), ("working", beside), ("available", available))
    return PathStep(
        question, YES if fits else NO, (Note("plan_weights_working", "info", text, shown, sizes),)
    )


def _load(walk: Walk) -> tuple[tuple[str, str], tuple[str, str]]:
    load = walk.evaluator.prepared(walk.device, _ALONE).request.workload
    return ("sequences", f"{load.sequences:,}"), ("context", f"{load.context_tokens:,}")


def _cache_step(walk: Walk, alone: Case) -> PathStep:
    load = _load(walk)
    sequences, context = load[0][1], load[1][1]
    text = f"Is what remains enough for {sequences} x {context} tokens?"
    question = Note("plan_ask_cache", "info", text, load)
    verdict = alone.verdict
    assert verdict is not None  # noqa: S101 - asked of a case that has one
    sizes = (verdict.available_bytes - verdict.taken_bytes, verdict.required_bytes - verdict.taken_bytes)
    left, needed = (format_bytes(size) for size in sizes)
    text = f"{left} remain, the load needs {needed}"
    reasons = [Note("plan_cache_left", "info", text, (("left", left), ("needed", needed)), sizes)]
    if alone.failure == "flag":
        reasons.append(Note("plan_cache_flag", "info", "the engine's flags allow less"))
    reasons += lack_notes(alone)
    return PathStep(question, YES if alone.failure is None else NO, tuple(reasons))


def _copies_step(walk: Walk, alone: Case) -> PathStep:
    """Ask about data parallelism: a copy of the model on each GPU."""
    question = Note("plan_ask_copies", "info", "Would a copy of the model on each of several GPUs do?")
    wanted = walk.evaluator.prepared(walk.device, _ALONE).request.workload.sequences
    held = _held(walk, alone, wanted)
    text = f"one GPU holds {held:,} of these sequences"
    because = Note("plan_holds", "info", text, (("count", f"{held:,}"),))
    if alone.failure is None:
        text = "not needed for memory; copies serve more requests at once"
        return PathStep(question, Note("plan_copies_spare", "info", text), (because,))
    if not 0 < held < wanted:
        return PathStep(question, NO, (because,))
    count = f"{-(-wanted // held):,}"
    text = f"{count} copies hold the load"
    return PathStep(question, Note("plan_copies", "info", text, (("count", count),)), (because,))


def _held(walk: Walk, alone: Case, wanted: int) -> int:
    """Return how many of the sequences one GPU holds: all that fit, or so many that the margin is kept."""
    if alone.search is None or alone.asked is None:
        return 0
    most = alone.search.widest(alone.asked).count
    if alone.failure is None:
        return most

    def fits(count: int) -> bool:
        asker = walk.evaluator.of_sequences(count)
        return asker.ask(walk.device, _ALONE, whole=True).failure is None

    return largest(min(most, wanted), fits)


def _other_formats(walk: Walk, alone: Case) -> Iterator[PathStep]:
    """Ask about the cache in 8 bits, a shorter context, and quantised weights, on one GPU."""
    if walk.asked.is_kv_free:
        word = walk.asked.rules.kv_word
        text = f"Would the cache in {word} do on one GPU?"
        question = Note("plan_ask_small_cache", "info", text, (("dtype", word),))
        yield _outcome(question, walk.ask(formats=Formats(kv=word)))
    if alone.search is not None and alone.asked is not None:
        found = alone.search.longest(alone.asked)
        if found.count:
            text = f"up to {found.count:,} tokens fit"
            question = Note("plan_ask_shorter", "info", "How long may the context be on one GPU?")
            answer = Note("plan_longest", "info", text, (("tokens", f"{found.count:,}"),))
            yield PathStep(question, answer, ())
    yield from _published(walk)
    for scheme in walk.asked.schemes:
        text = f"Would weights in {scheme} do on one GPU?"
        question = Note("plan_ask_scheme", "info", text, (("scheme", scheme),))
        yield _outcome(question, walk.ask(formats=Formats(weights=scheme)))


def _published(walk: Walk) -> Iterator[PathStep]:
    """Ask about the largest published checkpoint that does on one GPU, else the smallest."""
    cases = [
        (name, other.evaluator.ask(walk.device, _ALONE, Formats(checkpoint=name), whole=True))
        for name, other in walk.asked.published.items()
    ]
    if not cases:
        return
    name, case = next((row for row in cases if row[1].failure is None), cases[-1])
    text = f"Would the published checkpoint {name} do on one GPU?"
    yield _outcome(Note("plan_ask_published", "info", text, (("name", name),)), case)


def _outcome(question: Note, case: Case) -> PathStep:
    """Return the answer of a case on one GPU: what it needs of what there is."""
    if case.failure == "refused" and case.refusal is not None:
        why = case.refusal.message
        return PathStep(question, NO, (Note("plan_refused", "info", why, (("why", why),)),))
    answer = YES if case.failure is None else NO
    return PathStep(question, answer, (need_note(case),))


def _bigger(walk: Walk) -> PathStep:
    """Ask for the smallest device that does it alone, of the same maker before others."""
    question = Note("plan_ask_bigger", "info", "Which single GPU would do?")
    devices = walk.devices if len(walk.devices) > 1 else walk.asked.catalogue
    bigger = (device for device in devices if device.memory_bytes > walk.device.memory_bytes)
    maker = walk.device.vendor  # other makers' cards come with other software
    larger = sorted(bigger, key=lambda device: (device.vendor != maker, device.memory_bytes))
    for device in larger:
        if walk.evaluator.is_hopeless(device, 1, OWN):
            continue
        case = walk.evaluator.ask(device, _ALONE)
        if case.failure is None:
            answer = Note("plan_name", "info", device.name, (("name", device.name),))
            return PathStep(question, answer, (need_note(case),))
    count = f"{len(larger)}"
    text = f"none of {count} with more memory"
    return PathStep(question, Note("plan_none_of", "info", text, (("count", count),)), ())


def _chosen(case: Case) -> PathStep:
    question = Note("plan_ask_choice", "info", "What does it come to?")
    how = f"{case.count} x {case.device.name or 'GPU'}, {layout_text(case.layout)}"
    return PathStep(question, Note("plan_name", "info", how, (("name", how),)), (need_note(case),))


def rack_step(device: PlanDevice, weights_bytes: int) -> PathStep:
    """Return how many of a device hold the weights alone: a bound from below, no engine is known on it.

    Args:
        weights_bytes: of the whole model.
    """
    name, memory = device.name, device.named.memory.high_bytes
    text = f"{name}: how many hold the weights alone?"
    question = Note("plan_ask_racks", "info", text, (("gpu", name),))
    count = f"{-(-weights_bytes // memory):,}"
    answer = Note("plan_at_least", "info", f"at least {count}", (("count", count),))
    sizes = (weights_bytes, memory)
    weights, each = (format_bytes(size) for size in sizes)
    text = f"{weights} of weights, {each} in each"
    shown = (("weights", weights), ("memory", each))
    return PathStep(question, answer, (Note("plan_racks", "info", text, shown, sizes),))


__all__ = ["Walk", "decision_path", "rack_step"]
