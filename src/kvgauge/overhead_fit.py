"""Fit the constants of ``overhead_terms`` to recorded figures, and say how well they hold for other families.

The records are ``data/overhead_evidence.jsonl``; ``tools/fit_overhead.py`` writes ``data/overhead.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import sqrt
from statistics import median
from typing import Any

from kvgauge.engines.vllm.versions import parse_version
from kvgauge.overhead_evidence import Record
from kvgauge.overhead_runner import version_of
from kvgauge.overhead_terms import ROUNDING, Peak, matching, peak_of
from kvgauge.units import GIB

#: Share of records that a range is to hold.
_HELD = 0.9
#: No range is narrower than this share of the figure: two decimals and a driver's whims.
_LEAST_SPREAD = 0.04
#: Where in a group's records the central value lies: a pool that is smaller than predicted stops a start, one
#: that is larger does not.
_CAUTION = 0.75
#: Where nothing was recorded.
_ASSUMED_SPREAD = 0.3

#: Copies of fp32 logits that sampling holds, where the code tells them: 16-bit logits are half a copy, then
#: the fp32 logits, their probabilities and as many random values (v1/sample/sampler.py). Before 0.17 sorting
#: for top-k and top-p takes more, which is fitted.
ERAS: tuple[tuple[str, float | None, float | None, str], ...] = (
    ("0.0.0", None, None, "sorted logits, top-k and top-p"),
    ("0.17.0.dev0", 3.5, None, "logits in 16 and 32 bits, probabilities, random values"),
)
#: The same of the second runner (v1/worker/gpu/sample/sampler.py): logits in 16 and 32 bits; from 0.33 on a
#: profiling pass asks for top-k and top-p too, which FlashInfer makes a masked copy and probabilities for,
#: and the runner's own kernel, where that is missing, nothing.
SECOND_ERAS: tuple[tuple[str, float | None, float | None, str], ...] = (
    ("0.22.0.dev0", 1.5, 2.5, "logits in 16 and 32 bits"),
    ("0.33.0.dev0", 3.5, None, "logits in 16 and 32 bits, those of top-k and their probabilities"),
)
#: A drafting step samples for two rows a sequence: two more 16-bit rows, one more in 32 bits.
SPECULATIVE_COPIES = 2.0


def fit(records: Sequence[Record]) -> dict[str, Any]:
    """Return the constants that these records give, by engine.

    Raises:
        ValueError: too few records for a constant.
    """
    used = [r for r in records if r.fitted]
    found: dict[str, Any] = {"vllm": _vllm([r for r in used if r.running.engine == "vllm"])}
    for engine in ("sglang", "tensorrt-llm", "llama.cpp"):
        own = [r for r in used if r.running.engine == engine]
        found[engine] = {"context": _range_of([r for r in own if r.quantity == "context"])}
        for quantity, solve in (("buffers", _range_of), ("graphs", _graphs)):
            members = [r for r in own if r.quantity == quantity]
            if members:
                found[engine][quantity] = solve(members)
        joined = [r for r in own if r.quantity == "groups"]
        if joined:
            found[engine]["groups"] = _groups(joined)
    return found


def _groups(records: list[Record]) -> dict[str, Any]:
    """Return what joining the ranks takes: for each rank where they are linked, else at all."""
    linked = [replace(r, figure_bytes=r.figure_bytes / r.running.tensor) for r in records if r.running.linked]
    return {
        "linked": _range_of(linked),
        "apart": _range_of([r for r in records if not r.running.linked]),
    }


def _vllm(used: list[Record]) -> dict[str, Any]:
    peaks = [
        (r, peak_of(r.widths, r.running, packed_experts=r.packed_experts))
        for r in used
        if r.quantity == "activation" and r.widths is not None
    ]
    forward = [(r, p) for r, p in peaks if _is_forward(r, p)]
    sampling = [(r, p) for r, p in peaks if not _is_forward(r, p)]
    first = _eras([pair for pair in sampling if not pair[0].second_runner], ERAS)
    second = [pair for pair in sampling if pair[0].second_runner]
    return {
        "sampling": first,
        "second_sampling": _eras(second, SECOND_ERAS, streams=first[-1]["streams"]),
        "speculative_copies": SPECULATIVE_COPIES,
        "forward": _spread([(r.figure_bytes, p.forward + p.images + p.kept) for r, p in forward]),
        "encoder": _spread([]),
        "non_torch": _beside_torch([r for r in used if r.quantity == "non_torch"]),
        "graphs": _graphs([r for r in used if r.quantity == "graphs"]),
        "graph_estimate": _guesses(
            [r for r in used if r.quantity == "graph_estimate"], [r for r in used if r.quantity == "graphs"]
        ),
        "context": _range_of([r for r in used if r.quantity == "context"]),
    }


def _is_forward(record: Record, peak: Peak) -> bool:
    copies = _eras_of(record)[_era(record)][1] or 9.0
    return peak.forward > copies * peak.logits + 2 * peak.stream


def _eras_of(record: Record) -> tuple[tuple[str, float | None, float | None, str], ...]:
    return SECOND_ERAS if record.second_runner else ERAS


def _era(record: Record) -> int:
    version = version_of(record.running)
    return max(i for i, era in enumerate(_eras_of(record)) if i == 0 or version >= parse_version(era[0]))


def _eras(
    pairs: list[tuple[Record, Peak]],
    eras: tuple[tuple[str, float | None, float | None, str], ...],
    *,
    streams: float | None = None,
) -> list[dict[str, Any]]:
    """Return the copies of logits and of the residual stream, by version.

    Args:
        streams: copies of the residual stream where an era has too few records of its own.
    """
    rows: list[dict[str, Any]] = []
    for index, (start, told, most, why) in enumerate(eras):
        own = [(r, p) for r, p in pairs if _era(r) == index]
        copies, held = _solve(own, told, rows[-1]["streams"] if rows else streams)
        predicted = [
            (r.figure_bytes, copies * p.logits + held * p.stream + p.images + p.kept) for r, p in own
        ]
        rows.append(
            {
                "since": start,
                "copies": round(copies, 3),
                "most_copies": round(copies if most is None else most, 3),
                "streams": round(held, 3),
                **_spread(predicted),
                "source": f"{len(own)} logs; {why}",
            }
        )
    return rows


def _solve(
    own: list[tuple[Record, Peak]], copies: float | None, earlier_streams: float | None
) -> tuple[float, float]:
    """Return copies of logits and of the residual stream, by least relative errors.

    Least squares for both; where the code tells the copies of logits, least absolute errors for the other.
    """
    rows = [
        (p.logits / r.figure_bytes, p.stream / r.figure_bytes, 1 - (p.images + p.kept) / r.figure_bytes)
        for r, p in own
    ]
    if copies is not None and len(rows) < 2:
        return copies, earlier_streams or 0.0
    if copies is not None:
        return copies, max(0.0, _weighted_median([((y - copies * a) / b, b) for a, b, y in rows]))
    aa, ab, bb = (sum(x * y for x, y in v) for v in _products(rows))
    ay = sum(a * y for a, _, y in rows)
    by = sum(b * y for _, b, y in rows)
    determinant = aa * bb - ab * ab
    if len(rows) < 3 or determinant <= 0:
        raise ValueError("too few activation peaks for the copies of logits")
    return (ay * bb - by * ab) / determinant, max(0.0, (by * aa - ay * ab) / determinant)


def _weighted_median(pairs: list[tuple[float, float]]) -> float:
    """Return the value that half of the weight lies on either side of: the least sum of absolute errors."""
    left = sum(weight for _, weight in pairs) / 2
    for value, weight in sorted(pairs):
        left -= weight
        if left <= 0:
            return value
    return 0.0


def _products(rows: list[tuple[float, float, float]]) -> Iterable[list[tuple[float, float]]]:
    yield [(a, a) for a, _, _ in rows]
    yield [(a, b) for a, b, _ in rows]
    yield [(b, b) for _, b, _ in rows]


def _spread(pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """Return the half width that holds the records, as a share beyond ``ROUNDING``; wider for fewer."""
    if not pairs:
        return {"spread": _ASSUMED_SPREAD, "records": 0}
    off = sorted(max(0.0, abs(measured - predicted) - ROUNDING) / predicted for measured, predicted in pairs)
    held = off[min(len(off) - 1, int(_HELD * len(off)))]
    least = _LEAST_SPREAD + _ASSUMED_SPREAD / (1 + len(off)) ** 1.5
    return {"spread": round(max(least, held * (1 + 1 / len(off))), 4), "records": len(off)}


#: Groups of what lies beside torch: from which version, when. Of the rows that hold, the last counts.
GROUPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("0.0.0", {"ranks": "one"}),
    ("0.6.5.dev0", {"ranks": "one"}),
    ("0.8.0.dev0", {"ranks": "one"}),
    ("0.18.0.dev0", {"ranks": "one"}),
    ("0.0.0", {"ranks": "many"}),
    ("0.6.5.dev0", {"ranks": "many"}),
    ("0.7.0.dev0", {"ranks": "many", "linked": True}),
    ("0.11.0.dev0", {"ranks": "many"}),
    ("0.11.0.dev0", {"ranks": "many", "linked": True}),
    ("0.18.0.dev0", {"ranks": "many"}),
    ("0.18.0.dev0", {"ranks": "many", "linked": False}),
    ("0.18.0.dev0", {"ranks": "many", "major": 9}),
    ("0.18.0.dev0", {"ranks": "many", "major": 10}),
    ("0.0.0", {"ranks": "many", "nodes": "many"}),
    ("0.0.0", {"ranks": "one", "unified": True}),
    ("0.0.0", {"ranks": "many", "unified": True}),
)
#: A group whose neighbour counts as one record more, where it has records itself: three starts of 0.7 to
#: 0.10 over NVLink kept 0.4 to 2.1 GiB, two of 0.11 0.5 and 1.4, and Hopper from 0.18 on keeps 2.1; one start
#: on unified memory freed some.
_NEIGHBOURS = {
    GROUPS.index(few): GROUPS.index(near)
    for few, near in (
        (
            ("0.7.0.dev0", {"ranks": "many", "linked": True}),
            ("0.18.0.dev0", {"ranks": "many", "major": 9}),
        ),
        (
            ("0.11.0.dev0", {"ranks": "many", "linked": True}),
            ("0.18.0.dev0", {"ranks": "many", "major": 9}),
        ),
        (("0.0.0", {"ranks": "one", "unified": True}), ("0.18.0.dev0", {"ranks": "one"})),
    )
}
#: What is taken where no record of a group exists: low, central, high in GiB.
_ASSUMED_GROUPS = {
    ("0.0.0", "one"): (0.05, 0.35, 0.6),
    ("0.0.0", "many"): (0.1, 0.5, 1.5),
    ("0.6.5.dev0", "many"): (0.1, 0.5, 1.5),
    ("0.11.0.dev0", "many"): (0.15, 0.6, 1.5),
    ("0.18.0.dev0", "many"): (0.2, 1.0, 2.3),
}


def _beside_torch(records: list[Record]) -> list[dict[str, Any]]:
    """Return the table of ``overhead_terms.beside_torch``: a median a group, and the range of its records."""
    table: list[dict[str, Any]] = [{"since": since, "when": when} for since, when in GROUPS]
    members: list[list[Record]] = [[] for _ in table]
    for record in records:
        members[matching(record.running, table)].append(record)
    rows = []
    for index, (row, own) in enumerate(zip(table, members, strict=True)):
        near = [r.figure_bytes for r in members[_NEIGHBOURS[index]]] if index in _NEIGHBOURS else []
        plain = set(row["when"]) == {"ranks"}
        guess = _ASSUMED_GROUPS.get((row["since"], row["when"]["ranks"])) if plain else None
        if own:
            rows.append(row | _range_of(own, median(near) if near else None) | {"grade": "measured"})
        elif guess is not None:
            low, central, high = (int(size * GIB) for size in guess)
            found = {
                "low": low,
                "bytes": central,
                "high": high,
                "records": 0,
                "source": "between its neighbours",
            }
            rows.append(row | found | {"grade": "assumed"})
    return rows


def _range_of(records: list[Record], beside: float | None = None) -> dict[str, Any]:
    """Return the median of the figures and their range, wider the fewer there are.

    Args:
        beside: a figure of a neighbour that counts as one more.
    """
    if not records:
        return {
            "low": GIB // 10,
            "bytes": GIB // 2,
            "high": GIB,
            "records": 0,
            "source": "as of other engines",
        }
    more = [] if beside is None else [beside]
    figures = sorted([r.figure_bytes for r in records] + more)
    central = _cautious([size for r in records for size in [r.figure_bytes] * r.count] + more)
    margin = _ASSUMED_SPREAD * central / sqrt(len(figures)) + ROUNDING / 2
    return {
        "low": int(max(0.0, figures[0] - margin)),
        "bytes": int(central),
        "high": int(figures[-1] + margin),
        "records": len(records),
        "source": _sources(records),
    }


def _cautious(sizes: list[float]) -> float:
    """Return the third quartile: too little memory for a term costs three times what too much does.

    >>> _cautious([1.0, 2.0, 3.0]), _cautious([4.0])
    (2.5, 4.0)
    """
    ordered = sorted(sizes)
    place = _CAUTION * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _sources(records: list[Record]) -> str:
    return ", ".join(r.id for r in records[:8]) + (" ..." if len(records) > 8 else "")


def _guesses(records: list[Record], graphs: list[Record]) -> dict[str, Any]:
    """Return vLLM's own guess of its graphs.

    Of models with routed experts so many bytes a layer and captured size; of others, few of which printed
    both, by how much it exceeds what the graphs then take: it counts the first capture whole, with what is
    loaded and kept only once.
    """
    many = [r for r in records if r.widths is not None and r.running.graph_sizes >= _FEW_SIZES]
    routed = [r for r in many if r.widths is not None and r.widths.has_experts]
    taken = {r.id: r.figure_bytes for r in graphs}
    beyond = [replace(r, figure_bytes=max(0.0, r.figure_bytes - taken[r.id])) for r in many if r.id in taken]
    plain = [r for r in beyond if r.widths is not None and not r.widths.has_experts]
    return {
        "experts": _a_layer(routed, routed, _cautious)
        | {"most_of_few": GIB // 2, "source": _sources(routed)},
        "dense": {"beyond": _range_of(plain or beyond)},
    }


#: Fewer records say where the middle is, not how wide the range.
_FEW_RECORDS = 3
#: Fewer captured sizes say more of what a graph costs at all than of what a size adds.
_FEW_SIZES = 8


def _graphs(records: list[Record]) -> dict[str, Any]:
    """Return the bytes a layer and captured size, models with and without routed experts apart."""
    known = [r for r in records if r.widths is not None and r.figure_bytes > 0]
    many = [r for r in known if r.running.graph_sizes >= _FEW_SIZES]
    few = [r.figure_bytes for r in known if r.running.graph_sizes < _FEW_SIZES]
    kinds: dict[str, Any] = {}
    if not many:
        many = known
    for name, experts in (("dense", False), ("experts", True)):
        own = [r for r in many if r.widths is not None and r.widths.has_experts is experts]
        kinds[name] = _a_layer(own or many, many if len(own) < _FEW_RECORDS else own)
    return kinds | {"most_of_few": int(1.1 * max(few, default=0.0)), "source": _sources(records)}


def _a_layer(
    records: list[Record], around: list[Record], middle: Callable[[list[float]], float] = median
) -> dict[str, Any]:
    """Return the middle of the families' medians, and the range of the records around it."""
    families: dict[str, list[float]] = {}
    for r in records:
        families.setdefault(r.family, []).append(_each(r))
    sizes = sorted(_each(r) for r in around)
    if not sizes:
        raise ValueError("no graphs were recorded")
    cut = int((1 - _HELD) / 2 * len(sizes))
    margin = 1 + 1 / sqrt(len(sizes))
    return {
        "low": int(sizes[cut] / margin),
        "bytes": int(middle([median(own) for own in families.values()])),
        "high": int(sizes[-1 - cut] * margin),
        "records": len(records),
    }


def _each(record: Record) -> float:
    """Return the bytes of one layer in one captured size."""
    layers = record.widths.layers if record.widths is not None else 1
    return record.figure_bytes / (layers * record.running.graph_sizes)
