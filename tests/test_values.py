"""Frozen values behave as the standard library's frozen dataclasses do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvgauge import values

BOTH = pytest.mark.parametrize("make", [values.dataclass, dataclasses.dataclass], ids=["ours", "standard"])


def _classes(make):
    @make(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2
        tags: tuple[str, ...] = ()
        seen: dict[str, int] = field(default_factory=dict, compare=False, repr=False)

    @make(frozen=True)
    class Named:
        name: str

        @cached_property
        def length(self) -> int:
            return len(self.name)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    return Point, Named


@BOTH
def test_making_comparing_and_showing(make):
    point, named = _classes(make)
    assert point(1) == point(1, 2, ()) == point(1, seen={"a": 1}) != point(2)
    assert hash(point(1)) == hash(point(1, seen={"b": 1})) and len({point(1), point(1), point(3)}) == 2
    assert point(1) != (1, 2, ()) and named("a") != point(1)
    assert repr(point(1, 2, ("a",))).endswith("Point(x=1, y=2, tags=('a',))")
    assert point(1).seen is not point(1).seen
    assert named("Ab") == named("aB") and hash(named("A")) == hash(named("a")) and repr(named("a")) == "<a>"
    assert named("abc").length == 3
    with pytest.raises(TypeError, match="x"):
        point()
    with pytest.raises(TypeError, match="z"):
        point(1, z=3)


@BOTH
def test_nothing_changes(make):
    point, _ = _classes(make)
    one = point(1)
    for name in ("x", "other"):
        with pytest.raises((FrozenInstanceError, TypeError)):
            setattr(one, name, 3)
    with pytest.raises(FrozenInstanceError):
        del one.x
    assert not hasattr(one, "__dict__")


@BOTH
def test_the_standard_functions_take_them(make):
    point, named = _classes(make)
    assert replace(point(1), y=5) == point(1, 5)
    assert [each.name for each in fields(point)] == ["x", "y", "tags", "seen"]
    assert asdict(point(1)) == {"x": 1, "y": 2, "tags": (), "seen": {}}
    assert copy.deepcopy(point(1, 7)) == copy.copy(point(1, 7)) == point(1, 7)
    match point(1, 9):
        case point(x, y):
            assert (x, y) == (1, 9)
    assert copy.deepcopy(named("x")) == named("x")


@BOTH
def test_what_is_done_after(make):
    @make(frozen=True)
    class Even:
        number: int
        half: int = field(init=False, default=0)

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("odd")

    @make(frozen=True, slots=True)
    class Empty:
        pass

    assert (Even(4).half, Empty() == Empty(), hash(Empty()) == hash(Empty())) == (0, True, True)
    with pytest.raises(ValueError, match="odd"):
        Even(3)


def test_other_arguments_are_the_standard_ones():
    @values.dataclass
    class Changing:
        x: int = 0

    one = Changing()
    one.x = 3
    assert one == Changing(3) and Changing.__hash__ is None


@values.dataclass(frozen=True, slots=True)
class Pickled:
    x: int
    y: tuple[int, ...] = ()


@given(st.integers(), st.lists(st.integers()).map(tuple))
def test_pickles(x, y):
    assert pickle.loads(pickle.dumps(Pickled(x, y))) == Pickled(x, y)  # noqa: S301 - our own bytes
