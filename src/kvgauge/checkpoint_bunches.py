"""A checkpoint's tensors in bunches: the experts of a layer, whose tensors are alike, once.

DeepSeek-V3 has 90,000 tensors and some thousand bunches; what follows looks at bunches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kvgauge.packed_tensors import Matrix, Raw
from kvgauge.readers.tensor_names import TensorPlace, place_of_template, split_name
from kvgauge.sources.safetensors import TensorInfo


class Bunch(NamedTuple):
    """Alike tensors of one layer: one, or one for each expert.

    Args:
        place: what the name says; ``expert`` is None.
        raw: dtype word and shape of each.
        matrix: all tensors of the module that one belongs to.
    """

    place: TensorPlace
    raw: Raw
    matrix: Matrix


def bunches_of(tensors: Iterable[TensorInfo]) -> dict[Bunch, int]:
    """Return bunch -> number of its tensors."""
    raws: dict[tuple[str, tuple[int, ...]], int] = {}
    modules: dict[tuple[str, int | None, int | None], list[tuple[str, int]]] = {}
    rows: list[tuple[str, int | None, int, list[tuple[str, int]]]] = []
    for tensor in tensors:
        template, layer, expert = split_name(tensor.name)
        place = place_of_template(template)
        raw = raws.setdefault((tensor.dtype, tensor.shape), len(raws))
        module = modules.setdefault((place.module, layer, expert), [])
        module.append((place.suffix, raw))
        rows.append((template, layer, raw, module))
    return _counted(rows, [Raw(dtype, shape) for dtype, shape in raws])


def _counted(
    rows: Iterable[tuple[str, int | None, int, list[tuple[str, int]]]], raws: list[Raw]
) -> dict[Bunch, int]:
    """Count rows of one template, layer, raw and module; numbers stand for raws, and are quick to compare."""
    counts: dict[tuple[str, int | None, int, tuple[tuple[str, int], ...]], int] = {}
    for template, layer, raw, module in rows:
        key = (template, layer, raw, tuple(module) if len(module) == 1 else tuple(sorted(module)))
        counts[key] = counts.get(key, 0) + 1
    found: dict[Bunch, int] = {}
    for (template, layer, raw, module_key), count in counts.items():
        matrix = tuple((suffix, raws[number]) for suffix, number in module_key)
        place = place_of_template(template)._replace(layer=layer)
        bunch = Bunch(place, raws[raw], matrix)
        found[bunch] = found.get(bunch, 0) + count
    return found


def stack_sizes(bunches: Iterable[Bunch]) -> dict[str, int]:
    """Return container of stacked experts -> how many: what its tensors of three dimensions begin with."""
    sizes: dict[str, set[int]] = {}
    for bunch in bunches:
        container = container_of(bunch.place.template)
        if container and "{expert}" not in bunch.place.template and len(bunch.raw.shape) > 2:
            sizes.setdefault(container, set()).add(bunch.raw.shape[0])
    return {name: next(iter(found)) for name, found in sizes.items() if len(found) == 1}


def container_of(template: str) -> str:
    """Return the part of a name up to the experts, "" where there are none."""
    for word in (".experts.", ".input_linear.", ".output_linear."):
        head, found, _ = template.partition(word)
        if found:
            return head + word
    return ""


def dims_of(bunches: Mapping[Bunch, int], name: str) -> Raw | None:
    """Return dtype and shape of a tensor that is no layer's, or None."""
    return next((bunch.raw for bunch in bunches if bunch.place.template == name), None)
