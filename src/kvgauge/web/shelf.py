"""A bounded place for what was read: the least recently used goes when it is full."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Shelf(Generic[T]):
    """Values by key, bounded in number and in weight.

    Args:
        max_items: values at once.
        max_weight: sum of their weights; what weighs more than all is not kept.
    """

    def __init__(self, max_items: int, max_weight: int) -> None:
        self._max_items, self._max_weight = max_items, max_weight
        self._items: OrderedDict[str, tuple[T, int]] = OrderedDict()
        self._weight = 0
        self._lock = Lock()

    def get(self, key: str) -> T | None:
        """Return a value, or None."""
        with self._lock:
            found = self._items.get(key)
            if found is None:
                return None
            self._items.move_to_end(key)
            return found[0]

    def put(self, key: str, value: T, weight: int) -> None:
        """Keep a value."""
        with self._lock:
            old = self._items.pop(key, None)
            self._weight += weight - (old[1] if old is not None else 0)
            self._items[key] = (value, weight)
            while self._items and (len(self._items) > self._max_items or self._weight > self._max_weight):
                _, (_, dropped) = self._items.popitem(last=False)
                self._weight -= dropped

    def __len__(self) -> int:
        return len(self._items)
