"""The arithmetic of the tensor tables: whole numbers, names of symbols, conditions; nothing is executed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from math import isfinite
from operator import add, eq, floordiv, ge, gt, le, lt, mul, ne, sub, truediv

from kvgauge.errors import InvalidFieldError, MissingFieldError

Value = int | float | str
Lookup = Callable[[str], Value]

_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.FloorDiv: floordiv,
    ast.Div: truediv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Value, Value], bool]] = {
    ast.Eq: eq,
    ast.NotEq: ne,
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
}
_LARGEST = 1 << 60
_REASONS: dict[type[Exception], str] = {
    ZeroDivisionError: "it divides by zero",
    OverflowError: "a value is too large",
    TypeError: "a value is not a number",
}


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def evaluate(text: str, lookup: Lookup) -> Value:
    """Return the value of an expression; its names are looked up.

    Raises:
        MissingFieldError: a name has no value. InvalidFieldError: a value can't be calculated with.
    """
    try:
        return _value(_parse(text), lookup)
    except (TypeError, ZeroDivisionError, OverflowError, ValueError) as error:
        why = _REASONS.get(type(error)) or str(error)
        raise InvalidFieldError(f"the shape {text} can't be calculated: {why}", field=text) from None


def _value(node: ast.expr, lookup: Lookup) -> Value:  # noqa: PLR0911 - one return a kind of node
    if isinstance(node, ast.Constant):
        return node.value  # type: ignore[return-value]
    if isinstance(node, ast.Name):
        return lookup(node.id)
    if isinstance(node, ast.BinOp):
        return _bounded(_OPERATORS[type(node.op)](_number(node.left, lookup), _number(node.right, lookup)))
    if isinstance(node, ast.Compare):
        compare = _COMPARISONS[type(node.ops[0])]
        return int(compare(_value(node.left, lookup), _value(node.comparators[0], lookup)))
    if isinstance(node, ast.UnaryOp):
        return int(not _value(node.operand, lookup))
    if isinstance(node, ast.BoolOp):
        either = isinstance(node.op, ast.Or)
        found = next((v for v in node.values if bool(_value(v, lookup)) is either), None)
        return int(either) if found is not None else int(not either)
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, lookup) else node.orelse, lookup)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id](node.args, lookup)
    raise TypeError(type(node).__name__)


def _number(node: ast.expr, lookup: Lookup) -> float:
    value = _value(node, lookup)
    if isinstance(value, str):
        raise ValueError(f"{value[:40]!r} is not a number")
    return value


def _bounded(value: float) -> float:
    if not isfinite(value) or abs(value) > _LARGEST:
        raise OverflowError
    return value


def _first_of(args: list[ast.expr], lookup: Lookup) -> Value:
    """The first argument that has a value; zero and false are values."""
    *others, last = args
    for arg in others:
        with suppress(MissingFieldError):
            return _value(arg, lookup)
    return _value(last, lookup)


def _round_up(args: list[ast.expr], lookup: Lookup) -> Value:
    number, step = (_number(arg, lookup) for arg in args)
    return -(-int(number) // int(step)) * int(step)


def _whole(args: list[ast.expr], lookup: Lookup) -> Value:
    return int(_number(args[0], lookup))


def _largest(args: list[ast.expr], lookup: Lookup) -> Value:
    return max(_number(arg, lookup) for arg in args)


_FUNCTIONS: dict[str, Callable[[list[ast.expr], Lookup], Value]] = {
    "opt": _first_of,
    "up": _round_up,
    "int": _whole,
    "max": _largest,
}
