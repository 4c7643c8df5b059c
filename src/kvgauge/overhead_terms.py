"""Formulas of the working memory, term by term: physics first, then a few constants from ``overhead.json``.

A profiling pass of vLLM runs a forward pass of the largest batch, then samples for the most sequences; the
larger of the two is its peak (``gpu_model_runner.profile_run``, ``_dummy_sampler_run``). Sampling holds
copies of fp32 logits, sequences x vocabulary x 4 bytes each, besides hidden states of the batch; a forward
pass holds the residual stream and the widest block. Workspaces that stay (``v1/worker/workspace.py``) come on
top.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from math import hypot
from typing import Any

from kvgauge.data import read_data
from kvgauge.engines.vllm.versions import Version, parse_version
from kvgauge.overhead_drivers import Running, Widths
from kvgauge.overhead_runner import version_of
from kvgauge.values import dataclass

Coefficients = Mapping[str, Any]

_ELEMENT_BYTES = 2
_COUNT_BYTES = 4
_LOGIT_BYTES = 4
_PIXEL_BYTES = 4
#: What a figure is off by for reasons that grow with nothing: segments of the allocator, small buffers.
ROUNDING = 0.1 * (1 << 30)
#: Devices that share the memory of their host: what its processes take counts too (vllm/utils/mem_utils.py).
_UNIFIED = frozenset({(8, 7), (11, 0), (12, 1)})
#: Copies of the residual stream in a forward pass: what enters a block, what leaves it, and their sum.
_RESIDUALS = 3
#: Rows that a prefill of latent attention expands at once (mla_attention.py).
_LATENT_ROWS = 64 * 1024
_LATENT_REQUESTS, _LATENT_PAGES, _PAGE_TOKENS = 8, 4, 16
#: Longest requests whose index keys a prefill gathers (v1/attention/backends/mla/indexer.py).
_INDEX_REQUESTS = 40
#: Tokens that expert kernels took at a time before they kept their buffers.
_EXPERT_CHUNK = 32768
#: From here on expert kernels keep their buffers.
_KEEPS_EXPERT_BUFFERS = parse_version("0.17.0.dev0")
_LATENTS_SINCE = parse_version("0.8.0.dev0")


@lru_cache(maxsize=1)
def coefficients() -> Coefficients:
    """Return the fitted constants, as ``tools/fit_overhead.py`` wrote them."""
    found: Coefficients = json.loads(read_data("overhead.json"))
    return found


@dataclass(frozen=True, slots=True)
class Range:
    """A figure with its range, in bytes.

    Args:
        grade: ``measured`` where records of the same kind stand behind it, else ``assumed``.
        records: how many.
    """

    low: float
    central: float
    high: float
    grade: str
    records: int
    source: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True)
class Peak:
    """What an activation peak is made of, in bytes.

    Args:
        logits: one fp32 copy of the logits of a step.
        stream: the residual stream of the batch in 16 bits, once for each time that sampling holds it.
        images: pixels and encoder outputs for a whole batch.
        encoder: of the pass that makes them, pixels and outputs with it.
        forward: of a forward pass.
        kept: workspaces that stay after it.
    """

    logits: int
    stream: int
    images: int
    encoder: int
    forward: int
    kept: int


def since(table: list[dict[str, Any]], version: Version) -> dict[str, Any]:
    """Return the last row of a table that holds for a version."""
    return [row for row in table if version >= parse_version(row["since"])][-1]


def peak_of(widths: Widths, running: Running, *, packed_experts: bool) -> Peak:
    """Return the parts of a peak, before any constant.

    Args:
        packed_experts: experts are in less than 8 bits; their kernels keep no buffers.
    """
    version = version_of(running)
    tokens = running.batched_tokens
    stream = tokens * widths.hidden * _ELEMENT_BYTES
    keeps = widths.has_experts and not packed_experts and version >= _KEEPS_EXPERT_BUFFERS
    block = widths.plain_block if keeps else widths.block
    forward = forward_pass(widths, tokens, block)
    gathered, routed = _gathered(widths, running, chunked=version < _KEEPS_EXPERT_BUFFERS)
    forward += gathered + (0 if keeps else (routed - tokens) * widths.experts * _ELEMENT_BYTES)
    kept = routed * widths.experts * _ELEMENT_BYTES if keeps else 0
    if widths.latent and version >= _LATENTS_SINCE:
        rows = min(
            max(
                _LATENT_REQUESTS * running.max_model_tokens,
                _LATENT_PAGES * running.sequences * _PAGE_TOKENS,
            ),
            _LATENT_ROWS,
        )
        kept += rows * widths.latent * _ELEMENT_BYTES
        forward += 0 if widths.index_row_bytes else rows * widths.expanded * _ELEMENT_BYTES
    if widths.index_row_bytes:
        gathered = -(-_INDEX_REQUESTS * running.max_model_tokens // widths.index_step)
        kept += gathered * widths.index_row_bytes
    images, encoder = _image_bytes(widths, running)
    return Peak(logits_bytes(widths, running), stream, images, encoder, forward, kept)


def _image_bytes(widths: Widths, running: Running) -> tuple[int, int]:
    """Return what images hold while the language model runs, and while their encoder does."""
    if not (widths.towers and running.images):
        return 0, 0
    budget = max(running.batched_tokens, running.image_item_tokens)
    pixels = budget * running.image_token_bytes
    images = budget * widths.hidden * _ELEMENT_BYTES + pixels
    if widths.encoder is None:
        return images, 0
    patches = pixels // (widths.encoder.patch_values * _PIXEL_BYTES)
    return images, images + patches * widths.encoder.pass_values * _ELEMENT_BYTES


def _gathered(widths: Widths, running: Running, *, chunked: bool) -> tuple[int, int]:
    """Return the bytes of tokens of other replicas on the way in and out, and the tokens that experts see.

    Args:
        chunked: expert kernels take so many tokens at a time (VLLM_FUSED_MOE_CHUNK_SIZE).
    """
    tokens = running.batched_tokens
    if not widths.has_experts or running.replicas == 1:
        return 0, tokens
    every = tokens * running.replicas
    routed = min(every, max(tokens, _EXPERT_CHUNK)) if chunked else every
    return 2 * (every - tokens) * widths.hidden * _ELEMENT_BYTES, routed


def forward_pass(widths: Widths, tokens: int, block: int) -> int:
    """Return the bytes of a forward pass in 16 bits: the residual stream, and a block so many values wide.

    >>> llama = Widths(4096, 128256, 43008, 43008, 0, 0, 0, 0, 1, 32, 1, False)
    >>> round(forward_pass(llama, 29000, llama.block) / 2**30, 2)  # Llama-3.1-8B; a log says 2.99
    2.99
    """
    return (_RESIDUALS * widths.hidden * widths.streams + block) * tokens * _ELEMENT_BYTES


def logits_bytes(widths: Widths, running: Running) -> int:
    """Return one fp32 copy of the logits of a step."""
    return min(running.sequences, running.batched_tokens) * widths.vocabulary * _LOGIT_BYTES


def activation(
    widths: Widths, running: Running, found: Coefficients, *, packed_experts: bool, second: bool = False
) -> Range:
    """Return the activation peak of vLLM.

    Args:
        second: the second model runner serves (``overhead_runner``).
    """
    parts = peak_of(widths, running, packed_experts=packed_experts)
    # Checking drafts holds what the first runner's sampling does, in both.
    in_second = second and not running.speculative_tokens
    row = since(found["second_sampling" if in_second else "sampling"], version_of(running))
    extra = found["speculative_copies"] if running.speculative_tokens else 0
    held = row["streams"] * parts.stream + parts.images + parts.kept
    sampling = (row["copies"] + extra) * parts.logits + held
    most = (row["most_copies"] + extra) * parts.logits + held
    forward = parts.forward + parts.images + parts.kept
    passes = {
        "logits": (sampling, most, row),
        "forward": (forward, forward, found["forward"]),
        "encoder": (parts.encoder, parts.encoder, found["encoder"]),
    }
    peak = max(passes, key=lambda name: passes[name][0])
    central, _, spread = passes[peak]
    low = max(size * (1 - own["spread"]) for size, _, own in passes.values()) - ROUNDING
    high = max(size * (1 + own["spread"]) for _, size, own in passes.values()) + ROUNDING
    is_measured = spread["records"] and not running.speculative_tokens
    return Range(
        max(0.0, low), central, high, "measured" if is_measured else "assumed", spread["records"],
        row["source"], peak,
    )  # fmt: skip


def captured(widths: Widths, running: Running, row: Mapping[str, Any]) -> Range:
    """Return the bytes of captured graphs: so much for each layer of each captured size."""
    if running.eager or not running.graph_sizes:
        return Range(0, 0, 0, "measured", row["dense"]["records"], row["source"], "eager")
    kind = row["experts" if widths.has_experts else "dense"]
    count = widths.layers * running.graph_sizes
    central = kind["bytes"] * count
    high = max(kind["high"] * count, row["most_of_few"])
    return Range(
        kind["low"] * count, central, high, "measured" if kind["records"] else "assumed", kind["records"],
        row["source"], "graphs",
    )  # fmt: skip


def sampling_state(widths: Widths, running: Running) -> int:
    """Return what the second runner keeps of words seen: a count and two bits a word, for each sequence."""
    return running.sequences * (widths.vocabulary * _COUNT_BYTES + 2 * -(-widths.vocabulary // 32) * 4)


def estimated_graphs(widths: Widths, running: Running, found: Coefficients) -> Range:
    """Return vLLM's own guess of its graphs, made before capture.

    The first capture counts whole, with what is loaded and kept only once; the second for all others. With
    routed experts so much for each layer of each size, else what graphs take and what is counted beyond.
    """
    taken = captured(widths, running, found["graphs"])
    if not widths.has_experts:
        beyond = found["graph_estimate"]["dense"]["beyond"]
        low, high = taken.central - taken.low, taken.high - taken.central
        central = taken.central + beyond["bytes"]
        return Range(
            central - hypot(low, beyond["bytes"] - beyond["low"]),
            central,
            central + hypot(high, beyond["high"] - beyond["bytes"]),
            "measured" if beyond["records"] else "assumed", beyond["records"], beyond["source"],
        )  # fmt: skip
    row = found["graph_estimate"]["experts"]
    count = widths.layers * running.graph_sizes
    return Range(
        row["low"] * count, row["bytes"] * count, row["high"] * count + row["most_of_few"],
        "measured" if row["records"] else "assumed", row["records"], row["source"], "graph_estimate",
    )  # fmt: skip


def joined_ranks(running: Running, row: Mapping[str, Any]) -> Range:
    """Return what joining ranks takes of each: buffers for every other where they are linked (NCCL)."""
    ranks = running.tensor * running.pipeline
    kind, count = ("linked", ranks) if running.linked else ("apart", 1)
    found = row[kind]
    sizes = (count * found[name] for name in ("low", "bytes", "high"))
    low, central, high = sizes
    grade = "measured" if found["records"] else "assumed"
    return Range(low, central, high, grade, found["records"], found["source"])


def beside_torch(running: Running, table: list[dict[str, Any]]) -> Range:
    """Return what communication and libraries hold."""
    row = table[matching(running, table)]
    return Range(
        row["low"], row["bytes"], row["high"], row["grade"], row["records"], row["source"], "non_torch"
    )


def matching(running: Running, table: list[dict[str, Any]]) -> int:
    """Return the index of the last row whose version is reached and whose conditions all hold."""
    facts = {
        "ranks": "many" if running.tensor * running.pipeline * running.replicas > 1 else "one",
        "linked": running.linked,
        "major": running.capability[0] if running.capability else None,
        "nodes": "many" if running.nodes > 1 else "one",
        "unified": running.capability in _UNIFIED,
    }
    version = version_of(running)
    return max(
        index
        for index, row in enumerate(table)
        if version >= parse_version(row["since"])
        and all(facts[key] == value for key, value in row["when"].items())
    )
