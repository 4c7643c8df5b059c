"""The card that a request names, as engines see it. The one place where names of GPUs become figures."""

from __future__ import annotations

import re

from kvgauge.engines.setup import Card
from kvgauge.errors import InvalidRequestError

_MOST = 4096


def card_of(text: str) -> tuple[Card, int | None]:
    """Read ``NAME``, ``NAME:COUNT`` or ``COUNTx NAME``; no count is None.

    Raises:
        InvalidRequestError: not a card that is known, or an impossible count.

    >>> card_of("H100 NVL:2")[0].name, card_of("2x H100")[1]
    ('H100 NVL', 2)
    """
    from kvgauge.engines.vllm.devices import gpu_class  # noqa: PLC0415 - few name a card

    name, count = _split(text)
    if count is not None and not 1 <= count <= _MOST:
        raise InvalidRequestError(f"--gpu {text[:60]!r}: the count is to be 1 to {_MOST}", field="gpu")
    found = gpu_class(name)
    if found is None:
        raise InvalidRequestError(
            f"--gpu {text[:60]!r} is not a card that is known here",
            hint="for example H100, A100 40GB, L40S, RTX 4090; a count follows a colon: H100:2",
            field="gpu",
        )
    return Card(found.name, found.capability, found.memory_bytes), count


def _split(text: str) -> tuple[str, int | None]:
    before = re.match(r"\s*(\d{1,6})\s*x\s+", text, re.ASCII | re.IGNORECASE)
    if before is not None:
        return text[before.end() :], int(before[1])
    name, colon, count = text.rpartition(":")
    return (name, int(count)) if colon and re.fullmatch(r"\s*\d{1,6}\s*", count, re.ASCII) else (text, None)
