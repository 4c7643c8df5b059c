"""The sentence that says why a design needs less than plain multi-head attention."""

from __future__ import annotations

from fractions import Fraction

from kvgauge.arithmetic import number_text
from kvgauge.design import Axes, Design, sequence_parts
from kvgauge.layers import Axis, Role
from kvgauge.texts import Words


def why_sentence(design: Design, words: Words) -> str:
    """Return one sentence: the share of plain attention that is kept, and what brings it about."""
    parts = sequence_parts(design.theory)
    if not parts.growing_bytes and not design.entry_bytes:
        fixed = parts.state_bytes + parts.cross_bytes
        return words.phrase("state_only", fixed=number_text(fixed)) if fixed else words.phrase("no_cache")
    if not design.theory.workload.context_tokens or not parts.growing_bytes:
        return words.phrase("empty")
    axes = design.axes
    if axes is None:
        return words.phrase("unknown")
    reasons = _reasons(design, axes, words)
    if parts.state_bytes:
        reasons.append(words.phrase("state", fixed=number_text(parts.state_bytes)))
    share = _share_kept(design)
    if share == 1 and not reasons:
        return words.phrase("plain")
    key = "saving" if share < 1 else "more"
    return words.phrase(
        key, percent=percent(share), reasons=_joined(reasons or [_entry(design, axes, words)], words)
    )


def _share_kept(design: Design) -> Fraction:
    """Return the growing cache over the same token-mixing layers as plain multi-head attention."""
    row = design.plain_row_bytes(design.num_mixing_layers, design.query_heads or 1) or 1
    kept = sequence_parts(design.theory).growing_bytes
    return Fraction(kept, row * design.theory.workload.context_tokens)


def _reasons(design: Design, axes: Axes, words: Words) -> list[str]:
    reasons: list[str] = []
    if axes.entry != 1:
        reasons.append(_entry(design, axes, words))
    if axes.layers != 1:
        caching, layers = len(design.entry_bytes), design.num_layers
        reasons.append(words.phrase("layers", caching=number_text(caching), layers=number_text(layers)))
    if axes.held != 1:
        reasons.append(words.phrase("tokens", share=percent(axes.held)))
    return reasons


def _entry(design: Design, axes: Axes, words: Words) -> str:
    """Say what makes an entry small: fewer heads, a latent, one record for both, or the format."""
    roles = {s.role for g in design.theory.demand.groups for s in g.streams if s.counted.axis is Axis.DECODER}
    caching = len(design.entry_bytes)
    entry = Fraction(sum(design.entry_bytes.values()), caching)
    values = {"entry": number_text(entry), "plain": number_text(entry / axes.entry)}
    if Role.RECORD in roles:
        return words.phrase("record", query_heads=design.query_heads)
    if Role.LATENT in roles:
        return words.phrase("latent_index" if Role.INDEX in roles else "latent", **values)
    heads = {shape.kv_heads for shape in design.head_shapes.values()}
    if roles == {Role.KEY, Role.VALUE} and len(heads) == 1:
        return words.phrase("heads", query_heads=design.query_heads, kv_heads=heads.pop())
    return words.phrase("entry", **values)


def percent(share: Fraction) -> str:
    """Return a share in percent, three significant figures.

    >>> percent(Fraction(1, 16)), percent(Fraction(5, 2))
    ('6.25 %', '250 %')
    """
    return f"{float(share * 100):.3g} %" if share < 10 else f"{float(share * 100):,.0f} %"


def _joined(reasons: list[str], words: Words) -> str:
    if len(reasons) == 1:
        return reasons[0]
    return words.phrase("joiner").join(reasons[:-1]) + words.phrase("last_joiner") + reasons[-1]
