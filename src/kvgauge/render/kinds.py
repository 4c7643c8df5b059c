"""What the groups of layers are called: kind and window, and more where two would look alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kvgauge.layers import Axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kvgauge.engines.base import GroupDemand
    from kvgauge.render.messages import Texts

#: What tells groups of one kind apart, most telling first.
_DETAILS = ("heads", "step", "width", "dtype")


def group_labels(demands: Sequence[GroupDemand], texts: Texts) -> list[str]:
    """Return the name of each group, no two alike where a shape or a dtype tells them apart."""
    labels = [_label(demand, texts) for demand in demands]
    for detail in _DETAILS:
        counts = Counter(labels)
        alike = {
            label
            for label, count in counts.items()
            if count > 1
            and len({_value(d, detail) for d, own in zip(demands, labels, strict=True) if own == label}) > 1
        }
        labels = [
            texts(f"kind_{detail}", kind=label, value=_value(demand, detail)) if label in alike else label
            for demand, label in zip(demands, labels, strict=True)
        ]
    return labels


def _label(demand: GroupDemand, texts: Texts) -> str:
    group = demand.group
    if demand.is_engines_own:
        return texts("kind.padding")
    name = texts(f"kind.{group.kind.value}")
    if group.window_tokens is not None:
        name = texts("kind_window", kind=name, tokens=f"{group.window_tokens:,}")
    return texts("kind_mtp", kind=name) if group.name.startswith("mtp_") else name


def _value(demand: GroupDemand, detail: str) -> str:
    """Return a detail of a group: its first stream that grows with the context says it."""
    growing = [s for s in demand.streams if s.counted.axis is not Axis.SEQUENCE] or list(demand.streams)
    if not growing:
        return ""
    first = growing[0]
    values = {"heads": first.vectors, "step": first.counted.step_tokens, "width": first.width}
    return f"{values[detail]:,}" if detail in values else first.dtype
