"""Module names of quantisation lists, held against tensor families without naming every tensor.

A list may name thousands of modules that differ by a number. A name is kept as a template with ``#`` for its
numbers and the sets of numbers that stand there, so that sixty layers of 256 experts are one look-up. A
checkpoint, a model class and a quantiser may spell one module in several ways; any spelling counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from kvgauge.errors import InvalidFieldError
from kvgauge.readers.values import MAX_LAYERS
from kvgauge.weights import TensorFamily

MAX_NAME = 400
MAX_TEMPLATES = 1000
MAX_MATCHES = 400_000
#: What a match costs that Python's engine is not trusted with.
_SLOW = 25
#: Stands for the only layer of a family whose name has none.
NO_LAYER = -1

_SPOT = re.compile(r"\{([0-9,-]{1,4000})\}|(?<![0-9A-Za-z_])(\d{1,9})(?![0-9A-Za-z_])")
_PLACE = re.compile(r"\{(layer|expert)\}")
_WILD = re.compile(r"[*?\[]")


class Mode(StrEnum):
    """What a listed name stands for.

    EXACT: that module. PATH: it, all below it, and modules whose name ends so (Transformers' lists).
    CONTAINS: modules that have it anywhere in their name (AWQ). In all, ``re:`` begins a regular expression.
    """

    EXACT = "exact"
    PATH = "path"
    CONTAINS = "contains"


@lru_cache(maxsize=4096)
def module_of(name: str) -> str:
    """Return the module of a tensor.

    >>> module_of("model.layers.{layer}.mlp.up_proj.weight")
    'model.layers.{layer}.mlp.up_proj'
    """
    return name.removesuffix(".weight")


_TEXT_ROOTS = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.")
_ROOTS = ("", *_TEXT_ROOTS)
#: Spellings of one part of a name in checkpoints, classes and quantisers, beside the first.
_SAME = (
    (".mlp.", (".block_sparse_moe.", ".feed_forward.", ".ffn.")),
    (".gate_proj", (".w1",)),
    (".up_proj", (".w3",)),
    (".down_proj", (".w2",)),
    (".indexer.", (".index_",)),
    ("embed_tokens", ("embed", "embeddings")),
    ("lm_head", ("head",)),
)


@lru_cache(maxsize=4096)
def spellings(module: str) -> tuple[str, ...]:
    """Return a module's name as checkpoints and lists may write it, its own first."""
    core = module
    for root in _TEXT_ROOTS:
        if core.startswith(root):
            core = core.removeprefix(root)
            break
    inner = [core]
    for first, others in _SAME:
        same = (first, *others)
        for name in list(inner):
            found = next((word for word in same if word in f".{name}."), None)
            if found is not None and found.strip(".") != "embed":
                inner.extend(name.replace(found, other) for other in same if other != found)
    names = [module, *(root + name for name in inner for root in _ROOTS)]
    return tuple(dict.fromkeys(names))


class _Template(NamedTuple):
    """A name with ``#`` for its numbers, and which numbers stand there."""

    text: str
    numbers: tuple[frozenset[int], ...] = ()


def _template(name: str) -> _Template:
    numbers: list[frozenset[int]] = []

    def spot(match: re.Match[str]) -> str:
        numbers.append(_numbers(match[1]) if match[1] else frozenset({int(match[2])}))
        return "#"

    return _Template(_SPOT.sub(spot, name), tuple(numbers))


def _numbers(ranges: str) -> frozenset[int]:
    found: set[int] = set()
    for span in ranges.split(","):
        first, _, last = span.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()) or len(first + last) > 18:
            raise InvalidFieldError(
                f"the numbers {ranges[:40]} of a module name are none", field="quantization_config"
            )
        low, high = int(first), int(last or first)
        if high - low > MAX_LAYERS:
            raise InvalidFieldError(
                f"the numbers {ranges[:40]} of a module name are too many", field="quantization_config"
            )
        found.update(range(low, high + 1))
    return frozenset(found)


_Numbers = tuple[frozenset[int], ...]
_Table = Mapping[str, Sequence[_Numbers]]


class Allowance:
    """Matches left for a file: a thousand patterns and ten thousand layers would take hours."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_MATCHES

    def take(self, cost: int) -> None:
        """Count one match.

        Raises:
            InvalidFieldError: there were too many.
        """
        self.left -= cost
        if self.left < 0:
            raise InvalidFieldError(
                "the patterns of module names take too long to match", field="quantization_config"
            )


class NameSet(NamedTuple):
    """Names of a list.

    Args:
        plain: template -> its number sets, each a tuple of one set a spot.
        wild: templates with wildcards, the same.
        expressions: regular expressions.
    """

    mode: Mode
    plain: _Table = MappingProxyType({})
    wild: _Table = MappingProxyType({})
    expressions: tuple[str, ...] = ()
    anywhere: bool = False
    allowance: Allowance | None = None

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        mode: Mode,
        *,
        anywhere: bool = False,
        allowance: Allowance | None = None,
    ) -> NameSet:
        """Read a list of names.

        Args:
            names: as the file has them; ``{0-3}`` stands for numbers.
            mode: what a plain name stands for.
            anywhere: a regular expression may fit any part of a name, not only its beginning.
            allowance: what the lists of a file share.

        Raises:
            InvalidFieldError: a name is very long, or there are very many.
        """
        plain: dict[str, dict[tuple[frozenset[int], ...], set[int]]] = {}
        wild: dict[str, dict[tuple[frozenset[int], ...], set[int]]] = {}
        expressions: list[str] = []
        for name in names:
            if name.startswith("re:"):
                expressions.append(name[3:])
                continue
            if len(name) > MAX_NAME:
                raise InvalidFieldError(
                    f"a module name has {len(name)} characters, more than {MAX_NAME}",
                    field="quantization_config",
                )
            template = _template(name)
            table = wild if _WILD.search(template.text) else plain
            rest = table.setdefault(template.text, {})
            first = template.numbers[0] if template.numbers else frozenset({NO_LAYER})
            rest.setdefault(template.numbers[1:], set()).update(first)
            if len(plain) + len(wild) + len(expressions) > MAX_TEMPLATES:
                raise InvalidFieldError("the list of modules is too long", field="quantization_config")
        patterns = tuple(dict.fromkeys(expressions))
        return cls(mode, _frozen(plain), _frozen(wild), patterns, anywhere, allowance or Allowance())

    def layers_of(self, family: TensorFamily, layers: frozenset[int]) -> frozenset[int]:
        """Return those of ``layers`` in which the list names a family's module."""
        if not (self.plain or self.wild or self.expressions):
            return frozenset()
        module = module_of(family.name)
        found: set[int] = set()
        for name in spellings(module):
            spot = _PLACE.sub("#", name)
            template = _template(spot)
            own = _own_numbers(name)
            for numbers in self._hits(template.text):
                found |= _fitting(numbers, own, layers)
            if len(found) == len(layers):
                return layers
        found |= self._by_expression(module, layers - found)
        return frozenset(found)

    def _hits(self, name: str) -> Iterator[tuple[frozenset[int], ...]]:
        for key in self._keys(name):
            yield from self.plain.get(key, ())
        for key, numbers in self.wild.items():
            if fnmatchcase(name, key) or (self.mode is Mode.PATH and fnmatchcase(name, key + ".*")):
                yield from numbers

    def _keys(self, name: str) -> Iterable[str]:
        """Return the templates of the list that stand for a name."""
        if self.mode is Mode.EXACT:
            return (name,)
        if self.mode is Mode.CONTAINS:
            return [key for key in self.plain if key in name]
        dotted = f".{name}."
        return [key for key in self.plain if f".{key}." in dotted or name.endswith(key)]

    def _by_expression(self, module: str, layers: frozenset[int]) -> set[int]:
        found: set[int] = set()
        for pattern in self.expressions:
            left = layers - found
            if not left:
                break
            if not _sees_numbers(pattern):
                found |= left if self._fits(pattern, module, min(left)) else set()
                continue
            found |= {layer for layer in left if self._fits(pattern, module, layer)}
        return found

    def _fits(self, pattern: str, module: str, layer: int) -> bool:
        from kvgauge.readers.hf.schemes.expressions import is_quick, matches  # noqa: PLC0415 - few have any

        names = _written(module, layer)
        if self.anywhere or pattern.startswith((".*", "^.*")):
            names = names[:1]  # what stands before the name makes no difference
        for name in names:
            if self.allowance is not None:
                self.allowance.take(1 if is_quick(pattern) else _SLOW)
            if matches(pattern, name, anywhere=self.anywhere):
                return True
        return False


@lru_cache(maxsize=1024)
def _sees_numbers(pattern: str) -> bool:
    """Whether layers may fare differently: ``.*`` and letters take every number alike."""
    return re.search(r"\d|\\[dw]|\[|\.(?![*+])|\{", pattern.replace("\\.", "")) is not None


def _frozen(table: dict[str, dict[_Numbers, set[int]]]) -> _Table:
    return {text: [(frozenset(first), *rest) for rest, first in rows.items()] for text, rows in table.items()}


@lru_cache(maxsize=4096)
def _own_numbers(name: str) -> tuple[frozenset[int] | None, ...]:
    """Return the number at each place of a family's name, None for a layer or an expert."""
    own: list[frozenset[int] | None] = []
    for part in re.split(r"(\{(?:layer|expert)\})", name):
        if part.startswith("{"):
            own.append(None)
        else:
            own.extend(_template(part).numbers)
    return tuple(own)


def _fitting(
    numbers: tuple[frozenset[int], ...], own: tuple[frozenset[int] | None, ...], layers: frozenset[int]
) -> frozenset[int]:
    """Return the layers of a family that a listed name covers; a name without a number covers all."""
    first = numbers[0]
    if first == {NO_LAYER} or not own:
        return layers
    literal = own[0]
    if literal is not None:
        return layers if literal & first else frozenset()
    return layers & first


@lru_cache(maxsize=65536)
def _written(module: str, layer: int) -> tuple[str, ...]:
    """Return the names of one layer's module, its first expert's where there are several."""
    text = module.replace("{layer}", str(layer)).replace("{expert}", "0")
    core = next((text.removeprefix(root) for root in _TEXT_ROOTS if text.startswith(root)), text)
    return tuple(dict.fromkeys((text, *(root + core for root in _ROOTS))))
