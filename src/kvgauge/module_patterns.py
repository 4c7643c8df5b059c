"""Short patterns that match some modules of a model and none of the others: what an ignore list is made of.

Module names are templates with ``{layer}`` and ``{expert}``. A pattern is a piece of the name between two of
them, so that it holds under any prefix a loader adds; layers are named only where nothing else tells apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

LAYER = "{layer}"


class Module(NamedTuple):
    """Modules of one name: ``layers`` are what ``{layer}`` takes."""

    name: str
    layers: tuple[int, ...] = ()


class ModulePattern(NamedTuple):
    """What a tool is told to match.

    Args:
        text: a piece of the name, whole components.
        is_end: the name ends with it; else it stands anywhere.
        before: what stands before the layer's number, where that is part of the pattern: ``layers``.
        layers: ``before.N.text`` of these layers, else of any; without text everything in them.
    """

    text: str
    is_end: bool = False
    before: str = ""
    layers: tuple[int, ...] = ()

    def matches(self, module: Module) -> bool:
        """Whether the pattern matches any of the modules, ``layers`` within ``mtp_layers`` too."""
        if self.before:
            return self._rest(module.name, self.before) and (
                not self.layers or bool(set(self.layers) & set(module.layers))
            )
        return module.name.endswith(self.text) if self.is_end else self.text in module.name

    def covers(self, module: Module) -> bool:
        """Whether the pattern matches all of the modules, from the start of a component."""
        if self.before:
            whole = self._rest(f".{module.name}", f".{self.before}")
            return whole and (not self.layers or set(module.layers) <= set(self.layers))
        return self.matches(module) and f".{self.text}" in f".{module.name}"

    def _rest(self, name: str, before: str) -> bool:
        _, found, rest = name.partition(f"{before}.{LAYER}.")
        return bool(found) and self.text in ("", rest)


def cover(wanted: Iterable[Module], others: Iterable[Module]) -> tuple[ModulePattern, ...]:
    """Return patterns that together match every wanted module and no other, as few as a greedy choice finds.

    >>> kept = [Module(f"layers.{LAYER}.{name}") for name in ("mlp.gate", "gdn.q", "gdn.o")]
    >>> [p.text for p in cover(kept, [Module(f"layers.{LAYER}.mlp.gate_proj")])]
    ['gdn', 'mlp.gate']
    """
    left, rest = list(dict.fromkeys(wanted)), list(dict.fromkeys(others))
    candidates = sorted(
        {p for module in left for p in _candidates(module) if not any(p.matches(other) for other in rest)},
        key=_plainness,
    )
    chosen: list[ModulePattern] = []
    while left:
        best = max(candidates, key=lambda p: sum(p.covers(module) for module in left), default=None)
        if best is None or not any(best.covers(module) for module in left):
            break
        chosen.append(best)
        left = [module for module in left if not best.covers(module)]
    return tuple(sorted(chosen, key=_plainness))


def _plainness(pattern: ModulePattern) -> tuple[object, ...]:
    """Patterns without layers first, then those that stand anywhere, then short ones."""
    return (
        len(pattern.layers),
        len(pattern.before),
        pattern.is_end,
        pattern.text.count("."),
        len(pattern.text),
        pattern,
    )


def _candidates(module: Module) -> Iterator[ModulePattern]:
    runs = [run.strip(".").split(".") for run in module.name.replace("{expert}", LAYER).split(LAYER)]
    for run in runs:
        for start in range(len(run)):
            for end in range(start + 1, len(run) + 1):
                piece = run[start:end]
                # A number at the edge would be taken for a layer's, or be the start of a longer one.
                if all(piece) and not piece[0].isdigit() and not piece[-1][-1].isdigit():
                    yield ModulePattern(".".join(piece))
    last = runs[-1]
    for start in range(max(1, len(last) - 1)):
        if all(last[start:]):
            yield ModulePattern(".".join(last[start:]), is_end=True)
    yield from _layered(module)


def _layered(module: Module) -> Iterator[ModulePattern]:
    head, found, rest = module.name.partition(f".{LAYER}.")
    if not found:
        return
    components = head.split(".")
    is_whole = LAYER not in rest and "{expert}" not in rest
    for start in range(len(components)):
        before = ".".join(components[start:])
        if module.layers:
            yield ModulePattern("", before=before, layers=module.layers)
        if is_whole:
            yield ModulePattern(rest, is_end=True, before=before)
            yield ModulePattern(rest, is_end=True, before=before, layers=module.layers)
