"""How SGLang and TensorRT-LLM cut weights, as far as it is known: the layers that all serving engines share.

Embedding and head are padded to a multiple of 64 rows (SGLang's ``vocab_parallel_embedding.py``, of one
origin with vLLM's; TensorRT-LLM pads to the ranks alone), experts are cut over the tensor ranks or spread
over the expert ones, and a 32-bit checkpoint is loaded in 16 bits. Nothing of it was measured on ranks of
these engines.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from kvgauge.architecture import ModelArchitecture
from kvgauge.sharding import ShardPolicy

Stages = Callable[[int, int], tuple[range, ...]]


def shard_policy(architecture: ModelArchitecture, *, vocabulary_multiple: int, stages: Stages) -> ShardPolicy:
    """Return the policy of an engine.

    Args:
        vocabulary_multiple: rows of embedding and head are padded up to it.
        stages: layers of each pipeline stage, from their number and that of the stages.
    """
    return ShardPolicy(
        vocabulary_multiple=vocabulary_multiple,
        loaded_as=MappingProxyType({"f32": "bf16"} if architecture.model_dtype == "f32" else {}),
        split_layers=stages,
    )
