"""What should be said about a request beside its numbers: options without effect, limits, replicas."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines.base import RequestedDtypes
from kvgauge.layers import Axis, Role
from kvgauge.workload import Parallelism, Workload

#: Read for the answer as a whole, whatever the layers are.
_ALWAYS_READ = frozenset(
    {"model_type", "architectures", "quantization_config", "dtype", "torch_dtype", "tie_word_embeddings"}
)


def context_notes(architecture: ModelArchitecture, workload: Workload) -> tuple[Note, ...]:
    """Say when the context exceeds what the model was made for."""
    limit = architecture.context_limit_tokens
    if limit is None or workload.context_tokens <= limit:
        return ()
    context = workload.context_tokens
    text = f"{context:,} tokens exceed the model's own limit of {limit:,}"
    return (
        Note("context_beyond_limit", "warning", text, (("context", f"{context:,}"), ("limit", f"{limit:,}"))),
    )


def reservation_notes(workload: Workload, reserve_tokens: int | None) -> tuple[Note, ...]:
    """Warn of a load beyond what the engine is told to reserve."""
    context = workload.context_tokens
    if not reserve_tokens or context <= reserve_tokens:
        return ()
    text = f"{context:,} tokens exceed the {reserve_tokens:,} that the engine is told to reserve"
    shown = (("context", f"{context:,}"), ("reserved", f"{reserve_tokens:,}"))
    return (Note("context_beyond_reservation", "warning", text, shown),)


def idle_option_notes(
    architecture: ModelArchitecture, workload: Workload, asked: RequestedDtypes, *, encoder_given: bool
) -> tuple[Note, ...]:
    """Name options that nothing in this model answers to."""
    streams = [s for g in (*architecture.groups, *architecture.mtp_groups) for s in g.streams]
    axes = {s.counted.axis for s in streams}
    roles = {s.role for s in streams}
    idle = {
        "--encoder-tokens": encoder_given and Axis.ENCODER not in axes,
        "--image-tokens": workload.image_tokens > 0 and Axis.IMAGE not in axes,
        "--state-dtype": asked.state is not None and Role.RECURRENT not in roles,
        "--index-dtype": asked.index is not None and Role.INDEX not in roles,
    }
    return tuple(
        Note(
            "option_without_effect", "warning", f"{name} changes nothing for this model", (("option", name),)
        )
        for name, is_idle in idle.items()
        if is_idle
    )


def override_notes(
    architecture: ModelArchitecture, overrides: Mapping[str, object], of_weights: Collection[str] = ()
) -> tuple[Note, ...]:
    """Name overrides of fields that the answer does not depend on; a nested field may have been meant.

    Args:
        of_weights: dotted paths that the shapes of tensors come from.
    """
    if not overrides:
        return ()
    from difflib import get_close_matches  # noqa: PLC0415 - few override fields

    read = [*dict.fromkeys((*(path for path, _ in architecture.fields), *of_weights))]
    notes: list[Note] = []
    for key in overrides:
        if key.split(".")[-1] in _ALWAYS_READ or any(_touches(key, path) for path in read):
            continue
        near = [path for path in read if path.split(".")[-1] == key.split(".")[-1]]
        near = near or get_close_matches(key, read, n=1, cutoff=0.75)
        hint = f"; did you mean {near[0]}?" if near else ""
        text = f"--override {key} changes nothing: no field of that name is read{hint}"
        values = (("field", key), ("near", near[0] if near else ""))
        notes.append(Note("override_without_effect", "warning", text, values))
    return tuple(notes)


def _touches(key: str, path: str) -> bool:
    return path == key or path.startswith(key + ".") or key.startswith((path + ".", path + "["))


def parallel_notes(workload: Workload, spread: Parallelism, config: Mapping[str, object]) -> tuple[Note, ...]:
    """Say what data, expert and pipeline parallelism do to the figures."""
    notes: list[Note] = []
    if spread.data > 1:
        sequences = -(-workload.sequences // spread.data)
        held = f"{sequences:,} sequence{'s' * (sequences != 1)}"
        text = f"per GPU: the fullest of {spread.data:,} replicas, which holds {held}"
        values = (("replicas", f"{spread.data:,}"), ("sequences", f"{sequences:,}"))
        notes.append(Note("data_parallel", "info", text, values))
    if spread.expert > 1:
        notes.append(Note("expert_parallel", "info", "expert parallelism divides weights, not the cache"))
    if spread.pipeline > 1 and config.get("_layer_order") == "unknown":
        text = (
            "the order of this model's layers is not known: the totals hold, their split over stages does not"
        )
        notes.append(Note("layer_order_unknown", "warning", text))
    return tuple(notes)
