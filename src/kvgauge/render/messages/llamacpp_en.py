"""What llama.cpp's answers say of places and allocations, in English."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "engine.llama.cpp": (
        "llama.cpp as llama-server starts it: every sub-cache, state and buffer, on the devices and the host"
    ),
    "placed_label": "On {place}",
    "placed_host": "the host",
    "placed_part": "{name} {size}",
    "placed_range": "{name} {size} ({low} to {high})",
    "placed_join": ", ",
    "placed_sum": "{size}: {parts}",
}
