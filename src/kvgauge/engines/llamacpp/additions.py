"""What stands in a working buffer beside its graph: copies of a pipeline, of weights, of unpacked latents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.engines.llamacpp.compute import Estimate
from kvgauge.engines.llamacpp.settings import LlamaSettings

#: Copies of the graph's inputs when several devices work at once (``GGML_SCHED_MAX_COPIES``).
PIPELINE_COPIES = 4
#: Rows from which on a device works on a matrix that lies on the host
#: (``ggml_backend_cuda_device_offload_op``).
_ROWS_TO_COPY = 32
_STAGED_HIGH = 1.25
#: On a device the fork keeps copies of unpacked latents beside, which start-up logs show to be up to 2 GiB.
_UNPACKED_ON_DEVICE = 1.6
FIRST = "gpu:0"


def in_pipeline(settings: LlamaSettings, devices: tuple[str, ...], *, whole: bool) -> bool:
    """Whether devices work at once, each on a micro-batch of its own (``llama_context``'s constructor).

    All layers lie on devices, no weights are kept elsewhere, caches lie with their layers.
    """
    return (
        len(devices) > 1
        and whole
        and settings.split_mode == "layer"
        and settings.offload_cache
        and not settings.cpu_moe_layers
        and not settings.overrides
    )


def copied(found: Estimate, of: Mapping[str, int], copies: int, *, plain: bool) -> Estimate:
    """Add the copies of masks and hidden rows that a pipeline over several devices keeps.

    Seen with two devices and more: 3 more masks and 4 copies of the rows that pass from one to the next.
    """
    if copies < 2:
        return found
    mask = (4 if plain else 2) * of["ub"] * (of["C"] + of["W"])
    extra = (copies - 1) * mask + copies * 4 * of["ub"] * of["d"]
    return replace(found, bytes=found.bytes + extra, high=found.high + 2 * extra)


def helpers(settings: LlamaSettings) -> tuple[str, ...]:
    """Return the device that helps with matrices of a model that lies on the host as a whole."""
    helps = settings.num_gpus and settings.copies_weights
    return (FIRST,) if helps and (settings.host_matrix_bytes or settings.host_output_bytes) else ()


def staged(
    found: Estimate | None,
    blocks: Estimate | None,
    settings: LlamaSettings,
    of: Mapping[str, int],
) -> Estimate | None:
    """Add the copy of a matrix that lies on the host: the first device works on it for 32 rows and more.

    One at a time, beside what the blocks need (``ggml_backend_sched_backend_id_from_cur``; a split of the
    graph for each). A log of GLM-5.2 with experts on the host shows 1.8 GiB more on the first of four devices
    than on the others; Llama-2-13B in 8 bits with all on the host its logits' matrix to 0.1 %.
    """
    if not settings.copies_weights or of["ub"] < _ROWS_TO_COPY:
        return found
    sizes = [0]
    if blocks is not None and settings.host_matrix_bytes:
        sizes.append(blocks.bytes + settings.host_matrix_bytes)
    if settings.host_output_bytes and of["o"] >= _ROWS_TO_COPY:
        sizes.append(4 * of["o"] * (of["V"] + 2 * of["d"]) + settings.host_output_bytes)
    size = max(sizes)
    if found is None or size <= found.bytes:
        return found
    low = min(found.low, found.low if blocks is None else blocks.low)
    matrix = max(settings.host_matrix_bytes, settings.host_output_bytes)
    text = f"{found.moment} + {matrix} B"  # of weights
    return Estimate(size, low, max(found.high, round(size * _STAGED_HIGH)), text)


def beside_experts(found: Estimate, settings: LlamaSettings, of: Mapping[str, int]) -> Estimate:
    """Widen the host's buffer by what experts that lie there make of a micro-batch, if it is theirs."""
    if not (settings.cpu_moe_layers or settings.overrides) or not of["u"]:
        return found
    extra = 4 * of["ub"] * of["u"] * (of["d"] + 2 * of["x"])
    return replace(found, high=found.high + extra)


def unpacked(
    found: Estimate | None, settings: LlamaSettings, of: Mapping[str, int], *, on_device: bool
) -> Estimate | None:
    """Add K and V that ik_llama.cpp makes of latents (``-mla 2``, 3), of as many heads as ``-amb`` lets."""
    if found is None or not settings.unpacks or not of["km"]:
        return found
    packed = 2 * of["C"] * of["h"] * (of["km"] - of["p"] + of["vm"])
    parts = max(1, -(-packed // (settings.attention_mib << 20))) if settings.attention_mib else 1
    size = 4 * of["C"] * of["h"] * (of["km"] + of["vm"]) // parts + found.bytes // 4
    if size <= found.bytes:
        return found
    high = round(size * (_UNPACKED_ON_DEVICE if on_device else 1.1))
    return replace(found, bytes=size, low=round(size * 0.9), high=max(found.high, high))


__all__ = [
    "FIRST", "PIPELINE_COPIES", "beside_experts", "copied", "helpers", "in_pipeline", "staged", "unpacked",
]  # fmt: skip
