"""English of the topics of ``learn`` that run mechanisms."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "help.verb.learn mechanisms": (
        "MHA, GQA, MQA, MLA, windows, delta rule, Mamba-2, convolution: run, and the bytes of their "
        "caches counted."
    ),
    "help.verb.learn flash": (
        "FlashAttention: tiles equal plain attention; what moves, counted and in closed form."
    ),
    "help.verb.learn paged": "PagedAttention: blocks against contiguous memory on one stream of requests.",
    "help.verb.learn quantised": "Quantised caches: bytes of each format against the error of the output.",
    "help.option.tile": "Rows of queries and of keys held at once: 128x64.",
    "help.option.pool": "Slots for tokens in the pool: 16k.",
    "help.option.requests": "How many requests. Default: 200.",
    "help.option.block_sizes": "Tokens a block, several by commas: 1,16,64.",
    "help.option.head_dim": "Width of a head. Default: 128.",
    "help.option.outliers": "Channels of K that are ten times as large. Default: 2.",
    "lab_yes": "yes",
    "lab_no": "no",
    "lab_difference": "Off by",
    # mechanisms
    "lab_layers_title": "One layer of each mechanism, {tokens} run one by one",
    "lab_mechanism": "Mechanism",
    "lab_a_token": "Next token",
    "lab_fixed": "Fixed",
    "lab_counted": "Counted",
    "lab_size_says": "size says",
    "lab_contexts_equal": "Equal at",
    "lab_layers_legend": (
        "Next token: what the last one added. Fixed: held before the first. Counted: bytes of the "
        "arrays at the end; K, V, latents, convolutions in bf16, states in fp32. Equal at: contexts "
        "at which counted and computed bytes agree. Off by: outputs one by one against all at once "
        "(recurrences: in chunks)."
    ),
    "lab_absorbed": "MLA, absorbed and decompressed: outputs are off by {off} of the largest at most.",
    "lab_word.mha": "MHA",
    "lab_word.gqa": "GQA",
    "lab_word.mqa": "MQA",
    "lab_word.sliding": "window",
    "lab_word.mla": "MLA",
    "lab_word.gated_delta_net": "delta rule",
    "lab_word.mamba2": "Mamba-2",
    "lab_word.short_convolution": "convolution",
    "lab_word.none": "without",
    "lab_models_title": "Patterns of models, {tokens} run; their true sizes at {context}",
    "lab_model": "Model",
    "lab_layers": "Layers",
    "lab_true_cache": "Cache",
    "lab_true_state": "State",
    "lab_to_first": "To first",
    "lab_models_equal": "Counted and computed bytes agree at {equal} of {asked} contexts.",
    "lab_models_legend": (
        "Counted: run with all widths divided by {divisors}; layers, heads and groups are the model's, and "
        "a state shrinks by the square. Cache grows with the context; state does not, and is the larger "
        "part at short contexts. Layers 'without' keep nothing (MLPs, experts)."
    ),
    # flash
    "flash_run_title": "One head run, {tokens} tokens of width {width}: elements moved, and held at once",
    "flash_tile": "Tile",
    "flash_no_tile": "none",
    "flash_read": "Read",
    "flash_written": "Written",
    "flash_peak": "Held",
    "flash_causal": "Causal: moved",
    "flash_formula": "= formula",
    "flash_run_legend": (
        "Tile: queries × keys. Without tiles scores and weights are written and read (4 N² "
        "elements), and a mask saves none of it; in tiles they stay in fast memory, and tiles that a "
        "mask hides are skipped. Off by: the largest difference of outputs."
    ),
    "flash_layer_title": (
        "{model}: one of {layers} attention layers, {heads} heads of {width}, {tokens} in {dtype}"
    ),
    "flash_what": "Prefill of one sequence, one layer",
    "flash_head_scores": "Scores of one head",
    "flash_all_scores": "Scores of all heads",
    "flash_score_passes": "Scores written and read",
    "flash_weight_passes": "Softmax weights written and read",
    "flash_all_passes": "Both: what tiles take away",
    "flash_plain_moved": "All that is moved without tiles",
    "flash_tiled_moved": "All that is moved in tiles of {tile}",
    "flash_tiled_causal": "The same, hidden tiles skipped",
    "flash_decode_passes": "Decode, one token: scores and weights",
    "flash_decode_moved": "Decode, one token: all that is moved",
    "flash_load_passes": "{layers} layers, sequences: {sequences}: scores and weights",
    "flash_load_tiled": "The same load in causal tiles: all",
    "flash_cache": "KV cache of the load, with or without",
    "flash_left_out": (
        "A causal mask leaves {seen} of the scores. K and V pass by once for every {rows} queries: "
        "with a block of queries twice as high, half as often. A GPU's L2 cache and heads that share "
        "K and V save part of that and are not counted. One head holds {peak} elements at once. "
        "Figures of scores alone hold for prefill, one layer and one sequence; in decode K and V are "
        "what is read."
    ),
    # paged
    "paged_title": (
        "{requests} requests ({mean} tokens at the end on average, {longest} the longest) through a "
        "pool of {pool} slots; the longest allowed is {maximum}"
    ),
    "paged_scheme": "Scheme",
    "paged_filled": "Filled",
    "paged_reserved": "Reserved",
    "paged_internal": "Internal",
    "paged_external": "External",
    "paged_free": "Free",
    "paged_running": "At once",
    "paged_ratio": "To first",
    "paged_scheme.reserve_maximum": "the maximum",
    "paged_scheme.buddy": "buddy",
    "paged_scheme.true_length": "true length",
    "paged_scheme.paged": "blocks of {tokens}",
    "paged_legend": (
        "Shares of the pool while requests wait. Reserved: for tokens that will come. Internal: set "
        "aside, never filled. External: free, enough for the next request, in no piece long enough. "
        "Free: too few for it. At once: requests that run, on average. Buddy and true length know "
        "how long a request will get; no server does."
    ),
    "paged_quote.article": (
        "The article (A.4), quoted: {low} to {high} without pages, above {paged} with them."
    ),
    "paged_quote.arXiv": "The paper (arXiv 2309.06180), quoted: {low} to {high}, and {paged}.",
    "paged_sharing_title": "Sharing, in blocks of 4",
    "paged_deed": "Deed",
    "paged_used": "Used",
    "paged_used_idle": "{used} (+{idle} kept)",
    "paged_known": "Found",
    "paged_copied": "Copied",
    "paged_tables": "Blocks of each sequence",
    "paged_deed.allocate": "a prompt of 10 tokens",
    "paged_deed.allocate_alike": "another, 8 of its 9 alike",
    "paged_deed.fork": "the first forks",
    "paged_deed.append_to_shared": "its copy writes a token",
    "paged_deed.free_all": "all end",
    "paged_deed.allocate_again": "the second's beginning again",
    "paged_decode_title": (
        "Decode of token {position}: {heads} query heads, {kv_heads} KV heads, {tiles} pages as "
        "tiles of a running softmax"
    ),
    "paged_page_tokens": "Tokens",
    "paged_page_block": "Block",
    "paged_decode_equal": "Plain attention over the same rows, side by side, differs by {off} at most.",
    # quantised
    "quantised_title": (
        "{about}: {tokens}, {heads} KV heads of {width}; largest channel over the middle one: K "
        "{keys}, V {values}"
    ),
    "quantised_layers": "{layers} layers x {heads}",
    "quantised_sample.even": "Random, all channels alike",
    "quantised_sample.outliers": "Random, {outliers} channels of K {factor} times as large",
    "quantised_sample.shipped_model": "The shipped model on a text of its own",
    "quantised_format": "Format",
    "quantised_scale": "A scale for",
    "quantised_ratio": "To bf16",
    "quantised_keys": "K so",
    "quantised_values": "V so",
    "quantised_both": "Both",
    "scaling.none": "none",
    "scaling.tensor": "the tensor",
    "scaling.token_head": "token, head",
    "scaling.block16": "16 elements",
    "quantised_legend": (
        "K so, V so, both: root mean square error of the attention's output, relative to the output, "
        "where that part is stored so and the rest in fp32. Bytes are counted on codes and scales; a "
        "scale of the whole tensor lies with the weights."
    ),
}
