"""Rebuild ``src/kvgauge/data/overhead.json`` from ``src/kvgauge/data/overhead_evidence.jsonl``.

The evidence is our own compact form of figures that start-up logs print, one a line, with its source; ``fit``
false marks figures that only check (``note`` says why). Models' shapes come from the shipped catalogue, so
nothing outside the repository is needed.

Run: ``python tools/fit_overhead.py``; it also prints how far the terms are off, one model family left out.
"""

from __future__ import annotations

import json

from kvgauge.data import data_file
from kvgauge.overhead_accuracy import cross_validation, summaries
from kvgauge.overhead_evidence import evidence
from kvgauge.overhead_fit import fit
from kvgauge.units import GIB

TARGET = "overhead.json"


def rebuilt() -> str:
    """Return the text of the data file."""
    return json.dumps(fit(evidence()), indent=1) + "\n"


def main() -> None:
    """Write the data file and print the errors."""
    data_file(TARGET).write_text(rebuilt(), encoding="utf-8")
    rows = cross_validation()
    for row in rows:
        sizes = (row.measured_bytes, row.central_bytes, row.low_bytes, row.high_bytes)
        measured, central, low, high = (size / GIB for size in sizes)
        print(
            f"{row.engine:8} {row.quantity:14} {row.record:11} {row.family:12} measured {measured:6.2f} "
            f"predicted {central:6.2f} ({low:.2f} to {high:.2f}) {'' if row.within else 'outside '}"
            f"{'' if row.fitted or row.quantity == 'pool' else 'check: '}{row.note}"
        )
    for total in summaries(rows):
        print(
            f"{total.engine:12} {total.quantity:14} n {total.records:3} median error "
            f"{total.median_error_fraction:.1%} inside {total.within} optimistic at worst "
            f"{total.worst_optimistic_bytes / GIB:.2f} GiB, {total.median_width_bytes / GIB:.2f} GiB wide"
        )


if __name__ == "__main__":
    main()
