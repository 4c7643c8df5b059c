"""Typed, bounded access to the keys of one architecture in GGUF metadata.

Keys are asked for without their architecture prefix; errors and explanations name them in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kvgauge.errors import InvalidFieldError, MissingFieldError
from kvgauge.readers.values import MAX_LAYERS, MAX_WIDTH, as_count, short

Shapes = Mapping[str, Sequence[int]]


@dataclass
class Metadata:
    """The keys of one architecture.

    Args:
        values: all metadata, as in the file.
        architecture: ``general.architecture``.
        shapes: tensor name -> shape, empty where no tensor table is at hand.
        used: key -> value of what was read; local to one reading.
        defaulted: the same for what the file leaves out and the architecture defines.
    """

    values: Mapping[str, object]
    architecture: str
    shapes: Shapes = field(default_factory=dict)
    used: dict[str, object] = field(default_factory=dict)
    defaulted: dict[str, object] = field(default_factory=dict)

    def key(self, name: str) -> str:
        """Return the whole key."""
        return f"{self.architecture}.{name}"

    def has(self, name: str) -> bool:
        """Whether the file states a key, and not null."""
        return self.values.get(self.key(name)) is not None

    def find(self, name: str) -> object | None:
        """Return a value as it stands, or None."""
        value = self.values.get(self.key(name))
        if value is not None:
            self.used[self.key(name)] = value
        return value

    def count(self, name: str, *, low: int = 1, high: int = MAX_WIDTH, because: str = "") -> int:
        """Return a required whole number.

        Raises:
            MissingFieldError: absent. InvalidFieldError: wrong type or out of range.
        """
        value = self.optional_count(name, low=low, high=high)
        if value is None:
            raise self.missing(name, because)
        return value

    def optional_count(self, name: str, *, low: int = 1, high: int = MAX_WIDTH) -> int | None:
        """Return a whole number, or None where it is absent."""
        value = self.find(name)
        return None if value is None else as_count(value, self.key(name), low=low, high=high)

    def default(self, name: str, value: int) -> int:
        """Return what the architecture's code uses for an absent key, and remember that it was used."""
        self.defaulted[self.key(name)] = value
        return value

    def listed(self, name: str) -> Sequence[object] | None:
        """Return a list, or None where the key is absent or one number."""
        value = self.find(name)
        if not isinstance(value, list | tuple):
            return None
        if len(value) > MAX_LAYERS:
            raise InvalidFieldError(f"{self.key(name)} has {len(value)} entries", field=self.key(name))
        return value

    def per_layer(self, name: str, count: int, *, high: int = MAX_WIDTH) -> tuple[int, ...] | None:
        """Return one whole number a layer from a number or a list, or None where the key is absent.

        Raises:
            InvalidFieldError: the list is shorter than the layers.
        """
        value = self.find(name)
        if value is None:
            return None
        entries = self.listed(name)
        if entries is None:
            return (as_count(value, self.key(name), low=0, high=high),) * count
        self._check_length(name, entries, count)
        return tuple(
            as_count(v, f"{self.key(name)}[{i}]", low=0, high=high) for i, v in _clip(entries, count)
        )

    def flags(self, name: str, count: int) -> tuple[bool, ...] | None:
        """Return one truth value a layer from a list, or None where the key is no list."""
        entries = self.listed(name)
        if entries is None:
            return None
        self._check_length(name, entries, count)
        return tuple(self._flag(v, f"{self.key(name)}[{i}]") for i, v in _clip(entries, count))

    @staticmethod
    def _flag(value: object, where: str) -> bool:
        return value if isinstance(value, bool) else bool(as_count(value, where, low=0, high=1))

    def _check_length(self, name: str, entries: Sequence[object], count: int) -> None:
        if len(entries) < count:
            raise InvalidFieldError(
                f"{self.key(name)} has {len(entries)} entries for {count} blocks",
                hint=f"one entry a block of {self.key('block_count')}",
                field=self.key(name),
            )

    def missing(self, name: str, because: str = "") -> MissingFieldError:
        """Return the error for an absent key (to raise)."""
        key = self.key(name)
        reason = f", which {because}" if because else ""
        return MissingFieldError(
            f"the metadata has no {key}{reason}",
            hint=f"convert the model again with a newer llama.cpp, or pass --override {key}=VALUE",
            field=key,
        )

    def invalid(self, name: str, message: str, hint: str = "") -> InvalidFieldError:
        """Return the error for an impossible value (to raise)."""
        return InvalidFieldError(f"{self.key(name)} {message}", hint=hint, field=self.key(name))

    def sources(self, *names: str) -> tuple[str, ...]:
        """Return the whole keys of ``names`` that the file states."""
        return tuple(self.key(name) for name in names if self.has(name))

    def check_width(self, tensor: str, width: int, name: str) -> None:
        """Hold a row width against the tensor that makes such rows, where the tensor table has it.

        Raises:
            InvalidFieldError: the metadata contradicts the weights.
        """
        shape = self.shapes.get(tensor)
        if shape is not None and len(shape) == 2 and shape[1] != width:
            raise self.invalid(
                name,
                f"and its fellows make rows of {short(width)}, but {tensor} makes rows of {short(shape[1])}",
                "correct the metadata; the weights can't be of this shape",
            )


def _clip(entries: Sequence[object], count: int) -> enumerate[object]:
    return enumerate(entries[:count])
