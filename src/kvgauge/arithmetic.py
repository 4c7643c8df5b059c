"""Exact evaluation of the formulas that answers carry, and their text with the numbers put in."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from kvgauge.errors import InvalidRequestError

Number = int | float | Fraction

_FUNCTIONS: Mapping[str, Callable[..., Fraction]] = {
    "min": min,
    "max": max,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
}
_OPERATIONS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")


def evaluate(formula: str, symbols: Mapping[str, Number]) -> Fraction:
    """Evaluate a formula exactly.

    Raises:
        InvalidRequestError: a symbol has no value, or the text is no formula.

    >>> evaluate("L × 2 × H_kv × D × b", {"L": 36, "H_kv": 8, "D": 128, "b": 2})  # Qwen3-8B, one token
    Fraction(147456, 1)
    """
    try:
        tree = ast.parse(formula.replace("×", "*"), mode="eval")
    except SyntaxError:
        raise InvalidRequestError(f"{formula!r} is not a formula") from None
    return _value(tree.body, symbols)


def _value(node: ast.expr, symbols: Mapping[str, Number]) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(number)
        case ast.Name(id=name) if name in symbols:
            return Fraction(symbols[name])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left, symbols), _value(right, symbols))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(arg, symbols) for arg in args))
    raise InvalidRequestError(f"{ast.unparse(node)!r} has no value in this formula")


def symbol_names(formula: str) -> tuple[str, ...]:
    """Return the symbols of a formula in order of first appearance.

    >>> symbol_names("L × min(T, W) × B")
    ('L', 'T', 'W', 'B')
    """
    names = (name for name in _NAME.findall(formula) if name not in _FUNCTIONS)
    return tuple(dict.fromkeys(names))


def with_numbers(formula: str, symbols: Mapping[str, Number]) -> str:
    """Return the formula with every symbol replaced by its value.

    >>> with_numbers("L × min(T, W)", {"L": 24, "T": 32768, "W": 128})
    '24 × min(32,768, 128)'
    """

    def replace(match: re.Match[str]) -> str:
        name = match[0]
        return name if name in _FUNCTIONS or name not in symbols else number_text(symbols[name])

    return _NAME.sub(replace, formula)


def number_text(value: Number) -> str:
    """Return a number with thousands separators, exactly where it is one of few decimals."""
    exact = Fraction(value)
    return f"{int(exact):,}" if exact.denominator == 1 else f"{float(exact):,.10g}"
