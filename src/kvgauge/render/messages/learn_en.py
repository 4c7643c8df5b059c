"""English of ``learn``."""

from __future__ import annotations

from collections.abc import Mapping

from kvgauge.render.messages import lab_en

MESSAGES: Mapping[str, str] = {
    **lab_en.MESSAGES,
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
    "life_group_one": "{count} layer ({layers})",
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
    "life.query_latent": "Q latent",
    "life.query_gate": "gate of heads",
    "life.latent": "latent",
    "life.rope_key": "K with position",
    "life.absorbed_query": "Q for latents",
    "life.made_key": "K of the latent",
    "life.made_value": "V of the latent",
    "life.latent_outputs": "latent outputs",
    "life.projected": "projections",
    "life.convolution_state": "convolution",
    "life.state": "state",
    "life.mixed": "read of state",
    "life.scores": "scores Q·K",
    "life.weights": "softmax weights",
    "life.head_outputs": "head outputs",
    "life.concatenated": "heads side by side",
    "life.attention_output": "after out proj",
    "life.post_attention": "plus the input",
    "life.normed_post_attention": "that, normed",
    "life.cross_normed": "that, normed",
    "life.cross_query": "Q for encoder",
    "life.cross_key": "K of encoder",
    "life.cross_value": "V of encoder",
    "life.cross_scores": "scores, encoder",
    "life.cross_weights": "softmax weights",
    "life.cross_outputs": "head outputs",
    "life.cross_concatenated": "heads side by side",
    "life.cross_output": "after out proj",
    "life.post_cross": "plus what was",
    "life.gate": "gate_proj",
    "life.up": "up_proj",
    "life.middle": "SiLU(gate) · up",
    "life.activated": "act(gate) · up",
    "life.activated_plain": "act(up)",
    "life.down": "down_proj",
    "life.layer_output": "layer output",
    "fate.residual": "next addition",
    "fate.discarded": "dropped",
    "fate.cached": "KV cache",
    "fate.state": "kept, overwritten",
    "fate.passed_on": "next layer",
    "optimiser.flash_attention": "FlashAttention",
    "optimiser.paged_attention": "PagedAttention",
    "life_fates": "{fates}. (Outputs of norms are not counted.)",
    "phase.prefill": "prefill",
    "phase.decode": "decode",
    "life_join": ", ",
    "fates.cached": "{count} kept in the cache",
    "fates.state": "{count} kept as state, the same at any length",
    "fates.passed_on": "{count} passed on to the next layer",
    "fates.residual": "{count} held to the next addition",
    "fates.discarded": "{count} dropped as soon as read",
    "life_measured": (
        "Measured, {phase}: {count} activations in {layers} layers, every dimension, every byte and "
        "what is held at each step as computed; peak {peak} ({at})."
    ),
    "life_measured_other": (
        "Measured, {phase}: {count} activations in {layers} layers, peak {peak} ({at}); other than "
        "computed: {names}."
    ),
    "help.option.measure": (
        "Run the model, a folder of the Llama or Qwen3 kind, and note what its layers make."
    ),
    "life_peak_label": "Peak of a layer",
    "life_peak": (
        "prefill {prefill} (at: {prefill_at}), {prefill_flash} with FlashAttention; "
        "decode {decode}, {decode_flash}"
    ),
    "life_vertical_label": "Vertical",
    "life_vertical": "{size} a token go up to the next layer, which frees them",
    "life_horizontal_label": "Horizontal",
    "life_horizontal": "{size} a layer stay for later tokens, {total} in these layers",
    "life_encoder": "E is {encoder}: positions of the encoder's output, whose K and V are made once.",
    "life_causal": (
        "T is {tokens}; in decode one token is computed, and looks at as many. Scores are counted as plain "
        "attention makes them, T × T a head; the causal mask leaves half of it unused. FlashAttention saves "
        "their memory and traffic, not a byte of K and V."
    ),
    # walk
    "help.verb.learn walk": (
        "A text through a real small model: the six steps to the next token, then generation with its cache."
    ),
    "help.about.learn walk": (
        "TEXT is 今天天气 where it is left out. Without --model it is a model of 0.4 MB that ships: "
        "one character is one token, and it knows a few dozen sentences. FOLDER is any Llama or Qwen3 "
        "model: config.json, *.safetensors, tokenizer.json."
    ),
    "help.option.learn walk.model": "A folder of a Llama or Qwen3 model. Default: the one that ships.",
    "help.option.ids": "The text as token ids: 1,2,3. For a model without tokenizer.json.",
    "help.option.new_tokens": "Tokens to generate, at most. Default: 16.",
    "help.option.temperature": "0 (default) takes the likeliest token; 1 draws as the model says.",
    "help.option.seed": "Of the draws. Default: 0.",
    "column_position": "Place",
    "column_token": "Token",
    "column_token_id": "Id",
    "column_row": "Its row begins",
    "column_matrix": "Matrix",
    "column_shape": "Shape",
    "column_numbers_in": "Numbers",
    "column_begins": "Begins",
    "column_vector": "Vector",
    "column_heads": "Heads × width",
    "column_head_0": "Head 0 begins",
    "column_product": "Q·K",
    "column_score": "÷ √D",
    "column_share": "Share",
    "column_value_begins": "V begins",
    "column_head": "Head",
    "column_stage": "Stage",
    "column_width": "Numbers",
    "column_logit": "Logit",
    "column_layer": "Layer",
    "column_key_begins": "K begins",
    "column_output_begins": "Output begins",
    "column_likeness": "Likeness",
    "column_guess": "Guess",
    "column_step_number": "Step",
    "column_chosen": "Next token",
    "column_held": "Cache holds",
    "column_size_says": "kvgauge size",
    "column_read": "Read",
    "column_computed": "K, V of",
    "column_computed_without": "without cache",
    "column_ms": "ms",
    "column_ms_without": "without cache",
    "column_query_begins": "Q begins",
    "column_scores": "Newest scores",
    "walk_title": "{text} through {model}, {layers} layers: every number below was computed just now",
    "walk_step_1": "Step 1. The text becomes numbers",
    "walk_ids": "{count} tokens, each an id of a vocabulary of {vocabulary}. A look-up, on the CPU.",
    "walk_one_character": "Here one character is one token; a real vocabulary has pieces of words as well.",
    "walk_pieces": "A token is a piece of text of this vocabulary: one character, less, or several.",
    "walk_step_2": "Step 2. Each id picks a row",
    "walk_rows": (
        "The embedding is a table of {rows} × {columns} trained numbers; the id is the number of the row."
    ),
    "walk_cut": "The last {shown} of {count} tokens.",
    "walk_step_3": "Step 3. Each token gets a query, a key and a value",
    "walk_roles": "The query scores, the key is scored, the value is what is handed over.",
    "walk_matrices": (
        "Layer 0 multiplies by three trained matrices. They differ in what training made of them:"
    ),
    "walk_vectors": "Out come, for {token}:",
    "walk_turned": (
        "Before it: a norm of the row. After it: Q and K are turned by their position (RoPE), V is not."
    ),
    "walk_turned_normed": (
        "Before it: a norm of the row. After it: Q and K are normed head by head (Qwen3) and turned by their "
        "position (RoPE), V is not."
    ),
    "walk_groups": "{group} query heads share one of the {kv_heads} KV heads: grouped-query attention.",
    "walk_same": (
        "{token} stands at {first} and {again}. Same row, so the same V (they differ by {stayed}); "
        "the position makes K differ, by up to {moved}."
    ),
    "walk_step_4": "Step 4. Q scores every K, and takes from every V by its share",
    "walk_scores": (
        "Layer 0, head 0, {token} looks back. Products are divided by √D = {divisor}; softmax turns "
        "scores into shares that add up to 100 %."
    ),
    "walk_sum": "= taken",
    "walk_heads": "Each head looks elsewhere. Shares that {token} gives, by head:",
    "walk_mask": "Every token did the same, in one go. The causal mask hides what comes later (head 0):",
    "walk_step_5": "Step 5. Each token digests by itself: the FFN",
    "walk_feed_forward": (
        "The heads are laid side by side, mixed by o_proj and added to the input; then two matrices, SiLU "
        "between, a third, and added again."
    ),
    "walk_step_6": "Step 6. The last layer's output becomes a guess",
    "walk_head": (
        "One more norm, then a matrix of {rows} × {columns}: a logit for every token that may follow {token}."
    ),
    "walk_head_tied": (
        "One more norm, then the embedding again, {rows} × {columns}: a logit for every token that may "
        "follow {token}."
    ),
    "walk_layers": "One token, {token}, through the layers",
    "walk_layers_key": (
        "Each layer has its own K and V of it, from another input by other matrices: that is why the "
        "cache keeps them for every layer."
    ),
    "walk_layers_output": (
        "The output goes up to the next layer alone and is freed. Likeness: cosine to the token's own "
        "row. Guess: what would follow if the head came right behind this layer."
    ),
    "walk_generation": "Generation with the cache: {said}",
    "walk_bytes": (
        "Step 1 takes the prompt of {prompt} in one pass (prefill); each later one takes the token before "
        "(decode)."
    ),
    "walk_equal": (
        "What the arrays hold, in fp32, is what 'kvgauge size --kv-dtype fp32' says, to the byte: "
        "{per_token} B a token, {tokens} tokens at the end. Reads grow with it: attention reads all "
        "that is held."
    ),
    "walk_unequal": (
        "The arrays hold another number of bytes than 'kvgauge size' says: {per_token} B a token."
    ),
    "walk_work_title": "What it saves",
    "walk_saved": (
        "T = {tokens}: with the cache {rows} keys and values a layer were computed, without it "
        "{rows_without}. Token by token from the first it would have been T (T + 1) / 2 = {from_one}."
    ),
    "walk_not_constant": (
        "A step is not constant work: it computes one K and V, but scores and reads all of them."
    ),
    "walk_overhead": "On so small a model the times are mostly overhead.",
    "walk_other_tokens": (
        "The two modes chose different tokens: their numbers differ in the last digits, and two tokens were "
        "about equally likely."
    ),
    "walk_stays_title": "Why K and V can be kept, and Q and scores can't",
    "walk_stays": (
        "From the first step to the last, cached numbers moved by {moved}; computed anew from the "
        "whole text, they differ by at most {recomputed}. A later token changes no earlier K or V."
    ),
    "walk_fresh": "Q belongs to the newest token, and scores to its Q: new at every step (layer 0, head 0).",
    # the pipeline
    "help.verb.learn pipeline": (
        "A model from text to the next token as one SVG: shapes, bytes, where cache, tiling and paging act."
    ),
    "pipeline_title": "{model}: one decode step after {tokens} tokens",
    "pipeline_about": (
        "From text through the layers to the next token; the cache beside the scores that read it."
    ),
    "pipeline_layers": "one of {count} layers",
    "pipeline_tokens": "tokenizer: text → number",
    "pipeline_vocabulary": "{count} entries",
    "pipeline_embedding": "embedding: number → row",
    "pipeline_norm": "RMSNorm",
    "pipeline_query": "Q",
    "pipeline_key": "K",
    "pipeline_value": "V",
    "pipeline_rope": "Q, K: RoPE",
    "pipeline_flash": "FlashAttention: in tiles, on chip, never in memory as a whole",
    "pipeline_scores": "scores: Q × K of every token so far",
    "pipeline_weights": "softmax",
    "pipeline_head_outputs": "weights × V, head by head",
    "pipeline_output": "heads joined × W_O",
    "pipeline_add": "+ what came in",
    "pipeline_cache": "KV cache: appended, read, kept",
    "pipeline_pages": "PagedAttention: {count} pages of {size}",
    "pipeline_sums": "{layer} in this layer, {all} in all",
    "pipeline_read": "read",
    "pipeline_gate": "gate",
    "pipeline_up": "up",
    "pipeline_middle": "SiLU(gate) × up",
    "pipeline_down": "down",
    "pipeline_head": "LM head: a score for each entry",
    "pipeline_next": "next token",
    "pipeline_next_how": "the highest, or drawn",
    "pipeline_loop": "decode: again, with one row more",
    # exercises
    "help.verb.learn exercises": "Questions to the chapters; an answer is checked against the library.",
    "help.option.answer": "Your answer: a number, or a size such as 4.5GiB.",
    "exercises_how": "kvgauge learn exercises l2-batch --answer 18GiB checks an answer.",
    "exercise_how": "kvgauge learn exercises {id} --answer VALUE",
    "exercise_right": "Right: {value}",
    "exercise_wrong": "No: it is {value}",
    "exercise_why": "Why: {why}",
}
