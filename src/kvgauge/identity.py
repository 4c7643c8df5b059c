"""A large value as the key of a cache: equal only to itself, so that no two are compared field by field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, eq=False)
class Identity(Generic[_Value]):
    """Stands for a frozen value in a key.

    Args:
        of: the value; the cache keeps it, so that its place in memory is no other's.

    >>> one, like = (1, [2]), (1, [2])
    >>> Identity(one) == Identity(one), Identity(one) == Identity(like)
    (True, False)
    """

    of: _Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)
