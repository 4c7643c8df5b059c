"""What ``fit`` says in a sentence: the verdict, and what would help. Notes, so that they are translated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.fit_result import Reach, Suggestion
from kvgauge.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kvgauge.fit_result import Verdict


def verdict_note(fits: bool, limiting: str, required_bytes: int, available_bytes: int) -> Note:
    """Return the verdict with its inequality and the slack."""
    if limiting == "flag":
        text = "the load is more than the engine's flags allow at once"
        return Note("verdict_flag", "info", text)
    required, available = format_bytes(required_bytes), format_bytes(available_bytes)
    slack = abs(available_bytes - required_bytes)
    values = (("required", required), ("available", available), ("slack", format_bytes(slack)))
    sizes = (required_bytes, available_bytes, slack)
    if fits:
        text = f"{required} of the {available} pool of each GPU are needed: {format_bytes(slack)} to spare"
        return Note("verdict_fits", "info", text, values, sizes)
    text = f"{required} are needed and the pool of each GPU has {available}: {format_bytes(slack)} short"
    return Note("verdict_does_not_fit", "info", text, values, sizes)


def suggestions(
    verdict: Verdict,
    longest: Reach,
    widest: Reach,
    needed_in_fp8: int | None,
    admission: tuple[Note, ...],
) -> tuple[Suggestion, ...]:
    """Return what would help, most telling first."""
    return tuple(_suggestions(verdict, longest, widest, needed_in_fp8, admission))


def _suggestions(
    verdict: Verdict,
    longest: Reach,
    widest: Reach,
    needed_in_fp8: int | None,
    admission: tuple[Note, ...],
) -> Iterator[Suggestion]:
    for note in admission:
        blocks = int(dict(note.values)["blocks"].replace(",", ""))
        text = f"--max-num-seqs {blocks} lets the engine start"
        own = Note("lower_max_num_seqs", "info", text, (("count", str(blocks)),))
        yield Suggestion(own, {"max_num_seqs": blocks})
    if verdict.fits:
        return
    if needed_in_fp8 is not None:
        size = format_bytes(needed_in_fp8)
        ends = "which fits" if needed_in_fp8 <= verdict.available_bytes else "which does not fit either"
        text = f"--kv-dtype fp8 needs {size}, {ends}"
        values = (("size", size), ("ends", ends))
        yield Suggestion(
            Note("kv_dtype_fp8", "info", text, values, (needed_in_fp8,)), {"required_bytes": needed_in_fp8}
        )
    if longest.count:
        shown = f"{longest.count:,}"
        text = f"a context of up to {shown} tokens fits"
        yield Suggestion(
            Note("shorter_context", "info", text, (("tokens", shown),)), {"max_context_tokens": longest.count}
        )
    if widest.count:
        shown = f"{widest.count:,}"
        text = f"up to {shown} sequences of this context fit"
        yield Suggestion(
            Note("fewer_sequences", "info", text, (("count", shown),)), {"max_sequences": widest.count}
        )
