"""What ``fit`` says in a sentence: the verdict as a note, so that it is translated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.units import format_bytes

if TYPE_CHECKING:
    from kvgauge.fit_result import Verdict


#: Status of a load on a card -> code and sentence.
_SENTENCES = {
    "fits": (
        "verdict_card_fits",
        "{required}, at most {high}, of the {available} that the engine may use of each GPU are needed: "
        "{slack} to spare",
    ),
    "tight": (
        "verdict_card_tight",
        "{required}, at most {high}, of the {available} that the engine may use of each GPU are needed: "
        "{slack} to spare as a rule, {lack} short at worst",
    ),
    "does_not_fit": (
        "verdict_card_too_small",
        "{required} are needed and the engine may use {available} of each GPU: {slack} short",
    ),
}


def verdict_note(verdict: Verdict) -> Note:
    """Return the verdict with its inequality and the slack: of a card, else of a pool."""
    if verdict.limiting == "flag":
        text = "the load is more than the engine's flags allow at once"
        return Note("verdict_flag", "info", text)
    if not verdict.of_card:
        return _of_pool(verdict)
    if verdict.taken_bytes > verdict.available_bytes:
        return _without_pool(verdict)
    return _of_card(verdict)


def _of_card(verdict: Verdict) -> Note:
    sizes = {
        "required": verdict.required_bytes,
        "high": verdict.required_high_bytes,
        "available": verdict.available_bytes,
        "slack": abs(verdict.slack_bytes),
        "lack": max(0, verdict.required_high_bytes - verdict.available_bytes),
    }
    shown = {name: format_bytes(size) for name, size in sizes.items()}
    code, text = _SENTENCES[verdict.status]
    text = text.format(**shown)
    return Note(code, "info", text, tuple(shown.items()), tuple(sizes.values()))


def _of_pool(verdict: Verdict) -> Note:
    required_bytes, available_bytes = verdict.required_bytes, verdict.available_bytes
    required, available = format_bytes(required_bytes), format_bytes(available_bytes)
    slack = abs(available_bytes - required_bytes)
    values = (("required", required), ("available", available), ("slack", format_bytes(slack)))
    sizes = (required_bytes, available_bytes, slack)
    if verdict.fits:
        text = f"{required} of the {available} pool of each GPU are needed: {format_bytes(slack)} to spare"
        return Note("verdict_fits", "info", text, values, sizes)
    text = f"{required} are needed and the pool of each GPU has {available}: {format_bytes(slack)} short"
    return Note("verdict_does_not_fit", "info", text, values, sizes)


def _without_pool(verdict: Verdict) -> Note:
    sizes = (
        verdict.taken_bytes, verdict.available_bytes, verdict.taken_bytes - verdict.available_bytes
    )  # fmt: skip
    if verdict.weights_bytes > verdict.available_bytes:
        return _weights_alone(verdict)
    taken, available, lack = (format_bytes(size) for size in sizes)
    text = (
        f"weights and what the engine works with take {taken} and it may use {available} of each GPU: "
        f"{lack} short before any cache"
    )
    values = (("taken", taken), ("available", available), ("lack", lack))
    return Note("verdict_no_pool", "info", text, values, sizes)


def _weights_alone(verdict: Verdict) -> Note:
    sizes = (
        verdict.weights_bytes, verdict.available_bytes, verdict.weights_bytes - verdict.available_bytes
    )  # fmt: skip
    weights, available, lack = (format_bytes(size) for size in sizes)
    text = f"the weights alone take {weights} and the engine may use {available} of each GPU: {lack} short"
    values = (("weights", weights), ("available", available), ("lack", lack))
    return Note("verdict_weights_alone", "info", text, values, sizes)


__all__ = ["verdict_note"]
