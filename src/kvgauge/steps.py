"""A step of an explanation, and what all steps are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property

from kvgauge.arithmetic import number_text, with_numbers
from kvgauge.cache import CacheAnswer
from kvgauge.comparison import design_of
from kvgauge.config_fields import ConfigFields
from kvgauge.design import Design
from kvgauge.formulas import Definition, Number
from kvgauge.size_result import SizeResult
from kvgauge.texts import Words
from kvgauge.values import dataclass

#: Options that state a symbol.
OPTIONS = {
    "T": "--context", "B": "--sequences", "B_all": "--sequences", "T_enc": "--encoder-tokens",
    "T_img": "--image-tokens", "N_tp": "--tp", "N_dp": "--dp", "N_dcp": "--dcp",
    "T_pre": "--shared-prefix",
}  # fmt: skip


#: Steps that add up others.
_SUMS = frozenset({"per_sequence", "total", "fixed", "growth", "theory", "weights"})


@dataclass(frozen=True)
class Step:
    """One number and where it comes from.

    Attributes:
        formula: in the article's symbols; evaluates to ``value_bytes``.
        config_path: dotted paths of the config fields behind the symbols, or None for sums.
        symbol_paths: the field, or the option, behind each symbol that has one.
        fields: path -> value of the config fields read for this step.
        definitions: how computed symbols follow from others.
        told: symbols that an earlier step has shown with these values; the text leaves them out.
        is_repeat: the text leaves it out, as it says nothing that other steps do not.
    """

    id: str
    title: str
    text: str
    formula: str
    symbols: Mapping[str, Number]
    value_bytes: int
    source: str
    config_path: str | None = None
    symbol_paths: Mapping[str, str] = field(default_factory=dict)
    symbol_meanings: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)
    definitions: tuple[Definition, ...] = ()
    told: frozenset[str] = frozenset()
    is_repeat: bool = False

    @property
    def is_sum(self) -> bool:
        """Whether it adds up other steps, and cites nothing."""
        return self.id in _SUMS or self.id.startswith("per_rank")

    @property
    def with_numbers(self) -> str:
        """The formula with the numbers put in, and the bytes that it comes to."""
        return f"{with_numbers(self.formula, self.symbols)} = {number_text(self.value_bytes)} B"

    def to_dict(self) -> dict[str, object]:
        """Return the step of the JSON contract."""
        return {
            "id": self.id,
            "title": self.title,
            "text": self.text,
            "formula": self.formula,
            "with_numbers": self.with_numbers,
            "symbols": dict(self.symbols),
            "symbol_meanings": dict(self.symbol_meanings),
            "symbol_paths": dict(self.symbol_paths),
            "definitions": [self._definition_dict(d) for d in self.definitions],
            "config_path": self.config_path,
            "fields": [{"path": path, "value": value} for path, value in self.fields.items()],
            "value_bytes": self.value_bytes,
            "source": self.source,
        }

    def _definition_dict(self, definition: Definition) -> dict[str, object]:
        value = self.symbols[definition.symbol]
        numbers = f"{with_numbers(definition.formula, self.symbols)} = {number_text(value)}"
        return {
            "symbol": definition.symbol,
            "formula": definition.formula,
            "with_numbers": numbers,
            "value": value,
        }


@dataclass(frozen=True)
class Facts:
    """An answer, the config fields behind it, and the words to say it in."""

    result: SizeResult
    words: Words

    @property
    def cache(self) -> CacheAnswer:
        """What the engine keeps."""
        return self.result.cache

    @cached_property
    def design(self) -> Design:
        """The answer as a design."""
        return design_of(self.result)

    @cached_property
    def fields(self) -> ConfigFields:
        """The config fields that the reader used."""
        return ConfigFields.of(self.result.model.architecture, self.result.model.raw.config)

    @property
    def engine(self) -> str:
        """The engine and its version, as people write them."""
        request = self.result.request
        return f"{request.engine} {request.engine_version}" if request.engine_version else request.engine


def sum_symbols(sizes: Mapping[int, int]) -> tuple[str, dict[str, Number]]:
    """Return a sum over groups (numbered from 1) and its symbols; groups that add nothing are left out."""
    symbols: dict[str, Number] = {f"G_{number}": size for number, size in sizes.items() if size}
    return " + ".join(symbols) or "0", symbols
