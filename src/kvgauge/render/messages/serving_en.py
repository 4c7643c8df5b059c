"""English of what SGLang and TensorRT-LLM print of their pools, and of what was assumed."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGES: Mapping[str, str] = {
    "fit_tokens": "{tokens} tokens",
    "fit_tokens_window": "{tokens} in windows",
    "fit_tokens_states": "{slots} slots of state",
    "fit_tokens_requests": "up to {requests} requests",
    "fit_tokens_join": ", ",
    "engine.sglang": "SGLang: tokens in pages, window pools, slots of state, and the defaults that set them",
    "engine.tensorrt-llm": (
        "TensorRT-LLM: blocks from a quota of the free memory, pools by window, states of the batch"
    ),
    "grade_why.latent_assumed": "how the engine keeps this class's latents is not known",
    "grade_why.nvfp4_workspace_assumed": "buffers that nvfp4 is unpacked into are not known",
    "grade_why.drafter_priced_assumed": "the layers of the draft model are not known",
    "grade_why.windows_assumed": "no log confirms how memory is shared among windows",
    "grade_why.sparse_index_assumed": "no log confirms how keys of the sparse index are kept",
    "grade_why.states_assumed": "no log confirms how states are kept",
}
