"""What would make a load fit: changes, cheapest in quality and effort first, each asked of ``fit`` again.

A change is suggested only with the verdict that ``fit`` gives for it: that the load then fits, or by how much
less it lacks. Of one kind of change the mildest that fits is taken, else the one that leaves least lacking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.architecture import Note
from kvgauge.engines.flag_tables import MAX_SEQUENCES
from kvgauge.fit_result import Reach, Suggestion
from kvgauge.launching import Launch, launch_of
from kvgauge.remedies import devices, load, settings, weights
from kvgauge.remedies.changes import Change, Tried, changed, tried, with_flag
from kvgauge.remedies.words import note_of
from kvgauge.units import MIB

if TYPE_CHECKING:
    from kvgauge.fit_asking import Posed

Kind = Callable[["Posed"], Iterator[Change]]


class Remedy(NamedTuple):
    """A kind of change.

    Args:
        combines: it is also taken together with others, where none does alone.
    """

    changes: Kind
    combines: bool = True


#: Cheapest first: what costs nothing but a flag; what costs a little quality or speed; less of the load;
#: other weights; other devices; the host's memory, which is slow.
ORDER: tuple[Remedy, ...] = (
    Remedy(settings.raise_limit),
    Remedy(settings.reserve_the_load),
    Remedy(settings.larger_share),
    Remedy(settings.fewer_batched_tokens),
    Remedy(settings.narrower_cache),
    Remedy(settings.eager),
    Remedy(settings.no_prefix_caching),
    Remedy(load.shorter_context, combines=False),
    Remedy(load.fewer_sequences, combines=False),
    Remedy(weights.published),
    Remedy(weights.quantised),
    Remedy(devices.more_ranks, combines=False),
    Remedy(devices.another_card, combines=False),
    Remedy(devices.experts_on_host, combines=False),
    Remedy(devices.cache_on_host, combines=False),
    Remedy(devices.layers_on_host, combines=False),
    Remedy(devices.weights_on_host, combines=False),
)
#: Code of the note that a line needs a file of settings beside it.
_NEEDS_FILE = "launch_needs_file"
#: A change that frees less, or less than this part of what lacks, is not worth a line.
_LEAST_BYTES = 16 * MIB
_LEAST_SHARE = 50


def remedies(posed: Posed, admission: tuple[Note, ...]) -> tuple[Suggestion, ...]:
    """Return what would help, in order; of a load that fits, what lets the engine start.

    Args:
        admission: why the engine would not start although the load fits.
    """
    return tuple(_all(posed, admission))


def _all(posed: Posed, admission: tuple[Note, ...]) -> Iterator[Suggestion]:
    for note in admission:
        yield from _admitted(posed, note)
    if posed.verdict.fits:
        return
    found = [_best(posed, remedy) for remedy in ORDER]
    for each in found:
        if each is not None:
            yield suggestion(posed, each)
    alone = (each for each, remedy in zip(found, ORDER, strict=True) if remedy.combines)
    if not any(each is not None and each.verdict.fits for each in alone):
        together = combined(posed, dict(zip(ORDER, found, strict=True)))
        if together is not None:
            yield suggestion(posed, together)


def _best(posed: Posed, remedy: Remedy) -> Tried | None:
    """Return the mildest change of a kind with which the load fits, else that which leaves least lacking."""
    best: Tried | None = None
    for change in remedy.changes(posed):
        found = tried(posed, change)
        if found is None or not _helps(posed, found):
            continue
        if found.verdict.fits:
            return found
        if best is None or found.verdict.slack_bytes > best.verdict.slack_bytes:
            best = found
    return best


def _helps(posed: Posed, found: Tried) -> bool:
    cards = found.posed.search.cards
    if found.verdict.fits:
        is_overdrawn = cards is not None and cards.free_bytes(found.posed.asked) < 0
        return found.change.code != "larger_share" or not is_overdrawn
    if posed.verdict.limiting == "flag" or found.verdict.limiting == "flag":
        return False  # no memory brings it nearer
    lacks = -posed.verdict.slack_bytes
    return lacks + found.verdict.slack_bytes > max(_LEAST_BYTES, lacks // _LEAST_SHARE)


def combined(posed: Posed, alone: Mapping[Remedy, Tried | None]) -> Tried | None:
    """Return the first changes of the order with which, taken together, the load fits; None if none do.

    Args:
        alone: what each kind of change comes to on its own.
    """
    now, keywords, shown = posed, dict[str, object](), list[str]()
    counts: dict[str, int] = {}
    for remedy in (*(each for each in ORDER if each.combines), Remedy(load.shorter_context)):
        if "model" in keywords and remedy.changes is weights.quantised:
            continue
        found = alone[remedy] if now is posed and remedy in alone else _best(now, remedy)
        if found is None or found.change.code == "larger_share":
            continue
        keywords |= found.change.keywords
        shown.append(_words(found.change))
        counts |= found.change.counts
        now = found.posed
        if now.verdict.fits:
            change = Change("together", keywords, ", ".join(shown), counts)
            return Tried(change, now) if len(shown) > 1 else None
    return None


def _words(change: Change) -> str:
    return f"--context {change.keywords['context']}" if change.code == "shorter_context" else change.shown


def _admitted(posed: Posed, note: Note) -> Iterator[Suggestion]:
    """Yield the number of sequences with which the engine starts."""
    blocks = int(dict(note.values)["blocks"].replace(",", ""))
    keywords = with_flag(posed, MAX_SEQUENCES, str(blocks)) or {}
    counts = {"max_num_seqs": blocks}
    found = tried(posed, Change("lower_max_num_seqs", keywords, f"--max-num-seqs {blocks}", counts))
    if found is not None and found.verdict.slack_bytes != posed.verdict.slack_bytes:
        yield suggestion(posed, found)
        return
    text = f"--max-num-seqs {blocks} lets the engine start"
    own = Note("lower_max_num_seqs", "info", text, (("count", str(blocks)),))
    yield Suggestion("lower_max_num_seqs", posed.verdict.fits, own, dict(counts), dict(keywords))


def suggestion(posed: Posed, found: Tried) -> Suggestion:
    """Return a change in words and figures.

    Args:
        posed: the question without it.
    """
    verdict = found.verdict
    effect = {
        **found.change.counts,
        "required_bytes": verdict.required_bytes,
        "available_bytes": verdict.available_bytes,
        "slack_bytes": verdict.slack_bytes,
    }
    note = note_of(found, posed.verdict)
    launch = _launch(found.posed) if verdict.fits else None
    if launch is not None and any(each.code == _NEEDS_FILE for each in launch.notes):
        launch = None  # a line alone does not say it all
    return Suggestion(found.change.code, verdict.fits, note, effect, dict(found.change.keywords), launch)


def _launch(posed: Posed) -> Launch:
    """Return how the engine is started; one that allocates what it is told is told of the load alone."""
    return launch_of(posed, posed.search.pool_bytes(posed.asked, Reach(0, "memory")))


__all__ = ["ORDER", "Change", "Remedy", "changed", "combined", "remedies", "suggestion", "tried"]
