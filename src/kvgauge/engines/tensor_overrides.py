"""llama.cpp's ``-ot``: tensors that a pattern names lie in a buffer of their own (``common/arg.cpp``).

``PATTERN=BUFFER``, several joined by commas; the first pattern that is found in a tensor's name holds.
Patterns come from outside, so only those are taken that a search of a short name ends on soon.
"""

from __future__ import annotations

import re
from math import prod

from kvgauge.errors import InvalidRequestError

#: (pattern, device), None the host.
Override = tuple[str, int | None]

_MAX_PATTERN, _MAX_OVERRIDES, _MAX_STEPS = 512, 256, 200_000
#: What a search may try at one place of a name of 40 letters: a repetition, an optional part, a choice.
_TRIES = {"*": 40, "+": 40, "{": 40, "?": 2}
#: A repeated group, a look-around, a name, a reference, a set in a set: what a search may take long on, or
#: what differs between dialects.
_UNSAFE = re.compile(r"\)[*+{?]|\(\?[^:]|\\[1-9]|\[[^\]]?[^\]]*(?:\[|--|&&|\|\||~~)")
_DEVICE = re.compile(r"(?:CUDA|ROCm|HIP|Vulkan|SYCL|MUSA|CANN|RPC|MTL|Metal|OpenCL)(\d{1,2})", re.IGNORECASE)
_HOST = re.compile(r"(?:CPU|\w{1,16}_Host|CPU_\w{1,16})", re.IGNORECASE)


def parse_overrides(line: str) -> tuple[Override, ...]:
    r"""Return the overrides of a value of ``-ot``, in order.

    Raises:
        InvalidRequestError: not such a value, a pattern that is not taken, or an unknown buffer.

    >>> parse_overrides(r"blk\.1\..*exps=CUDA1,exps=CPU")
    (('blk\\.1\\..*exps', 1), ('exps', None))
    """
    parts = [part for part in line.split(",") if part]
    if not parts or len(parts) > _MAX_OVERRIDES:
        raise _bad(line[:80], "expected PATTERN=BUFFER, as exps=CPU")
    return tuple(_one(part) for part in parts)


def _one(text: str) -> Override:
    pattern, equals, buffer = text.partition("=")
    if not equals or not pattern or len(pattern) > _MAX_PATTERN:
        raise _bad(text[:80], "expected PATTERN=BUFFER, as exps=CPU")
    if _UNSAFE.search(pattern) or _steps(pattern) > _MAX_STEPS:
        raise _bad(text[:80], "a simpler pattern is needed")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        raise _bad(text[:80], "a simpler pattern is needed") from None
    return pattern, _device(text[:80], buffer.strip())


def _steps(pattern: str) -> int:
    """Return how many ways a search may try at most, backslashes and sets taken as they stand."""
    steps, choices = 1, [1]
    for letter in pattern:
        steps *= _TRIES.get(letter, 1)
        if letter == "(":
            choices.append(1)
        elif letter == "|":
            choices[-1] += 1
        elif letter == ")" and len(choices) > 1:
            steps *= choices.pop()
        if steps > _MAX_STEPS:
            break
    return steps * prod(choices)


def _device(text: str, buffer: str) -> int | None:
    found = _DEVICE.fullmatch(buffer)
    if found:
        return int(found[1])
    if _HOST.fullmatch(buffer):
        return None
    raise _bad(text, "a buffer is CPU, or a device such as CUDA0")


def _bad(text: str, wanted: str) -> InvalidRequestError:
    return InvalidRequestError(f"-ot {text!r}: {wanted}", field="engine-args")


class Overrides:
    """Says where a tensor goes that an override names.

    >>> places = Overrides(parse_overrides("exps=CPU"))
    >>> places.of("blk.3.ffn_up_exps.weight", 1), places.of("blk.3.attn_q.weight", 1)
    (None, 1)
    """

    def __init__(self, told: tuple[Override, ...]) -> None:
        self._told = tuple((re.compile(pattern), device) for pattern, device in told)

    def of(self, name: str, device: int | None) -> int | None:
        """Return the device of a tensor that lies on ``device`` unless an override names it."""
        return next((place for pattern, place in self._told if pattern.search(name)), device)


__all__ = ["Override", "Overrides", "parse_overrides"]
