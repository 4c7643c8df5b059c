"""The part of the decision about ranks: what tensor parallelism divides, what it does not, and what then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.layers import LayerKind
from kvgauge.planning.result import PathStep
from kvgauge.planning.rules import plan_rules
from kvgauge.units import format_bytes
from kvgauge.workload import Parallelism

if TYPE_CHECKING:
    from kvgauge.planning.path import Walk

_STATES = frozenset({LayerKind.RECURRENT, LayerKind.CONVOLUTION})


def rank_steps(walk: Walk, *, needed: bool) -> Iterator[PathStep]:
    """Yield the questions about ranks.

    Args:
        needed: one GPU does not do.
    """
    if "tp" not in walk.axes:
        return
    if needed:
        yield _tensor(walk)
        yield from _refused(walk)
    yield from _heads(walk)
    yield from _copied(walk)
    yield from _states(walk)
    if needed:
        yield from _pipeline(walk)


def _degrees(walk: Walk) -> list[int]:
    """Return the sizes of tensor parallelism that divide the attention heads."""
    heads = walk.space.heads
    return [n for n in range(1, plan_rules().max_tensor + 1) if not heads or heads % n == 0]


def _tensor(walk: Walk) -> PathStep:
    from kvgauge.planning.path import need_note  # noqa: PLC0415 - it asks these questions

    heads, degrees = walk.space.heads, _degrees(walk)
    question = Note("plan_ask_tensor", "info", "Over how many GPUs of one machine by tensor parallelism?")
    cases = [walk.ask(Parallelism(n)) for n in degrees if n > 1]
    first = next((case for case in cases if case.failure is None), None)
    shown = ", ".join(str(n) for n in degrees)
    text = f"{heads or '?'} attention heads are divided by {shown}"
    reasons = [Note("plan_divisors", "info", text, (("heads", f"{heads or '?'}"), ("degrees", shown)))]
    reasons += [need_note(case) for case in cases if case.failure != "refused"]
    if first is None:
        text = f"none up to {max(degrees)} does"
        answer = Note("plan_no_degree", "info", text, (("most", str(max(degrees))),))
    else:
        answer = Note("plan_degree", "info", f"{first.count}", (("count", str(first.count)),))
    return PathStep(question, answer, tuple(reasons))


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
    yield PathStep(question, answer, (Note("plan_heads_copies", "info", text, values),))


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
    reasons = []
    for name, layout in pairs:
        size = walk.evaluator.needed_bytes(walk.device, layout)
        if size is not None:
            text = f"{name}: {format_bytes(size)} of cache on each GPU"
            shown = (("layout", name), ("size", format_bytes(size)))
            reasons.append(Note("plan_cache_each", "info", text, shown, (size,)))
    text = "no, every rank holds them whole: data-parallel attention or context parallelism first"
    yield PathStep(question, Note("plan_latents_whole", "info", text), tuple(reasons))


def _states(walk: Walk) -> Iterator[PathStep]:
    """Say that state is divided by its heads and grows with sequences alone."""
    groups = walk.evaluator.model.architecture.groups
    layers = sum(group.num_layers for group in groups if group.kind in _STATES)
    if not layers:
        return
    question = Note("plan_ask_state", "info", "What of the recurrent state?")
    text = "tensor parallelism divides it by its heads; neither a KV dtype nor a shorter context shrinks it"
    reason = f"{layers:,} layers or parts of layers keep a state of fixed size for each sequence"
    yield PathStep(
        question,
        Note("plan_state_divided", "info", text),
        (Note("plan_state_layers", "info", reason, (("layers", f"{layers:,}"),)),),
    )


def _pipeline(walk: Walk) -> Iterator[PathStep]:
    """Say whether one machine is outgrown, and that stages go across machines."""
    chosen, machine = walk.chosen, plan_rules().machine_gpus
    question = Note("plan_ask_pipeline", "info", "Is one machine outgrown?")
    if chosen is not None and chosen.device is walk.device and chosen.count <= machine:
        stages = chosen.layout.pipeline
        if stages > 1:
            text = f"no, but no tensor parallelism alone holds it: {stages} pipeline stages in one machine"
            yield PathStep(question, Note("plan_stages_inside", "info", text, (("stages", str(stages)),)), ())
        return
    if chosen is None:
        count = f"{max(walk.device.counts()):,}"
        text = f"nothing up to {count} GPUs holds the load"
        yield PathStep(question, Note("plan_outgrown", "info", text, (("count", count),)), ())
        return
    nodes = str(-(-chosen.count // machine))
    text = f"yes: {nodes} machines, pipeline stages or replicas across them, tensor parallelism inside each"
    yield PathStep(question, Note("plan_across", "info", text, (("nodes", nodes),)), ())


__all__ = ["rank_steps"]
