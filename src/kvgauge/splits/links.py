"""Rates of what joins memories: PCIe, a disk, a network. Line rates, so that times are the least possible."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kvgauge.data import read_data
from kvgauge.errors import InvalidRequestError
from kvgauge.splits.figures import Assumption

if TYPE_CHECKING:
    from kvgauge.hardware import Accelerator

_GIGABITS = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)\s*(g|gbit|gb/s|gib/s)(?:/s)?", re.IGNORECASE)
_SCALES = {"g": 10**9 // 8, "gbit": 10**9 // 8, "gb/s": 10**9, "gib/s": 2**30}


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(read_data("links.json"))
    return table


def network_of(text: str | None) -> Assumption:
    """Return the network of one GPU: ``400g`` (Gb/s), ``50GB/s``; None is the table's default.

    Raises:
        InvalidRequestError: not a rate.

    >>> int(network_of("400g").value), int(network_of("50GB/s").value)
    (50000000000, 50000000000)
    """
    table = _table()
    word = (text or table["default_network"]).strip().lower()
    row = table["network"].get(word)
    if row is not None:
        grade = "given" if text else "assumed"
        return Assumption("network", row["bytes_per_second"], "per_second", grade, row["source"])
    match = _GIGABITS.fullmatch(word)
    rate = Fraction(match[1]) * _SCALES[match[2].lower()] if match else Fraction(0)
    if not rate:
        raise InvalidRequestError(
            f"network {text!r} is not understood", hint="write it like 400g (Gb/s) or 50GB/s", field="network"
        )
    return Assumption("network", rate, "per_second", "given", "given")


def default_card(role: str) -> Accelerator:
    """Return the card that the table names for a role (``attention``, ``sram``)."""
    from kvgauge.hardware import accelerator  # noqa: PLC0415 - not every split names a card

    return accelerator(_table()["default_cards"][role])


def host_link(card: Accelerator) -> Assumption | None:
    """Return what joins a card and its host, one direction; None where its PCIe generation is not known."""
    return _pcie(card, "host_link", 1)


def disk_of(card: Accelerator) -> Assumption | None:
    """Return one NVMe disk on four lanes of the generation of the card."""
    table = _table()
    return _pcie(card, "disk", Fraction(table["disk_lanes"], table["pcie_lanes"]))


def _pcie(card: Accelerator, code: str, share: int | Fraction) -> Assumption | None:
    row = _table()["pcie"].get(str(card.pcie_generation))
    if row is None:
        return None
    source = f"PCIe {card.pcie_generation}: {row['source']}"
    if share != 1:
        source = f"one NVMe disk on {_table()['disk_lanes']} of {_table()['pcie_lanes']} lanes; {source}"
    return Assumption(code, share * row["bytes_per_second"], "per_second", "assumed", source)


def peer_link(card: Accelerator) -> Assumption | None:
    """Return one direction of what joins cards of a machine; None where it is not known."""
    link = card.link
    if link is None:
        return None
    rate = Fraction(str(link.gb_per_second)) * 10**9
    both = "both directions" in link.kind or "bidirectional" in link.kind
    source = f"{link.kind}; one direction is half" if both else link.kind
    return Assumption("peer_link", rate / 2 if both else rate, "per_second", "assumed", source)


def memory_rate(card: Accelerator, code: str = "memory_rate") -> Assumption | None:
    """Return the bytes a second that a card reads from its memory; None where that is not known."""
    figure = card.bandwidth
    if figure is None:
        return None
    rate = Fraction(str(figure.value)) * 10**9
    return Assumption(code, rate, "per_second", figure.grade, figure.source)


def compute_rate(card: Accelerator, words: tuple[str, ...], code: str = "compute_rate") -> Assumption | None:
    """Return dense operations a second in the first of these types that is known."""
    tflops = card.dense_tflops
    if tflops is None:
        return None
    known = dict(tflops.by_dtype)
    word = next((word for word in words if word in known), None)
    if word is None:
        return None
    rate = Fraction(str(known[word])) * 10**12
    return Assumption(code, rate, "per_second", tflops.grade, f"dense {word}; {tflops.source}")
