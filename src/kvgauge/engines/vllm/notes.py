"""What is said about answers of vLLM: what had to be assumed, and what its own blocks are for."""

from __future__ import annotations

from kvgauge.architecture import Note

RESERVED = "block 0, which the pool keeps for slots that hold nothing"

_ASSUMED = {
    "block_size": Note(
        "block_size_assumed",
        "warning",
        "the block of attention layers was checked on other cards; the backends' smallest is taken",
    ),
    "drafter_layers": Note(
        "drafter_layers_assumed",
        "warning",
        "the layers of the draft model are not counted: its config is not known",
    ),
    "kv_connector": Note(
        "kv_connector_assumed",
        "warning",
        "some KV connectors keep windows in full; this one is taken to leave groups as they are",
    ),
}


def assumed_notes(codes: tuple[str, ...]) -> tuple[Note, ...]:
    """Return a warning for each code of ``VllmPlan.assumed``."""
    return tuple(_ASSUMED[code] for code in codes)
