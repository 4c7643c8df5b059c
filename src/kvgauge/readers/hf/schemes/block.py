"""The block of a config, or of the file beside it, that says how the weights are quantised."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvgauge.errors import FeatureUnsupportedError, InvalidFieldError, MissingFieldError
from kvgauge.readers.values import as_count, short

MAX_NAMES = 200_000
MAX_GROUP = 1 << 20
MAX_TEXT = 200
SIDE_FILE = "hf_quant_config.json"
_SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config")
_BLOCKS = ("quantization_config", "compression_config", "quantization")


class Block(NamedTuple):
    """Typed, bounded access to a quantisation block.

    Args:
        path: dotted path of the block, for errors.
        config: the config around it.
        is_side_file: it is ``hf_quant_config.json`` beside a config without a block.
        text_only: it stands in the language model's own section, and speaks of nothing else.
    """

    values: Mapping[str, object]
    path: str = "quantization_config"
    config: Mapping[str, object] = MappingProxyType({})
    is_side_file: bool = False
    text_only: bool = False

    def where(self, name: str) -> str:
        """Return the dotted path of a field."""
        return f"{self.path}.{name}"

    def invalid(self, name: str, wanted: str) -> InvalidFieldError:
        """Return the error of a field of the wrong kind."""
        return InvalidFieldError(
            f"{self.where(name)} must be {wanted}, not {short(self.values.get(name))}", field=self.where(name)
        )

    def unsupported(self, name: str, *words: str) -> FeatureUnsupportedError:
        """Return the error of a method or a variant that is not known; the files still say the bytes."""
        what = " ".join(word[:40] or "?" for word in words)
        return FeatureUnsupportedError(
            f"weights quantised with {what} are not known",
            hint="give the safetensors files or their index, which say the bytes themselves",
            field=self.where(name),
        )

    def has(self, name: str) -> bool:
        """Whether a field is present and not null."""
        return self.values.get(name) is not None

    def text(self, name: str, default: str = "") -> str:
        """Return a word, lower case."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > MAX_TEXT:
            raise self.invalid(name, "a word")
        return value.lower()

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a switch."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.invalid(name, "true or false")
        return value

    def number(self, name: str, *, low: int, high: int, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            MissingFieldError: it is absent and has no default.
        """
        value = self.values.get(name)
        if value is None and default is not None:
            return default
        if value is None:
            raise MissingFieldError(
                f"{self.where(name)} is missing, which says how the weights are packed",
                hint=f"add it, or give it with --override {self.where(name)}=",
                field=self.where(name),
            )
        return as_count(value, self.where(name), low=low, high=high)

    def bits(self, name: str, known: tuple[int, ...], default: int | None = None) -> int:
        """Return bits of a value, of which some are known."""
        bits = self.number(name, low=1, high=64, default=default)
        if bits not in known:
            raise self.unsupported(name, f"{bits}-bit")
        return bits

    def group_size(self, name: str = "group_size", default: int | None = None) -> int:
        """Return values that share a scale; -1 for a whole row."""
        size = self.number(name, low=-1, high=MAX_GROUP, default=default)
        if not size:
            raise self.invalid(name, "a number of values, or -1 for a row")
        return size

    def names(self, *fields: str) -> list[str]:
        """Return the names of the first list that is present, bounded; an empty list where none is."""
        for name in fields:
            value = self.values.get(name)
            if value is None:
                continue
            if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
                raise self.invalid(name, "a list of names")
            self._bounded(name, value)
            return value
        return []

    def table(self, name: str) -> Mapping[str, object]:
        """Return a JSON object; an empty one where it is absent."""
        value = self.values.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.invalid(name, "an object")
        self._bounded(name, value)
        return value

    def inner(self, name: str) -> Block | None:
        """Return an object within the block, or None where it is absent."""
        if not self.has(name):
            return None
        return self.of(self.table(name), name)

    def of(self, values: object, name: str) -> Block:
        """Return an object of a list or a table of the block."""
        if not isinstance(values, Mapping):
            raise InvalidFieldError(
                f"{self.where(name)} must be an object, not {short(values)}", field=self.where(name)
            )
        return Block(values, self.where(name[:80]), self.config, self.is_side_file, self.text_only)

    def _bounded(self, name: str, value: list[str] | Mapping[str, object]) -> None:
        if len(value) > MAX_NAMES:
            raise InvalidFieldError(
                f"{self.where(name)} has {len(value)} entries, more than {MAX_NAMES}", field=self.where(name)
            )


def find_block(config: Mapping[str, object], side_file: Mapping[str, object] | None) -> Block | None:
    """Return the block that holds, or None for weights that are not quantised.

    The config's own comes first, then its language model's, then the file beside it.

    Raises:
        InvalidFieldError: it is no object.
    """
    for section in ("", *_SECTIONS):
        level = config.get(section) if section else config
        if not isinstance(level, Mapping):
            continue
        path = f"{section}." if section else ""
        for name in _BLOCKS:
            if level.get(name) is not None:
                return _block(level[name], path + name, config, bool(section))
    if side_file is None:
        return None
    inner = side_file.get("quantization", side_file)
    if not isinstance(inner, Mapping):
        raise InvalidFieldError(f"{SIDE_FILE} must hold an object, not {short(inner)}", field="quantization")
    return Block(inner, SIDE_FILE, config, is_side_file=True)


def _block(value: object, path: str, config: Mapping[str, object], text_only: bool) -> Block:
    if not isinstance(value, Mapping):
        raise InvalidFieldError(f"{path} must be an object, not {short(value)}", field=path)
    return Block(value, path, config, text_only=text_only)
