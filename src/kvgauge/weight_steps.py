"""Weights, opened: a step for each part and format, tensor by tensor, then their sum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kvgauge.dtypes import display_dtype
from kvgauge.formulas import Definition, Number
from kvgauge.steps import Step
from kvgauge.stored_weights import StoredFamily
from kvgauge.texts import Words
from kvgauge.values import dataclass
from kvgauge.weight_answer import WeightAnswer
from kvgauge.weight_formats import WeightFormat
from kvgauge.weight_formulas import tensor_formula

_PREFIX = "{layer}."
_MAX_NAMES = 4


@dataclass(frozen=True, slots=True)
class _Alike:
    """Tensors of one shape and format, whatever their names."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    form: WeightFormat
    count: int
    slices: int = 1
    align_bytes: int = 1

    @property
    def formula(self) -> str:
        """The bytes of one tensor."""
        text = tensor_formula(self.form, self.shape)
        if self.slices > 1:
            text = f"{self.slices} × ({text})"
        return f"ceil(({text}) / {self.align_bytes}) × {self.align_bytes}" if self.align_bytes > 1 else text

    @property
    def size_bytes(self) -> int:
        """What the formula comes to."""
        size = self.slices * self.form.stored_bytes(self.shape)
        return -(-size // self.align_bytes) * self.align_bytes


def weight_steps(
    weights: WeightAnswer | None, words: Words, fields: Mapping[str, Mapping[str, object]] | None = None
) -> list[Step]:
    """Return the steps of the weights; none where there are none.

    Args:
        fields: tensor name -> dotted path -> value of the config fields behind its shape.
    """
    if weights is None:
        return []
    stored = weights.stored
    families = (*stored.families, *(stored.mtp_families if weights.mtp else ()))
    groups: dict[tuple[str, str], list[StoredFamily]] = {}
    for row in weights.by_part:
        groups[row.part.value, row.dtype] = []
    for family in families:
        if family.num_bytes:
            groups[family.family.part.value, family.format.name].append(family)
    source = words.phrase(f"from_{stored.source}", "weights")
    steps = [
        _part_step(part, dtype, rows, source, words, fields or {}) for (part, dtype), rows in groups.items()
    ]
    return [*steps, _total_step(steps, weights, words), *_rank_steps(weights, words)]


def _part_step(
    part: str,
    dtype: str,
    families: Sequence[StoredFamily],
    source: str,
    words: Words,
    fields: Mapping[str, Mapping[str, object]],
) -> Step:
    alike = _alike(families)
    symbols: dict[str, Number] = {}
    meanings: dict[str, str] = {}
    definitions: list[Definition] = []
    for number, tensors in enumerate(alike, 1):
        symbols[f"t_{number}"] = tensors.count
        symbols[f"w_{number}"] = tensors.size_bytes
        names = _listed(tensors.names, words)
        meanings[f"t_{number}"] = words.phrase("tensors", "weights", names=names)
        shape = " × ".join(f"{dim:,}" for dim in tensors.shape)
        meanings[f"w_{number}"] = words.phrase(
            "one", "weights", shape=shape, dtype=display_dtype(tensors.form.name)
        )
        definitions.append(Definition(f"w_{number}", tensors.formula))
    total = sum(tensors.count * tensors.size_bytes for tensors in alike)
    formula = " + ".join(f"t_{n} × w_{n}" for n in range(1, len(alike) + 1))
    read = {p: v for stored in families for p, v in fields.get(stored.family.name, {}).items()}
    return Step(
        f"weights.{part}.{dtype}",
        words.phrase("title", "weights", part=words.title("parts", part), dtype=display_dtype(dtype)),
        words.text("parts", part),
        formula,
        symbols,
        total,
        source,
        config_path=", ".join(read) or None,
        symbol_meanings=meanings,
        fields=read,
        definitions=tuple(definitions),
    )


def _alike(families: Iterable[StoredFamily]) -> list[_Alike]:
    merged: dict[_Alike, tuple[list[str], int]] = {}
    for stored in families:
        family = stored.family
        slices = max(1, family.num_experts) if family.stacked else 1
        is_whole = family.shape and stored.format.stored_bytes(family.shape) % stored.align_bytes == 0
        align, each = (1, 1) if is_whole else (stored.align_bytes, slices)
        key = _Alike((), family.shape, stored.format, 0, each, align)
        names, count = merged.setdefault(key, ([], 0))
        names.append(_short(family.name))
        merged[key] = (names, count + family.num_tensors * (slices // each))
    return [
        replace(key, names=tuple(dict.fromkeys(names)), count=count) for key, (names, count) in merged.items()
    ]


def _short(name: str) -> str:
    """Return a tensor's name without the model's and the layer's prefix."""
    return name.rpartition(_PREFIX)[2].removesuffix(".weight") if _PREFIX in name else name


def _listed(names: tuple[str, ...], words: Words) -> str:
    shown = words.listed(list(names[:_MAX_NAMES]))
    more = len(names) - _MAX_NAMES
    return words.phrase("more", "weights", names=shown, count=more) if more > 0 else shown


def _rank_steps(weights: WeightAnswer, words: Words) -> list[Step]:
    """Return what one rank of each pipeline stage holds, part by part; nothing on one GPU."""
    if weights.parallelism.num_gpus == 1 or weights.stored.source == "index":
        return []
    steps: list[Step] = []
    for stage in range(weights.parallelism.pipeline):
        parts: dict[tuple[str, str], int] = {}
        for tensor in weights.rank_tensors(stage):
            key = (tensor.family.part.value, tensor.form.name)
            size = tensor.num_bytes * max(1, len(tensor.layers)) * tensor.copies
            parts[key] = parts.get(key, 0) + size
        held = sum(parts.values())
        same = [rank for rank, size in enumerate(weights.per_rank_bytes) if size == held]
        if same and same[0] // weights.parallelism.tensor == stage:
            steps.append(_rank_step(stage, parts, same, weights, words))
    return steps


def _rank_step(
    stage: int, parts: Mapping[tuple[str, str], int], ranks: list[int], weights: WeightAnswer, words: Words
) -> Step:
    symbols: dict[str, Number] = {f"W_{n}": size for n, size in enumerate(parts.values(), 1)}
    whole = {(row.part.value, row.dtype): row.num_bytes for row in weights.by_part}
    meanings = {
        f"W_{number}": words.phrase(
            "of_part",
            "weights",
            part=words.title("parts", part),
            dtype=display_dtype(dtype),
            whole=words.size(whole.get((part, dtype), size)),
        )
        for number, ((part, dtype), size) in enumerate(parts.items(), 1)
    }
    key = "rank_title" if len(ranks) > 1 else "rank_title_one"
    return Step(
        "weights.per_rank" if not stage else f"weights.per_rank.{stage}",
        words.phrase(key, "weights", first=str(ranks[0]), last=str(ranks[-1])),
        words.phrase("rank", "weights"),
        " + ".join(symbols),
        symbols,
        sum(parts.values()),
        words.source("weights_ranks"),
        symbol_meanings=meanings,
    )


def _total_step(steps: list[Step], weights: WeightAnswer, words: Words) -> Step:
    symbols: Mapping[str, Number] = {f"W_{n}": step.value_bytes for n, step in enumerate(steps, 1)}
    meanings = {f"W_{n}": step.title for n, step in enumerate(steps, 1)}
    stored = weights.stored
    text = words.sentences(
        [words.phrase("part", "weights"), words.phrase("total", "weights", parameters=stored.num_parameters)]
    )
    if stored.num_active_parameters not in (None, stored.num_parameters):
        active = words.phrase("active", "weights", active=stored.num_active_parameters)
        text = words.sentences([text, active])
    if stored.mtp_bytes and not weights.mtp:
        left_out = words.phrase("without_mtp", "weights", size=words.size(stored.mtp_bytes))
        text = words.sentences([text, left_out])
    return Step(
        "weights",
        words.phrase("total_title", "weights"),
        text,
        " + ".join(symbols),
        symbols,
        weights.total_bytes,
        words.source("weights_sum"),
        symbol_meanings=meanings,
    )
