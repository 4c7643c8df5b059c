"""Shapes as the configs of models state them, and layers of those shapes.

A lab layer and the core read the same words (``num_key_value_heads``, ``kv_lora_rank``, ...), each on its
own, so that the bytes which the one counts and the other computes can be held against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from kvgauge.errors import FeatureUnsupportedError, InvalidFieldError
from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.attention import AttentionShape, GroupedAttention
from kvgauge.lab.mechanisms.convolution import ConvolutionShape, ShortConvolution
from kvgauge.lab.mechanisms.delta import DeltaShape, GatedDeltaNet
from kvgauge.lab.mechanisms.held import HeldCache
from kvgauge.lab.mechanisms.latent import LatentAttention, LatentShape
from kvgauge.lab.mechanisms.mamba2 import Mamba2, SsmShape
from kvgauge.layers import LayerCache, Mechanism
from kvgauge.readers.hf.config import ALIASES

Config = Mapping[str, Any]
Shape = AttentionShape | LatentShape | DeltaShape | SsmShape | ConvolutionShape


class Mixer(Protocol):
    """A layer that mixes tokens and keeps something of them."""

    @property
    def word(self) -> str: ...  # noqa: D102

    def new_cache(self, dtype: str) -> HeldCache:
        """Return what it holds of a sequence before its first token."""

    def forward(self, x: Floats, cache: HeldCache) -> Floats:
        """Return the outputs of the next tokens, x (tokens, hidden)."""


#: More than any model has; keeps products of hostile numbers small.
_MAX_FIELD = 1 << 24

#: The words of a config behind each field of a shape.
WORDS: Mapping[type, Mapping[str, str]] = {
    AttentionShape: {
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "num_kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "window_tokens": "sliding_window",
    },
    LatentShape: {
        "hidden_size": "hidden_size",
        "num_heads": "num_attention_heads",
        "kv_lora_rank": "kv_lora_rank",
        "rope_dim": "qk_rope_head_dim",
        "nope_dim": "qk_nope_head_dim",
        "v_head_dim": "v_head_dim",
    },
    DeltaShape: {
        "hidden_size": "hidden_size",
        "num_key_heads": "linear_num_key_heads",
        "num_value_heads": "linear_num_value_heads",
        "key_dim": "linear_key_head_dim",
        "value_dim": "linear_value_head_dim",
        "kernel": "linear_conv_kernel_dim",
    },
    SsmShape: {
        "hidden_size": "hidden_size",
        "num_heads": "mamba_num_heads",
        "head_dim": "mamba_head_dim",
        "state_size": "ssm_state_size",
        "num_groups": "n_groups",
        "kernel": "conv_kernel",
    },
    ConvolutionShape: {"hidden_size": "hidden_size", "kernel": "conv_L_cache"},
}

#: Other spellings of the same facts.
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    **ALIASES,
    "mamba_num_heads": ("mamba_num_heads", "mamba_n_heads"),
    "mamba_head_dim": ("mamba_head_dim", "mamba_d_head"),
    "ssm_state_size": ("ssm_state_size", "mamba_d_state"),
    "n_groups": ("n_groups", "mamba_n_groups"),
    "conv_kernel": ("conv_kernel", "mamba_d_conv"),
}

_SHAPES: Mapping[Mechanism, type] = {
    Mechanism.ATTENTION: AttentionShape,
    Mechanism.LATENT_ATTENTION: LatentShape,
    Mechanism.GATED_DELTA_NET: DeltaShape,
    Mechanism.MAMBA2: SsmShape,
    Mechanism.SHORT_CONVOLUTION: ConvolutionShape,
}
_LAYERS: Mapping[type, Callable[[Any, np.random.Generator], Mixer]] = {
    AttentionShape: GroupedAttention,
    LatentShape: LatentAttention,
    DeltaShape: GatedDeltaNet,
    SsmShape: Mamba2,
    ConvolutionShape: ShortConvolution,
}

#: What a config of one layer says beside its shape: the type of a model that has such layers, and their word.
_ONE_LAYER: Mapping[type, Config] = {
    AttentionShape: {"model_type": "mistral"},
    LatentShape: {"model_type": "deepseek_v3"},
    DeltaShape: {"model_type": "qwen3_next", "layer_types": ["linear_attention"]},
    SsmShape: {"model_type": "nemotron_h", "hybrid_override_pattern": "M"},
    ConvolutionShape: {"model_type": "lfm2", "layer_types": ["conv"]},
}


def config_of(shape: Shape, dtype: str = "bfloat16") -> dict[str, Any]:
    """Return the config of a model of one layer of this shape, for ``kvgauge.size``.

    >>> config_of(ConvolutionShape(64, 3))["conv_L_cache"]
    3
    """
    words = WORDS[type(shape)]
    fields = {word: getattr(shape, name) for name, word in words.items()}
    heads = {"num_attention_heads": 1, "num_key_value_heads": fields.get("num_attention_heads", 1)}
    common = {"num_hidden_layers": 1, "torch_dtype": dtype, "max_position_embeddings": 1 << 20}
    return {**common, **heads, **_ONE_LAYER[type(shape)], **fields}


def layer_of(shape: Shape, rng: np.random.Generator) -> Mixer:
    """Return a layer of this shape with random weights."""
    return _LAYERS[type(shape)](shape, rng)


def shape_of(layer: LayerCache, config: Config) -> Shape | None:
    """Return the shape that a config (its text part) gives a layer; None where it keeps nothing.

    Raises:
        FeatureUnsupportedError: the lab has no layer of this mechanism.
        InvalidFieldError: a field that the layer needs is missing.
    """
    if layer.mechanism is Mechanism.NONE:
        return None
    found = _SHAPES.get(layer.mechanism)
    if found is None:
        known = ", ".join(mechanism.value for mechanism in _SHAPES)
        raise FeatureUnsupportedError(
            f"the lab has no layer of {layer.mechanism.value}", hint=f"it runs {known}", field="layer_types"
        )
    fields = {name: stated(config, word) for name, word in WORDS[found].items()}
    if found is AttentionShape:
        fields = _attention_fields(fields, layer)
    for name, value in fields.items():
        if not (_is_count(value) or (value is None and name == "window_tokens")):
            word = WORDS[found][name]
            raise InvalidFieldError(f"the lab needs {word} for layer {layer.index}", field=word)
    shape: Shape = found(**fields)
    if not shape.is_sound:
        raise FeatureUnsupportedError(
            f"the heads of layer {layer.index} do not share evenly, or have an odd width",
            hint="the lab runs the plain form of each mechanism",
        )
    return shape


def stated(config: Config, word: str) -> Any:  # noqa: ANN401 - a config holds anything
    """Return what a config says under any spelling of a word, or None.

    >>> stated({"n_embd": 768}, "hidden_size")
    768
    """
    found = (config.get(spelling) for spelling in SPELLINGS.get(word, (word,)))
    return next((value for value in found if value is not None), None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_FIELD


def _attention_fields(fields: Mapping[str, Any], layer: LayerCache) -> dict[str, Any]:
    """What a config may leave out; whether a layer has a window, its place in the stack says."""
    heads, hidden, width = fields["num_heads"], fields["hidden_size"], fields["head_dim"]
    if width is None and _is_count(heads) and _is_count(hidden):
        width = hidden // heads
    return {
        **fields,
        "num_kv_heads": heads if fields["num_kv_heads"] is None else fields["num_kv_heads"],
        "head_dim": width,
        "window_tokens": layer.window_tokens,
    }
