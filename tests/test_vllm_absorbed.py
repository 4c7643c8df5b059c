"""Absorbed projections of vLLM 0.7.1 to 0.7.3, against what start-up logs print of weights."""

from __future__ import annotations

from dataclasses import replace

import pytest

import kvgauge
from kvgauge.engines.vllm_absorbed import absorbed_sizes
from kvgauge.engines.vllm_load import loaded_bytes
from kvgauge.engines.vllm_weights import shard_policy
from kvgauge.readers.hf.rotary import read_rotary
from kvgauge.units import GIB
from kvgauge.weight_ranks import rank_tensors
from kvgauge.workload import Parallelism


def held(name, version, capability):
    model = kvgauge.load(name, offline=True)
    architecture = model.architecture
    policy = shard_policy(
        model_type=architecture.model_type, compute_capability=capability,
        model_dtype=architecture.model_dtype, version=version,
    )  # fmt: skip
    tensors = tuple(
        rank_tensors(model.weighed.stored, Parallelism(8), num_layers=architecture.num_layers, policy=policy)
    )
    size = loaded_bytes(
        tensors, read_rotary(model.raw.config), model_type=architecture.model_type, version=version
    )
    return tensors, size / GIB


@pytest.mark.parametrize(
    ("name", "version", "capability", "printed_gib"),
    [("deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct", "0.7.1", (8, 0), 3.97),
     ("deepseek-ai/DeepSeek-R1", "0.7.3", (9, 0), 83.88)],
)  # fmt: skip
def test_weights_as_logs_of_eight_ranks_print_them(name, version, capability, printed_gib):
    _, size = held(name, version, capability)
    _, later = held(name, "0.8.0", capability)
    assert size == pytest.approx(printed_gib, rel=0.003)
    assert size > later * 1.05


def test_the_copies_of_one_layer():
    """DeepSeek-R1 on eight ranks: 16 heads, queries of rank 1,536, latents of 512, 64 rotary, width 7,168."""
    tensors, _ = held("deepseek-ai/DeepSeek-R1", "0.7.3", (9, 0))
    sizes = list(absorbed_sizes(tensors))
    assert len(sizes) == 3 * 61
    assert sizes[:3] == [1536 * 16 * 512, 16 * 512 * 7168, 1536 * 16 * 64 * 2]


def test_models_without_latents_keep_none():
    tensors, _ = held("meta-llama/Llama-3.1-8B-Instruct", "0.7.3", (9, 0))
    assert list(absorbed_sizes(tensors)) == []
    assert list(absorbed_sizes(replace_layers(tensors))) == []


def replace_layers(tensors):
    return [tensor._replace(family=replace(tensor.family), layers=()) for tensor in tensors]
