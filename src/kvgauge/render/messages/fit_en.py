"""English of ``fit``, and of what engines set aside."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "fit_yes": "{model}: {engine} has room for {load}",
    "fit_no": "{model}: {engine} has no room for {load}",
    "fit_verdict_label": "Verdict",
    "fit_pool_label": "Pool per GPU",
    "fit_pool": "{blocks} blocks of {tokens} tokens, {size} each",
    "fit_pool_bytes": "{size}",
    "fit_capacity_label": "In the log",
    "fit_capacity": "{tokens} tokens, {concurrency}x for requests of {context} tokens",
    "fit_longest_label": "Longest context",
    "fit_most_label": "Most sequences",
    "fit_reach": "{count} ({why})",
    "fit_none": "none ({why})",
    "fit_limited.memory": "the pool's limit",
    "fit_limited.model": "the model's limit",
    "fit_limited.engine": "the engine's limit",
    "fit_limited.flag": "as a flag says",
    "fit_weights_label": "Weights per GPU",
    "fit_help_label": "Would help",
    "fit_needed": "the load",
    "fit_left": "left in the pool",
    "fit_launch_title": "Launch",
    "fit_gpu_assumed": "{name} (assumed: no card is named)",
    "assumed_gpu": "card",
    "assumed_reserve": "reserved",
    "column_group": "Group",
    "column_block": "Block",
    "column_page": "Page",
    "column_blocks": "Blocks a request",
    "column_kept": "Must be kept",
    "aside_label": "Set aside",
    "aside_kept": "{size} that must be kept",
    "aside_in_flight": "{size} in flight",
    "aside_state_copies": "{size} of further states",
    "aside_padding": "{size} of padding",
    "aside_join": " + ",
    "aside_beside": "{sum}; beside it {size} reserved",
    "blocks_label": "Blocks",
    "blocks_line": "{count} of {tokens} tokens, {size} each",
    "kind.padding": "padding",
    "grade_why.block_size_assumed": "the block of attention layers on this card is not known",
    "grade_why.drafter_layers_assumed": "the layers of the draft model are not known",
    "grade_why.kv_connector_assumed": "what the KV connector changes is not known",
    "engine.vllm": "vLLM: blocks of every group, padding, the pool and what its log prints",
    "help.section.device": "Device",
    "help.verb.fit": "Whether a load fits an engine's pool, the pool itself, and the most that would fit.",
    "help.option.gpu": (
        "The card as people or tools write it, a count after a colon: H100:2. It sets the engine's defaults."
    ),
    "help.option.kv_memory": (
        "Bytes of cache and state on each GPU, given instead of computed: 40GiB, 40GB, bytes."
    ),
    "help.option.utilization": "Share of the card that the engine may use: 0.9.",
    "help.option.check": "Exit code 3 where the load does not fit.",
}
