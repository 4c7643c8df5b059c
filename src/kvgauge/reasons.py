"""The sentence that says why a design needs less than plain multi-head attention, and what an engine adds."""

from __future__ import annotations

from fractions import Fraction

from kvgauge.design import STATE_ROLES, Axes, Design, sequence_parts
from kvgauge.formulas import packed_bits
from kvgauge.group_steps import rows_ahead
from kvgauge.layers import Axis, LayerKind, Role
from kvgauge.steps import Facts
from kvgauge.texts import Words


def why_sentence(facts: Facts) -> str:
    """Return one sentence: the share of plain attention that is kept, and what brings it about.

    Where an engine keeps another share than the design, a second sentence says which and why.
    """
    design, words = facts.design, facts.words
    parts = sequence_parts(design.theory)
    if not parts.growing_bytes and not design.entry_bytes:
        return _without_rows(facts)
    if not design.theory.workload.context_tokens or not parts.growing_bytes:
        return words.phrase("empty", "why")
    axes = Design(design.theory, design.theory).axes
    return (
        words.phrase("unknown", "why") if axes is None else _with_engine(_design_sentence(axes, facts), facts)
    )


def _without_rows(facts: Facts) -> str:
    """Say what takes the place of rows per token."""
    words, parts = facts.words, sequence_parts(facts.design.theory)
    if parts.state_bytes:
        return _with_engine(words.phrase("state_only", "why", fixed=words.size(parts.state_bytes)), facts)
    if parts.cross_bytes:
        return words.phrase("cross_only", "why", fixed=words.size(parts.cross_bytes))
    return words.phrase("no_cache", "why")


def _design_sentence(axes: Axes, facts: Facts) -> str:
    """Return the share of plain attention that the design keeps, and why."""
    design, words = facts.design, facts.words
    joiner = words.phrase("joiner", "why")
    reasons, beside = _reasons(design, axes, words), _beside(design, words)
    share = share_kept(design, sequence_parts(design.theory).growing_bytes)
    if share == 1 and not reasons:
        return words.phrase("plain", "why", beside="".join(joiner + reason for reason in beside))
    key = "more" if share >= 1 else "design_saving" if _differs(design) else "saving"
    reasons = [*(reasons or [_entry(design, axes, words)]), *beside]
    return words.phrase(key, "why", percent=percent(share), reasons=joiner.join(reasons))


def _differs(design: Design) -> bool:
    return sequence_parts(design.actual) != sequence_parts(design.theory)


def _with_engine(text: str, facts: Facts) -> str:
    """Return the sentence, with what the engine keeps where that is not what the design needs."""
    design, words = facts.design, facts.words
    if not _differs(design):
        return text
    kept, needed = sequence_parts(design.actual), sequence_parts(design.theory)
    if not kept.growing_bytes and not kept.state_bytes and not kept.cross_bytes:
        return words.sentences([text, words.phrase("engine_nothing", "why", engine=facts.engine)])
    if kept.growing_bytes == needed.growing_bytes or not design.plain_row_bytes(1, 1):
        return text
    because = words.phrase("joiner", "why").join(_engine_reasons(facts))
    share = percent(share_kept(design, kept.growing_bytes))
    sentence = words.phrase("engine_share", "why", engine=facts.engine, percent=share, because=because)
    return words.sentences([text, sentence])


def _engine_reasons(facts: Facts) -> list[str]:
    demands, words = facts.cache.demand.groups, facts.words
    reasons: list[str] = []
    if any(
        d.group.kind is LayerKind.LATENT and Role.KEY in {s.role for s in d.streams} for d in demands
    ) and not _theory_has_heads(facts):
        reasons.append(words.phrase("engine_expanded", "why"))
    ahead = max((n for d in demands if (n := rows_ahead(d)) is not None), default=None)
    if ahead is not None:
        reasons.append(words.phrase("engine_ahead", "why", rows=ahead))
    bits = next((b for d in demands for s in d.streams if (b := packed_bits(s))), None)
    if bits is not None:
        reasons.append(words.phrase("engine_packed", "why", bits=bits))
    if not reasons and facts.cache.demand.in_cells:
        reasons.append(words.phrase("engine_cells", "why"))
    if not reasons and any(d.block_tokens for d in demands):
        reasons.append(words.phrase("engine_blocks", "why"))
    fewer = facts.cache.total_bytes < facts.design.theory.total_bytes
    return reasons or [less_reason(facts) if fewer else words.phrase("engine_rows", "why")]


def _theory_has_heads(facts: Facts) -> bool:
    groups = facts.design.theory.demand.groups
    return any(g.group.kind is LayerKind.LATENT and Role.KEY in {s.role for s in g.streams} for g in groups)


def less_reason(facts: Facts) -> str:
    """Say why an engine keeps less than the design needs."""
    demands, words, load = facts.cache.demand.groups, facts.words, facts.cache.workload
    streams = [s for d in demands for s in d.streams]
    bits = next((b for s in streams if (b := packed_bits(s))), None)
    ahead = [n for d in demands if (n := rows_ahead(d)) is not None and d.group.window_tokens is None]
    if bits is not None:
        return words.phrase("less_packed", bits=bits)
    if any(d.pooled for d in demands):
        return words.phrase("less_shared")
    if any(d.group.streams and not d.streams for d in demands):
        return words.phrase("less_absent")
    if any(n < load.context_tokens for n in ahead):
        return words.phrase("less_ahead")
    stored = {(s.role, s.dtype) for s in streams}
    needed = {(s.role, s.dtype) for d in facts.design.theory.demand.groups for s in d.streams}
    if any(
        d.group.window_tokens and s.counted.to_tokens and s.counted.to_tokens < d.group.window_tokens
        for d in demands
        for s in d.streams
    ):
        return words.phrase("less_window")
    return words.phrase("less_other" if stored <= needed else "less_dtype")


def share_kept(design: Design, growing_bytes: int) -> Fraction:
    """Return a growing cache over the same token-mixing layers as plain multi-head attention."""
    row = design.plain_row_bytes(design.num_mixing_layers, design.query_heads or 1) or 1
    return Fraction(growing_bytes, row * max(1, design.theory.workload.context_tokens))


def _beside(design: Design, words: Words) -> list[str]:
    """What each sequence holds beside the growing cache."""
    parts = sequence_parts(design.theory)
    reasons: list[str] = []
    if parts.state_bytes:
        roles = {s.role for g in design.theory.demand.groups for s in g.streams} & STATE_ROLES
        key = "ring" if roles == {Role.COMPRESSOR} else "state"
        reasons.append(words.phrase(key, "why", fixed=words.size(parts.state_bytes)))
    if parts.cross_bytes:
        groups = [g.group for g in design.theory.demand.groups if g.group.kind is LayerKind.CROSS]
        axes = {s.counted.axis for group in groups for s in group.streams}
        key = "cross_image" if axes == {Axis.IMAGE} else "cross_encoder"
        layers = sum(group.num_layers for group in groups)
        reasons.append(words.phrase(key, "why", fixed=words.size(parts.cross_bytes), layers=layers))
    return reasons


def _reasons(design: Design, axes: Axes, words: Words) -> list[str]:
    reasons: list[str] = []
    if axes.entry != 1:
        reasons.append(_entry(design, axes, words))
    if axes.layers != 1:
        caching, layers = len(design.entry_bytes), design.num_layers
        reasons.append(words.phrase("layers", "why", caching=caching, layers=layers))
    if axes.held != 1:
        reasons.append(words.phrase("tokens", "why", share=percent(axes.held)))
    return reasons


def _entry(design: Design, axes: Axes, words: Words) -> str:
    """Say what makes an entry small: fewer heads, a latent, one record for both, or the format."""
    roles = {s.role for g in design.theory.demand.groups for s in g.streams if s.counted.axis is Axis.DECODER}
    caching = len(design.entry_bytes)
    entry = Fraction(sum(design.entry_bytes.values()), caching)
    values = {"entry": words.size(entry), "plain": words.size(entry / axes.entry)}
    if Role.RECORD in roles:
        return words.phrase("record", "why", query_heads=design.query_heads)
    if Role.LATENT in roles:
        return words.phrase("latent_index" if Role.INDEX in roles else "latent", "why", **values)
    heads = {shape.kv_heads for shape in design.head_shapes.values()}
    if roles == {Role.KEY, Role.VALUE} and len(heads) == 1:
        return words.phrase("heads", "why", query_heads=design.query_heads, kv_heads=heads.pop())
    return words.phrase("entry", "why", **values)


def percent(share: Fraction) -> str:
    """Return a share in percent, three significant figures.

    >>> percent(Fraction(1, 16)), percent(Fraction(1, 4)), percent(Fraction(5, 2))
    ('6.25 %', '25.0 %', '250 %')
    """
    value = float(share * 100)
    return f"{f'{value:#.3g}'.rstrip('.')} %" if value < 999.5 else f"{value:,.0f} %"
