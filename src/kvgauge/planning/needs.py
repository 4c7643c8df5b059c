"""What a layout needs on each GPU and what there is, and what it lacks of being an option, as notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.planning.ranking import layout_text
from kvgauge.units import format_bytes

if TYPE_CHECKING:
    from kvgauge.planning.cases import Case

#: Failures of a load that fits as a rule.
MARGIN_FAILURES = frozenset({"tight", "margin"})


def lack_notes(case: Case) -> Iterator[Note]:
    """Say what a load that fits as a rule lacks; nothing of others."""
    if case.failure not in (*MARGIN_FAILURES, "overdrawn"):
        return
    lack = max(0, case.lack_bytes)
    shown = (("lack", format_bytes(lack)),)
    if case.failure == "overdrawn":
        text = f"the engine would take {format_bytes(lack)} more than the GPU has: lower its share"
        yield Note("plan_cache_overdrawn", "info", text, shown, (lack,))
        return
    text = f"{format_bytes(lack)} short of the margin that is kept"
    yield Note("plan_cache_margin", "info", text, shown, (lack,))


def need_note(case: Case) -> Note:
    """Return what a layout needs on each GPU, and what there is."""
    verdict, how = case.verdict, layout_text(case.layout)
    assert verdict is not None  # noqa: S101 - asked of cases that have one
    sizes = (verdict.required_bytes, verdict.available_bytes)
    required, available = (format_bytes(size) for size in sizes)
    text = f"{how}: {required} of {available} on each GPU"
    shown = (("layout", how), ("required", required), ("available", available))
    if case.failure == "flag":
        return Note("plan_need_flag", "info", f"{text}, but the engine's flags allow less", shown, sizes)
    if case.failure == "overdrawn":
        lack = max(0, case.lack_bytes)
        text = f"{text}, and the engine would take {format_bytes(lack)} more than the GPU has"
        lacking = (*shown, ("lack", format_bytes(lack)))
        return Note("plan_need_overdrawn", "info", text, lacking, (*sizes, lack))
    if case.failure in MARGIN_FAILURES:
        lack = max(0, case.lack_bytes)
        text = f"{text}, {format_bytes(lack)} short of the margin that is kept"
        lacking = (*shown, ("lack", format_bytes(lack)))
        return Note("plan_need_margin", "info", text, lacking, (*sizes, lack))
    return Note("plan_need", "info", text, shown, sizes)


__all__ = ["MARGIN_FAILURES", "lack_notes", "need_note"]
