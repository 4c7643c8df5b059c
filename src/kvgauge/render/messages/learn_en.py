"""English of ``learn``."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "learn_about": "Each of these runs what it teaches; every number it shows was computed on the spot.",
    "help.topics": "Topics",
    "help.verb.learn": "Run the concepts behind the numbers: inference, cache, activations.",
    "help.verb.learn activations": (
        "The life of a layer's 15 activations: dimensions, bytes, what becomes of each, who optimises it."
    ),
    "help.option.tokens": "Tokens of one sequence: 4096, 32k.",
    "help.option.dtype": "Dtype of activations: fp32, bf16, fp16, fp8. Default: the model's own.",
    # activations
    "life_title": "{model}: what one layer makes of {tokens} in {dtype}, and what becomes of it",
    "life_group_all": "Every layer ({count})",
    "life_group_some": "{count} layers ({layers})",
    "life_group_window": "{group}, a query looks at {window} tokens",
    "column_number": "#",
    "column_activation": "Activation",
    "column_prefill": "Prefill",
    "column_decode": "Decode",
    "column_fate": "Then",
    "column_optimiser": "Optimised by",
    "column_dimensions": "Dims",
    "life.layer_input": "layer input",
    "life.normed_input": "input, normed",
    "life.query": "Q",
    "life.key": "K",
    "life.value": "V",
    "life.scores": "scores Q·K",
    "life.weights": "softmax weights",
    "life.head_outputs": "head outputs",
    "life.concatenated": "heads side by side",
    "life.attention_output": "after o_proj",
    "life.post_attention": "plus the input",
    "life.normed_post_attention": "that, normed",
    "life.gate": "gate_proj",
    "life.up": "up_proj",
    "life.middle": "SiLU(gate) · up",
    "life.down": "down_proj",
    "life.layer_output": "layer output",
    "fate.residual": "next addition",
    "fate.discarded": "dropped",
    "fate.cached": "KV cache",
    "fate.passed_on": "next layer",
    "optimiser.flash_attention": "FlashAttention",
    "optimiser.paged_attention": "PagedAttention",
    "life_fates": (
        "Of those with a number, {cached} stay in the cache, {passed_on} goes to the next layer, {residual} "
        "are held to the next addition, {discarded} are dropped as soon as they are read. "
        "Rows without one are outputs of norms."
    ),
    "life_peak_label": "Peak of a layer",
    "life_peak": (
        "prefill {prefill} (at: {prefill_at}), {prefill_flash} with FlashAttention; "
        "decode {decode}, {decode_flash}"
    ),
    "life_vertical_label": "Vertical",
    "life_vertical": "{size} a token go up to the next layer, which frees them",
    "life_horizontal_label": "Horizontal",
    "life_horizontal": "{size} a layer stay for all later tokens: the cache, {total} in these layers",
    "life_causal": (
        "T is {tokens}; in decode one token is computed, and looks at as many. Scores are counted as plain "
        "attention makes them, T × T a head; the causal mask leaves half of it unused. FlashAttention saves "
        "their memory and traffic, not a byte of K and V."
    ),
}
