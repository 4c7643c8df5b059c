"""What a profiling pass holds of images: their pixels, and the values of the encoder that they pass through.

vLLM runs the encoder for the largest image, or for as many images as its batch has tokens for
(``gpu_model_runner.profile_run``), before the language model; where batches are small, this is the peak.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

from kvgauge.data import read_data, read_row
from kvgauge.values import dataclass
from kvgauge.weights import Part, TensorFamily, WeightShard

#: Copies of the residual stream in a pass of the encoder: what enters a block, what leaves it, and their sum.
_RESIDUALS = 3
_ATTENTION = ("attn", "attention")


@dataclass(frozen=True, slots=True)
class Encoder:
    """What one patch of an image has on one rank.

    Args:
        patch_values: of its pixels.
        pass_values: the residual stream and the inner values of the widest block.
    """

    patch_values: int
    pass_values: int


def inner_values(family: TensorFamily, ranks: int) -> int:
    """Return the inner values of a block that a matrix makes on one rank, or takes where it leads out of it.

    Heads are repeated once ranks exceed them.
    """
    whole = family.shape[1] if family.shard is WeightShard.ROW else family.shape[0]
    if family.shard is WeightShard.REPLICATED:
        return whole
    if family.shard is WeightShard.KV_HEADS and family.shard_units:
        ranks = min(ranks, family.shard_units)
    return -(-whole // max(1, ranks))


def encoder_of(families: Iterable[TensorFamily], ranks: int) -> Encoder | None:
    """Return the widths of an encoder of images; None where the tensors tell of none.

    Args:
        families: of the whole model, shapes before quantisation.
        ranks: tensor-parallel; each holds its share of the inner values.
    """
    held = [family for family in families if family.part is Part.VISION and len(family.shape) > 1]
    named = (f for f in held if "patch" in f.name and "embed" in f.name and "pos" not in f.name)
    patches = next(named, None)
    if patches is None:
        return None
    blocks: dict[tuple[str, int], int] = {}
    for family in held:
        kind = "attention" if any(word in family.name for word in _ATTENTION) else "mlp"
        width = inner_values(family, ranks)
        for layer in family.layers:
            blocks[kind, layer] = blocks.get((kind, layer), 0) + width
    hidden = patches.shape[0]
    return Encoder(prod(patches.shape[1:]), _RESIDUALS * hidden + max(blocks.values(), default=0))


@lru_cache(maxsize=1)
def _item_tokens() -> Mapping[str, int]:
    found: Mapping[str, int] = json.loads(read_data("image_items.json"))["tokens"]
    return found


def image_item_tokens(config: Mapping[str, object]) -> int:
    """Return the tokens of the largest image that a model's own processor makes; 0 where that is not known.

    >>> image_item_tokens({"model_type": "qwen2_5_vl"}), image_item_tokens({"model_type": "llama"})
    (16384, 0)
    """
    kind = config.get("model_type")
    return _item_tokens().get(kind, 0) if isinstance(kind, str) else 0


_PIXEL_BYTES = 4 * 3
#: No token stands for more pixels than this, nor do sides of sane patches multiply beyond it.
_MOST_PIXELS = 1 << 20


def image_token_bytes(config: Mapping[str, object]) -> int:
    """Return the bytes of the pixels behind one token of an image, in 32 bits; 0 where nothing says.

    What the config leaves out is the default of its class.

    >>> image_token_bytes({"mm_tokens_per_image": 256, "vision_config": {"image_size": 896}})  # Gemma-3
    37632
    >>> tower = {"patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}
    >>> image_token_bytes({"vision_config": tower})  # Qwen3-VL
    24576
    """
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return 0
    tokens, image = _size(config, "mm_tokens_per_image"), _size(vision, "image_size")
    if tokens and image:
        pixels = image * image / tokens
    else:
        merged = (
            _size(vision, "spatial_merge_size")
            or _size(config, "spatial_merge_size")
            or _size(vision, "pooling_kernel_size")
            or 1
        )
        shuffle = vision.get("pixel_shuffle_ratio")
        if isinstance(shuffle, float) and 0.01 < shuffle < 1:
            merged = round(1 / shuffle)
        side = _size(vision, "patch_size") * merged
        pixels = side * side * (_size(vision, "temporal_patch_size") or 1)
    return int(pixels * _PIXEL_BYTES) if pixels <= _MOST_PIXELS else 0


def _size(config: Mapping[str, object], name: str) -> int:
    value = config.get(name)
    kind = config.get("model_type")
    if value is None and isinstance(kind, str):
        value = read_row("weight_defaults.jsonl", kind[:100]).get(name)
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and 0 < value <= _MOST_PIXELS else 0  # type: ignore[operator,return-value]
