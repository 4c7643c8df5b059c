"""English of ``verify``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "verify_headline": "{engine}, {model}: {met} of {count} figures are met",
    "verify_no_model": "model not known",
    "verify_quantity": "Quantity",
    "verify_measured": "In the log",
    "verify_predicted": "Predicted",
    "verify_difference": "Difference",
    "verify_verdict": "Verdict",
    "verify_because": "Because",
    "verify_advice": "What to change",
    "verify_earlier": "earlier starts in the log: {count}; --json has them",
    "verify_agrees_with": "agrees with {setting}, which the log does not show",
    "verdict_agrees": "agrees",
    "verdict_near": "within 0.5 %",
    "verdict_in_range": "in range",
    "verdict_off": "off",
    "verdict_not_predicted": "not predicted",
    "failure_pool_too_small": "Failed: one request of the longest length does not fit the pool",
    "failure_share_not_free": "Failed: less of the device is free at the start than the share asked for",
    "failure_no_pool": "Failed: nothing is left for a pool once weights and the profiling pass are taken off",
    "failure_sequences_exceed_blocks": "Failed: more sequences are allowed than there are pages of state",
    "failure_out_of_memory": "Failed: an allocation was refused by the device",
    "help.verb.verify": "An engine's start-up log against what is predicted, line by line.",
    "help.about.verify": (
        "LOG is a file, or - for a pipe: start-up lines of vLLM, SGLang, llama.cpp, Ollama or TensorRT-LLM, "
        "mixed with other output or not. Engine, version, model and flags are told from it; options "
        "fill gaps."
    ),
    "help.option.model": "The model, where the log does not name it, or only by a path.",
}
