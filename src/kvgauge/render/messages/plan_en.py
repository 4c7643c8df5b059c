"""English of ``plan``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "plan_headline": (
        "{model}: {load} in {engine}; kinds of GPUs looked at: {devices}, options shown: {options}"
    ),
    "plan_none": "{model}: nothing that was looked at holds this load; kinds of GPUs looked at: {devices}",
    "plan_join": "; ",
    "plan_times": "{times} x",
    "plan_format_own": "own",
    "plan_format_cache": "cache {dtype}",
    "plan_format_checkpoint": "{name}",
    "plan_format_weights": "weights {scheme} (not offered)",
    "plan_price_hour": "${price}/h",
    "plan_price_buy": "${price} to buy",
    "plan_price_none": "unknown",
    "plan_price_source": "({date}: {source})",
    "plan_price_undated": "({source})",
    "plan_verdict_label": "Verdict",
    "plan_price_label": "Price",
    "plan_why_label": "Why here",
    "plan_path_title": "How the decision goes",
    "plan_step": "{number}. {question} {answer}",
    "column_place": "",
    "column_gpus": "GPUs",
    "column_spread": "Spread",
    "column_formats": "Formats",
    "column_price": "Price",
    "column_holds": "Holds the load",
    "column_question": "Question",
    "column_answer": "Answer",
    "column_because": "Because",
    "progress_plan": "machines looked at: {done} of {count}",
    "help.verb.plan": "Which GPUs hold a load, how many, in which parallelism; cheapest first, with reasons.",
    "help.option.prompt_tokens": "Tokens of one prompt; the context is prompt and output together.",
    "help.option.output_tokens": "Tokens of one answer; the context is prompt and output together.",
    "help.option.price_file": (
        'JSON with prices of your own by name, in US dollars an hour: {"H100": 2.5}; they go before ours.'
    ),
    "help.option.top": "How many options to show. Default 5.",
}
