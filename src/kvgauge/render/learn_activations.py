"""``learn activations`` as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kvgauge.dtypes import display_dtype
from kvgauge.lab.life import LIVES
from kvgauge.render.clean import clean
from kvgauge.render.size_facts import tokens_text
from kvgauge.render.view import View, labelled, plain, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kvgauge.lab.activations import ActivationsAnswer, LayerLife
    from kvgauge.lab.life import Activation, Life

_COLUMNS = (
    "column_number", "column_activation", "column_dimensions", "column_prefill", "column_decode",
    "column_fate", "column_optimiser",
)  # fmt: skip
_NARROW = ("column_number", "column_activation", "column_prefill", "column_fate")
_NONE = "-"
_AXES = {"queries": "T", "keys": "T", "encoder": "E"}
_RIGHT = frozenset({"column_number", "column_prefill", "column_decode"})


def draw_activations(answer: ActivationsAnswer, view: View) -> str:
    """Return a table for each shape of layer, and what it comes to."""
    texts = view.texts
    title = texts(
        "life_title",
        model=clean(answer.name),
        tokens=tokens_text(answer.tokens, view),
        dtype=display_dtype(answer.dtype),
    )
    parts: list[RenderableType] = [plain(title, "bold")]
    for group in answer.groups:
        parts += [plain(""), *_group(group, answer, view)]
    parts += [plain(""), plain(texts("life_causal", tokens=f"{answer.tokens:,}"))]
    encoder = answer.groups[0].prefill.encoder
    if encoder:
        parts.append(plain(texts("life_encoder", encoder=f"{encoder:,}")))
    return view.draw(*parts)


def _group(group: LayerLife, answer: ActivationsAnswer, view: View) -> list[RenderableType]:
    texts = view.texts
    names = _NARROW if view.is_narrow else _COLUMNS
    right = tuple(n for n, name in enumerate(names) if name in _RIGHT)
    grid = table(*(texts(name) for name in names), right=right)
    prefill, decode = ({one.life.name: one for one in done.made} for done in (group.prefill, group.decode))
    for life in LIVES:
        if life.name in prefill or life.name in decode:
            cells = _cells(life, prefill.get(life.name), decode.get(life.name), view)
            if life.name == "middle":
                is_gated = any(part.is_gated for part in group.shape.ffn)
                cells["column_activation"] = texts("life.activated" if is_gated else "life.activated_plain")
            grid.add_texts(*(cells[name] for name in names))
    return [
        plain(_group_name(group, answer, view), "bold"),
        grid,
        plain(_fates(group, view)),
        labelled(_sums(group, view)),
        *(plain(text) for text in _measured(group, view)),
    ]


def _fates(group: LayerLife, view: View) -> str:
    texts = view.texts
    parts = [texts(f"fates.{fate}", count=count) for fate, count in group.fates.items() if count]
    return texts("life_fates", fates=texts("life_join").join(parts))


def _measured(group: LayerLife, view: View) -> list[str]:
    """What the decoder made, and where that is not what was computed."""
    said = []
    for phase, done in (("prefill", group.prefill), ("decode", group.decode)):
        if done.measured is None:
            continue
        values: dict[str, object] = {
            "phase": view.texts(f"phase.{phase}"),
            "count": len(done.measured.made),
            "layers": done.measured.layers,
            "peak": view.size(done.measured.peak.size_bytes),
            "at": view.texts(f"life.{done.measured.peak.name}"),
        }
        if done.measured.differences:
            names = ", ".join(view.texts(f"life.{name}") for name in done.measured.differences)
            said.append(view.texts("life_measured_other", names=names, **values))
        else:
            said.append(view.texts("life_measured", **values))
    return said


def _group_name(group: LayerLife, answer: ActivationsAnswer, view: View) -> str:
    count = len(group.indices)
    if count == answer.model.architecture.num_layers:
        name = view.texts("life_group_all", count=count)
    else:
        key = "life_group_some" if count > 1 else "life_group_one"
        name = view.texts(key, count=count, layers=ranges(group.indices))
    window = group.shape.window_tokens
    return name if window is None else view.texts("life_group_window", group=name, window=f"{window:,}")


def ranges(numbers: Sequence[int]) -> str:
    """Return numbers with runs joined, the first few of them.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [f"{first}-{last}" if first != last else f"{first}" for first, last in runs[:6]]
    return ", ".join([*shown, "..."] if len(runs) > 6 else shown)


def _cells(life: Life, prefill: Activation | None, decode: Activation | None, view: View) -> dict[str, str]:
    texts, either = view.texts, prefill or decode
    axes = either.axes if either else ()
    return {
        "column_number": str(life.number) if life.number else "",
        "column_activation": texts(f"life.{life.name}"),
        "column_dimensions": " × ".join(
            _AXES[axis] if isinstance(axis, str) else f"{axis:,}" for axis in axes
        ),
        "column_prefill": view.size(prefill.size_bytes) if prefill else _NONE,
        "column_decode": view.size(decode.size_bytes) if decode else _NONE,
        "column_fate": texts(f"fate.{life.fate.value}"),
        "column_optimiser": texts(f"optimiser.{life.optimiser.value}") if life.optimiser else "",
    }


def _sums(group: LayerLife, view: View) -> list[tuple[str, str]]:
    texts, size = view.texts, view.size
    peak = texts(
        "life_peak",
        prefill=size(group.prefill.plain_peak.size_bytes),
        prefill_at=texts(f"life.{group.prefill.plain_peak.name}"),
        prefill_flash=size(group.prefill.flash_peak.size_bytes),
        decode=size(group.decode.plain_peak.size_bytes),
        decode_flash=size(group.decode.flash_peak.size_bytes),
    )
    kept = texts(
        "life_horizontal", size=size(group.cached_bytes), total=size(group.cached_bytes * len(group.indices))
    )
    return [
        (texts("life_peak_label"), peak),
        (texts("life_vertical_label"), texts("life_vertical", size=size(group.passed_on_bytes))),
        (texts("life_horizontal_label"), kept),
    ]
