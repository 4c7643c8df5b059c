"""Stacks of layers as models have them: the pattern of a config, its widths divided so that it runs anywhere.

Layers, heads, groups and kernels stay as they are, so the ratios between models stay; a state, which is a
product of two widths, shrinks by the square of the divisor. MLPs and experts keep nothing of a sequence
and are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import kvgauge
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.held import HeldCache, held_bytes
from kvgauge.lab.mechanisms.pieces import rms_norm
from kvgauge.lab.mechanisms.shapes import Config, Mixer, Shape, layer_of, shape_of
from kvgauge.layers import LayerCache

#: The words of a config that are widths, which a scaled copy divides.
WIDTH_WORDS = frozenset({
    "hidden_size", "head_dim", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
    "linear_key_head_dim", "linear_value_head_dim", "mamba_head_dim", "ssm_state_size", "conv_dim",
})  # fmt: skip
#: Those that must stay even: their halves are turned by position.
_EVEN_WORDS = frozenset({"head_dim", "qk_rope_head_dim"})
_DIVISORS = (16, 8, 4, 2, 1)


def widths_of(config: Config) -> dict[str, int]:
    """Return the widths that a config states, its text part included.

    >>> widths_of({"head_dim": 128, "text_config": {"hidden_size": 2048}})
    {'head_dim': 128, 'hidden_size': 2048}
    """
    found: dict[str, int] = {}
    for word, value in config.items():
        if isinstance(value, Mapping) and word == "text_config":
            found |= widths_of(value)
        elif word in WIDTH_WORDS and isinstance(value, int) and value:
            found[word] = value
    return found


def divisor_of(config: Config) -> int:
    """Return the largest divisor, up to 16, that leaves every width whole and turned ones even."""
    widths = widths_of(config)
    for divisor in _DIVISORS:
        steps = {word: divisor * (2 if word in _EVEN_WORDS else 1) for word in widths}
        if all(width % steps[word] == 0 for word, width in widths.items()):
            return divisor
    return 1


def scaled(config: Config, divisor: int) -> dict[str, Any]:
    """Return a copy of a config whose widths are divided."""
    copy: dict[str, Any] = {}
    for word, value in config.items():
        if isinstance(value, Mapping) and word == "text_config":
            copy[word] = scaled(value, divisor)
        elif word in WIDTH_WORDS and isinstance(value, int):
            copy[word] = value // divisor
        else:
            copy[word] = value
    return copy


@dataclass(frozen=True)
class StackLayer:
    """One layer that keeps something: its place in the model, its shape, and the layer itself."""

    index: int
    shape: Shape
    mixer: Mixer


@dataclass(frozen=True)
class Stack:
    """The layers of a model that keep something, in order.

    Args:
        num_layers: all layers of the model, those that keep nothing included.
    """

    layers: tuple[StackLayer, ...]
    num_layers: int
    hidden_size: int

    @property
    def counts(self) -> dict[str, int]:
        """How many layers of each word, in the order they first appear; ``none`` for the others."""
        counts = dict(Counter(layer.mixer.word for layer in self.layers))
        rest = self.num_layers - len(self.layers)
        return counts | ({"none": rest} if rest else {})

    def new_caches(self, dtype: str) -> list[HeldCache]:
        """Return what the layers hold before the first token."""
        return [layer.mixer.new_cache(dtype) for layer in self.layers]

    def forward(self, x: Floats, caches: list[HeldCache]) -> Floats:
        """Return the outputs of the next tokens, x (tokens, hidden): each layer adds to its input."""
        for layer, cache in zip(self.layers, caches, strict=True):
            x = x + layer.mixer.forward(rms_norm(x), cache)
        return x


def build_stack(config: Config, seed: int = 0) -> Stack:
    """Return the layers that a config describes, with random weights.

    Raises:
        KvgaugeError: the config can't be read, or has a layer that the lab does not run.
    """
    architecture = kvgauge.load(config).architecture
    text = config.get("text_config", config)
    rng = np.random.default_rng(seed)
    layers: list[StackLayer] = []
    for layer in architecture.layers:
        if layers and layers[-1].index == layer.index:
            raise FeatureUnsupportedError(
                f"layer {layer.index} has two caches", hint="the lab runs layers of one", field="layer_types"
            )
        shape = shape_of(layer, text)
        if shape is None:
            continue
        layers.append(StackLayer(layer.index, shape, layer_of(shape, rng)))
        _check_shape(layers[-1], layer)
    return Stack(tuple(layers), architecture.num_layers, int(text["hidden_size"]))


def _check_shape(built: StackLayer, layer: LayerCache) -> None:
    """Refuse a layer that the core reads differently: other widths for K and V, an index, a shared cache."""
    cache = built.mixer.new_cache("f32")
    built.mixer.forward(np.zeros((1, built.shape.hidden_size), np.float32), cache)
    kept = sum(stream.stored.size for stream in cache.streams)
    stated = sum(stream.elements for stream in layer.streams)
    if kept != stated:
        raise FeatureUnsupportedError(
            f"layer {built.index} keeps {stated} elements of a token, the lab's {built.mixer.word} {kept}",
            hint="the lab runs the plain form of each mechanism",
            field="layer_types",
        )


def run_stack(stack: Stack, num_tokens: int, dtype: str, seed: int = 1) -> tuple[list[HeldCache], Floats]:
    """Run random tokens through a stack at once; return what its layers hold, and the outputs."""
    x = np.random.default_rng(seed).standard_normal((num_tokens, stack.hidden_size)).astype(np.float32)
    caches = stack.new_caches(dtype)
    return caches, stack.forward(x, caches)


def run_stack_by_steps(stack: Stack, num_tokens: int, dtype: str, seed: int = 1) -> tuple[list[int], Floats]:
    """Run the same tokens one by one; return the bytes held after each, and the outputs."""
    x = np.random.default_rng(seed).standard_normal((num_tokens, stack.hidden_size)).astype(np.float32)
    caches = stack.new_caches(dtype)
    held, outputs = [], []
    for token in range(num_tokens):
        outputs.append(stack.forward(x[token : token + 1], caches))
        held.append(held_bytes(caches))
    return held, np.concatenate(outputs)
