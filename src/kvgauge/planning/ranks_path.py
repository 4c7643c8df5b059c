"""The part of the decision about ranks: how many GPUs, what tensor ranks leave whole, then machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.layers import STATE_KINDS
from kvgauge.planning.cases import OWN, Formats
from kvgauge.planning.needs import need_note
from kvgauge.planning.result import PathStep
from kvgauge.planning.rules import plan_rules
from kvgauge.planning.search import closest, machines_of
from kvgauge.units import format_bytes
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from kvgauge.planning.cases import Case
    from kvgauge.planning.path import Walk


def rank_steps(walk: Walk, *, needed: bool) -> Iterator[PathStep]:
    """Yield the questions about ranks.

    Args:
        needed: one GPU does not do.
    """
    if "tp" in walk.axes:
        if needed:
            yield from _tensor(walk)
            yield from _refused(walk)
        yield from _heads(walk)
        yield from _copied(walk)
        yield from _states(walk)
    elif needed:
        yield from _layers(walk)
    if needed:
        yield _pipeline(walk)


def _degrees(walk: Walk) -> list[int]:
    """Return the sizes of tensor parallelism that divide the attention heads."""
    heads = walk.space.heads
    return [n for n in range(1, plan_rules().max_tensor + 1) if not heads or heads % n == 0]


def _tensor(walk: Walk) -> Iterator[PathStep]:
    heads, degrees = walk.space.heads, _degrees(walk)
    question = Note("plan_ask_tensor", "info", "Over how many GPUs of one machine by tensor parallelism?")
    shown = ", ".join(str(n) for n in degrees)
    divisors = Note("plan_no_heads", "info", "no attention heads to divide")
    if heads:
        text = f"{heads} attention heads are divided by {shown}"
        divisors = Note("plan_divisors", "info", text, (("heads", f"{heads}"), ("degrees", shown)))
    yield from _spread(walk, question, [Parallelism(n) for n in degrees if n > 1], divisors)


def _layers(walk: Walk) -> Iterator[PathStep]:
    """Ask of an engine that deals out whole layers: each GPU holds the weights and the cache of its own."""
    question = Note("plan_ask_layers", "info", "Over how many GPUs by layers?")
    counts = [n for n in walk.device.counts() if 1 < n <= walk.asked.rules.max_pipeline]
    layers = f"{walk.evaluator.model.architecture.num_layers:,}"
    text = f"{layers} layers are dealt out, each GPU holds weights and cache of its own"
    dealt = Note("plan_layers_dealt", "info", text, (("layers", layers),))
    yield from _spread(walk, question, [Parallelism(pipeline=n) for n in counts], dealt)


def _spread(walk: Walk, question: Note, layouts: Sequence[Parallelism], first: Note) -> Iterator[PathStep]:
    """Ask for the fewest GPUs, then for fewer of them with the cache in 8 bits."""
    cases = [walk.ask(layout) for layout in layouts]
    found = _fewest(cases)
    yield _count_step(question, cases, found, (first,))
    fewer = layouts if found is None else layouts[: cases.index(found)]
    word = walk.asked.rules.kv_word
    if not walk.asked.is_kv_free or not fewer or walk.ask(formats=Formats(kv=word)).failure is None:
        return
    small = [walk.ask(layout, Formats(kv=word)) for layout in fewer]
    text = f"And with the cache in {word}?"
    question = Note("plan_ask_spread_cache", "info", text, (("dtype", word),))
    yield _count_step(question, small, _fewest(small) or found, ())


def _fewest(cases: Iterable[Case]) -> Case | None:
    return next((case for case in cases if case.failure is None), None)


def _count_step(
    question: Note, cases: Sequence[Case], found: Case | None, first: tuple[Note, ...]
) -> PathStep:
    reasons = (*first, *(need_note(case) for case in cases if case.failure != "refused"))
    if found is None:
        most = str(max((case.count for case in cases), default=1))
        text = f"none up to {most} does"
        return PathStep(question, Note("plan_no_degree", "info", text, (("most", most),)), reasons)
    count = str(found.count)
    return PathStep(question, Note("plan_degree", "info", count, (("count", count),)), reasons)


def _refused(walk: Walk) -> Iterator[PathStep]:
    """Name degrees that divide the heads and are refused: by KV heads, groups or quantisation blocks."""
    cases = [walk.ask(Parallelism(n)) for n in _degrees(walk) if n > 1]
    refused = [case for case in cases if case.refusal is not None]
    if not refused:
        return
    shown = ", ".join(str(case.count) for case in refused)
    question = Note("plan_ask_refused", "info", "Which of these degrees can't be had?")
    answer = Note("plan_degrees", "info", shown, (("degrees", shown),))
    words = dict.fromkeys(case.refusal.message for case in refused if case.refusal is not None)
    yield PathStep(
        question, answer, tuple(Note("plan_refused", "info", why, (("why", why),)) for why in words)
    )


def _heads(walk: Walk) -> Iterator[PathStep]:
    """Say up to where KV heads are divided, and what the copies beyond cost."""
    heads = walk.space.kv_heads
    if not heads:
        return
    question = Note("plan_ask_heads", "info", "How far does tensor parallelism shrink the KV cache?")
    most = plan_rules().max_tensor
    kept = f"{heads:,}"
    if heads >= most:
        text = f"to the full: {kept} KV heads for up to {most} ranks"
        shown = (("heads", kept), ("most", str(most)))
        yield PathStep(question, Note("plan_heads_enough", "info", text, shown), ())
        return
    text = f"up to TP {kept}: no KV saving past TP {kept}"
    answer = Note("plan_heads_until", "info", text, (("heads", kept),))
    copies = f"{most / heads:g}"
    text = f"{kept} KV heads: with {most} ranks each is held {copies} times, by all together"
    values = (("heads", kept), ("most", str(most)), ("copies", copies))
    degrees = [n for n in dict.fromkeys((1, heads, max(_degrees(walk)))) if n in _degrees(walk)]
    sizes = _cache_notes(walk, [(f"TP{n}", Parallelism(n)) for n in degrees])
    yield PathStep(question, answer, (Note("plan_heads_copies", "info", text, values), *sizes))


def _cache_notes(walk: Walk, layouts: Iterable[tuple[str, Parallelism]]) -> Iterator[Note]:
    """Yield what the load takes of each GPU's pool; layouts that are refused are left out."""
    for name, layout in layouts:
        size = walk.evaluator.needed_bytes(walk.device, layout)
        if size is not None:
            text = f"{name}: {format_bytes(size)} of cache on each GPU"
            shown = (("layout", name), ("size", format_bytes(size)))
            yield Note("plan_cache_each", "info", text, shown, (size,))


def _copied(walk: Walk) -> Iterator[PathStep]:
    """Say that latents and indexes lie whole on every rank, and what replicas or context ranks hold."""
    if not walk.space.replicated:
        return
    most = max(_degrees(walk))
    question = Note("plan_ask_latents", "info", "Does tensor parallelism shrink latents and indexes?")
    pairs = [("TP1", Parallelism()), (f"TP{most}", Parallelism(most))]
    if "dp" in walk.axes and walk.space.sequences > 1:
        pairs.append((f"DP{most}", Parallelism(1, data=most, expert=most if walk.space.has_experts else 1)))
    if "dcp" in walk.axes:
        pairs.append((f"DCP{most}", Parallelism(most, context=most)))
    text = "no, every rank holds them whole: data-parallel attention or context parallelism first"
    yield PathStep(question, Note("plan_latents_whole", "info", text), tuple(_cache_notes(walk, pairs)))


def _states(walk: Walk) -> Iterator[PathStep]:
    """Say that state is divided by its heads and grows with sequences alone."""
    groups = walk.evaluator.model.architecture.groups
    layers = sum(group.num_layers for group in groups if group.kind in STATE_KINDS)
    if not layers:
        return
    question = Note("plan_ask_state", "info", "What of the recurrent state?")
    text = "tensor parallelism divides it by its heads; neither a KV dtype nor a shorter context shrinks it"
    reason = f"{layers:,} layers or parts of layers keep a state of fixed size for each sequence"
    reasons = [Note("plan_state_layers", "info", reason, (("layers", f"{layers:,}"),))]
    for degree in dict.fromkeys((1, max(_degrees(walk)))):
        size = walk.evaluator.state_bytes(walk.device, Parallelism(degree))
        if size is not None:
            name, shown = f"TP{degree}", format_bytes(size)
            text_of = f"{name}: {shown} of state on each GPU for all sequences"
            values = (("layout", name), ("size", shown))
            reasons.append(Note("plan_state_each", "info", text_of, values, (size,)))
    yield PathStep(question, Note("plan_state_divided", "info", text), tuple(reasons))


def _pipeline(walk: Walk) -> PathStep:
    """Say whether one machine is outgrown, and that stages go across machines."""
    chosen, machine = walk.chosen, plan_rules().machine_gpus
    question = Note("plan_ask_pipeline", "info", "Is one machine outgrown?")
    if chosen is None:
        count = f"{max(walk.device.counts()):,}"
        text = f"nothing up to {count} GPUs holds the load"
        answer = Note("plan_outgrown", "info", text, (("count", count),))
        return PathStep(question, answer, tuple(_at_best(walk)))
    because = (need_note(chosen),)
    if chosen.count > machine:
        nodes = str(-(-chosen.count // machine))
        inside = "tensor parallelism inside each"
        text = f"yes: {nodes} machines, pipeline stages or replicas across them, {inside}"
        return PathStep(question, Note("plan_across", "info", text, (("nodes", nodes),)), because)
    stages = str(chosen.layout.pipeline)
    if stages == "1" or "tp" not in walk.axes:
        count = str(chosen.count)
        text = f"no: {count} of its {machine} GPUs"
        shown = (("count", count), ("machine", str(machine)))
        return PathStep(question, Note("plan_inside", "info", text, shown), because)
    text = f"no, but no tensor parallelism alone holds it: {stages} pipeline stages in one machine"
    return PathStep(question, Note("plan_stages_inside", "info", text, (("stages", stages),)), because)


def _at_best(walk: Walk) -> Iterator[Note]:
    """Yield what the layout that lacks least on the most GPUs needs."""
    for machine in reversed(machines_of([walk.device], walk.asked.given_ranks)):
        case = closest(walk.evaluator, walk.space, machine, OWN)
        if case is not None:
            if case.failure != "refused":
                yield need_note(case)
            return


__all__ = ["rank_steps"]
