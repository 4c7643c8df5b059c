"""What is said about answers of TensorRT-LLM: what no log confirms, and what it sets aside ahead."""

from __future__ import annotations

from kvgauge.architecture import Note
from kvgauge.engines.tensorrt_llm.pool import TrtllmPlan
from kvgauge.units import format_bytes

RESERVED = "slots of state beyond one a sequence: one to spare, and those of drafted tokens"

_ASSUMED = {
    "windows": Note(
        "windows_assumed",
        "warning",
        "how tensorrt-llm shares memory among windows is read from its code; no log confirms it",
    ),
    "sparse_index": Note(
        "sparse_index_assumed",
        "warning",
        "how tensorrt-llm keeps the keys of a sparse index is read from its code; no log confirms it",
    ),
    "states": Note(
        "states_assumed",
        "warning",
        "how tensorrt-llm keeps recurrent states is read from its code; no log confirms it",
    ),
}
_GROUPS = Note(
    "attention_groups_assumed",
    "warning",
    "attention groups are shown as replicas: the cache is exact; of weights experts alone are cut further",
)
_WEIGHTS = Note(
    "weight_cut_assumed",
    "info",
    "weights of a rank follow the common rules of tensor parallelism; tensorrt-llm's own were not measured",
)


def assumed_notes(plan: TrtllmPlan) -> tuple[Note, ...]:
    """Return what to say of the codes of ``TrtllmPlan.assumed``, of ranks, and of the batch's states."""
    settings = plan.settings
    found = [_ASSUMED[code] for code in plan.assumed]
    if settings.attention_dp:
        found.append(_GROUPS)
    elif settings.tensor > 1:
        found.append(_WEIGHTS)
    if plan.has_state:
        size = plan.max_batch * settings.pipeline * max(plan.state_bytes_per_slot)
        batch, shown = f"{plan.max_batch:,}", format_bytes(size)
        text = f"states of {batch} sequences, {shown}, come out of the pool first; --max_batch_size "
        text += "says how many"
        values = (("batch", batch), ("size", shown))
        found.append(Note("states_set_aside", "info", text, values, (size,)))
    return tuple(found)
