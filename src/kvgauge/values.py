"""Frozen values: the standard library's dataclasses, of which a class is made in a third of the time.

``dataclasses.dataclass`` writes six methods of every class as text and compiles each: half of the start-up of
a command that needs fifty such classes (CPython 3.11). But for ``__init__`` they are alike in all classes, so
they stand here once. ``fields``, ``replace`` and ``asdict`` take such a value as they take any other; a type
checker sees the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, **others: bool
    ) -> type | Callable[[type], type]:
        """Make a dataclass, as ``dataclasses.dataclass`` does with these arguments."""

        def made(cls: type) -> type:
            if frozen and not others:
                return _frozen(cls, slots=slots)
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, **others)

        return made if cls is None else made(cls)


class _Frozen:
    """What all frozen values do alike."""

    __slots__ = ()
    _compared: ClassVar[Callable[[object], object]]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        found: bool = type(self)._compared(self) == type(self)._compared(other)
        return found

    def __hash__(self) -> int:
        return hash(type(self)._compared(self))

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __getstate__(self) -> list[object]:
        return [getattr(self, each.name) for each in _fields(self)]

    def __setstate__(self, state: list[object]) -> None:
        for each, value in zip(_fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)


#: Copies and pickles of a class with slots go through its state; others have a dictionary.
_STATE = ("__getstate__", "__setstate__")
_METHODS = ("__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__")
_UNSET = object()


def _fields(value: object) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(value)  # type: ignore[arg-type]


def _frozen(cls: type, *, slots: bool) -> type:
    defined = {name for name, method in vars(cls).items() if method is not None}
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    compared = [each.name for each in _fields(made) if each.compare]
    own = {"__init__": _init_of(made), "_compared": attrgetter(*compared) if compared else type}
    shared = {name: vars(_Frozen)[name] for name in (*_METHODS, *(_STATE if slots else ()))}
    for name, method in (shared | own).items():
        if name not in defined:
            setattr(made, name, method)
    return made


def _init_of(cls: type) -> Callable[..., None]:
    """Return ``__init__``, the one method that is worth compiling for each class."""
    known: dict[str, Any] = {"_put_": object.__setattr__, "_unset_": _UNSET}
    taken, done = ["self"], []
    for each in _fields(cls):
        name, value, is_required = each.name, each.name, False
        if each.default_factory is not dataclasses.MISSING:
            known[f"make_{name}"], known[f"default_{name}"] = each.default_factory, _UNSET
            value = f"make_{name}() if {name} is _unset_ else {name}" if each.init else f"make_{name}()"
        elif each.default is not dataclasses.MISSING:
            known[f"default_{name}"] = each.default
            value = name if each.init else f"default_{name}"
        else:
            is_required = True
        if each.init:
            taken.append(name if is_required else f"{name}=default_{name}")
        if each.init or not is_required:
            done.append(f" _put_(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        done.append(" self.__post_init__()")
    exec("\n".join([f"def __init__({', '.join(taken)}):", *(done or [" pass"])]), known)  # noqa: S102
    init: Callable[..., None] = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


__all__ = ["dataclass"]
