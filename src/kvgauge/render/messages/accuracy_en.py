"""English of ``accuracy``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "accuracy_total": (
        "{exact} of {count} figures that rules give and whose inputs are all stated are exact "
        "({share} %), of {source}"
    ),
    "accuracy_engine": "Engine",
    "accuracy_quantity": "Quantity",
    "accuracy_basis": "Inputs",
    "accuracy_n": "n",
    "accuracy_exact": "Exact",
    "accuracy_within": "0.5 %",
    "accuracy_off": "Off",
    "accuracy_skipped": "Skipped",
    "accuracy_median": "Median",
    "accuracy_worst": "Worst",
    "accuracy_held": "In range",
    "accuracy_width": "Width",
    "accuracy_over": "Most optimistic",
    "accuracy_optimistic": "By > 0.5 GiB",
    "accuracy_record": "Record",
    "accuracy_predicted": "Predicted",
    "accuracy_measured": "Measured",
    "accuracy_cause": "Cause",
    "accuracy_no_cause": "not known",
    "accuracy_named": "Figures that rules give, inputs stated, that are not exact",
    "accuracy_named_line": (
        "{accuracy_record} {accuracy_quantity}: {accuracy_predicted}, measured "
        "{accuracy_measured}: {accuracy_cause}"
    ),
    "accuracy_more": "and {count} more; --json has all",
    "accuracy_left_out": "Estimates, each model family predicted from the others alone",
    "accuracy_legend": (
        "exact: within the printed rounding. Inputs stated: all of them; default: the engine's own "
        "fill what the record "
        "leaves open; guess: the record guesses one. --json has every figure and why others are skipped"
    ),
    "basis_hard": "stated",
    "basis_default": "default",
    "basis_soft": "guess",
    "help.verb.accuracy": "Recorded measurements against what is predicted: the table of errors.",
    "help.about.accuracy": (
        "FILE has one recorded measurement a line, as docs/accuracy.md describes; without it, the "
        "records that ship "
        "are replayed."
    ),
    "help.option.configs": (
        "Folder of the configs that records name (configs/real, configs/logs or files in it)."
    ),
}
