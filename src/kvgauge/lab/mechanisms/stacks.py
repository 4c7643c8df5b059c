"""Stacks of layers as models have them. MLPs and experts keep nothing of a sequence and are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import kvgauge
from kvgauge.architecture import ModelArchitecture
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.held import HeldCache, held_bytes
from kvgauge.lab.mechanisms.pieces import rms_norm
from kvgauge.lab.mechanisms.scaling import text_part, text_path
from kvgauge.lab.mechanisms.shapes import Config, Mixer, Shape, layer_of, shape_of, stated
from kvgauge.layers import LayerCache

#: Numbers in the weights of all layers: what is drawn at random takes time and memory.
MAX_WEIGHTS = 1 << 27


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
    text = text_part(config, text_path(architecture))
    shapes = _shapes(architecture, text)
    total = sum(shape.num_weights for shape in shapes.values())
    if total > MAX_WEIGHTS:
        raise FeatureUnsupportedError(
            f"its layers have {total} weights with widths divided, too many to run here",
            hint=f"the lab runs up to {MAX_WEIGHTS}",
        )
    rng = np.random.default_rng(seed)
    layers = tuple(StackLayer(index, shape, layer_of(shape, rng)) for index, shape in shapes.items())
    for layer in architecture.layers:
        _check_shape(layer, layers)
    return Stack(layers, architecture.num_layers, _hidden_size(text))


def _hidden_size(text: Config) -> int:
    """What layers hand to each other; a model whose layers keep nothing need not say it."""
    hidden = stated(text, "hidden_size")
    return hidden if isinstance(hidden, int) else 0


def _shapes(architecture: ModelArchitecture, text: Config) -> dict[int, Shape]:
    """The shape of each layer that keeps something."""
    shapes: dict[int, Shape] = {}
    for layer in architecture.layers:
        if layer.index in shapes:
            raise FeatureUnsupportedError(
                f"layer {layer.index} has two caches", hint="the lab runs layers of one", field="layer_types"
            )
        shape = shape_of(layer, text)
        if shape is not None:
            shapes[layer.index] = shape
    return shapes


def _check_shape(layer: LayerCache, layers: Sequence[StackLayer]) -> None:
    """Refuse a layer that the core reads differently: other widths for K and V, an index, a shared cache."""
    built = next((each for each in layers if each.index == layer.index), None)
    if built is None:
        return
    kept = sum(stream.num_elements for stream in built.mixer.new_cache("f32").streams)
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
