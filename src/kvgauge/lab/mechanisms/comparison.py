"""The comparison of mechanisms and of models, by running them and counting what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

import kvgauge
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.lab.codes import Floats
from kvgauge.lab.mechanisms.attention import AttentionShape
from kvgauge.lab.mechanisms.convolution import ConvolutionShape
from kvgauge.lab.mechanisms.delta import DeltaShape, GatedDeltaNet
from kvgauge.lab.mechanisms.latent import LatentAttention, LatentShape
from kvgauge.lab.mechanisms.mamba2 import Mamba2, SsmShape
from kvgauge.lab.mechanisms.scaling import divisor_of, scaled, text_part, text_path
from kvgauge.lab.mechanisms.shapes import Mixer, Shape, config_of, layer_of
from kvgauge.lab.mechanisms.stacks import build_stack, run_stack_by_steps
from kvgauge.models import Model, ModelLike

MAX_TOKENS = 512

#: The four models of the source article, in the order of its tables.
ARTICLE_MODELS = (
    "Qwen/Qwen3-30B-A3B",
    "zai-org/GLM-4.7-Flash",
    "Qwen/Qwen3.5-35B-A3B",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
)

#: One layer of each mechanism, of one hidden size; the window is shorter than the default run.
SAMPLES: tuple[Shape, ...] = (
    AttentionShape(128, 8, 8, 16),
    AttentionShape(128, 8, 2, 16),
    AttentionShape(128, 8, 1, 16),
    AttentionShape(128, 8, 2, 16, window_tokens=16),
    LatentShape(128, 8, kv_lora_rank=32, rope_dim=8, nope_dim=16, v_head_dim=16),
    DeltaShape(128, num_key_heads=4, num_value_heads=8, key_dim=16, value_dim=16, kernel=4),
    SsmShape(128, num_heads=8, head_dim=16, state_size=16, num_groups=2, kernel=4),
    ConvolutionShape(128, kernel=3),
)


@dataclass(frozen=True, slots=True)
class MechanismRow:
    """One layer, run token by token and all at once.

    Args:
        held_bytes: counted on its arrays after the last token.
        growth_bytes_per_token: what the last token added.
        fixed_bytes: held before the first token.
        core_bytes: what ``size`` computes for a model of this one layer.
        num_contexts_equal: at how many of the contexts 1 to ``num_tokens`` counted and computed agree.
        difference: largest difference between outputs by steps and by the whole, relative to the largest
            output; float32 throughout.
        absorbed_difference: the same between the two forms of latent attention, None elsewhere.
    """

    word: str
    num_tokens: int
    held_bytes: int
    growth_bytes_per_token: int
    fixed_bytes: int
    core_bytes: int
    num_contexts_equal: int
    difference: float
    absorbed_difference: float | None

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class StackRow:
    """One model: its pattern run with divided widths, and its true sizes beside.

    Args:
        layers: how many layers of each word; ``none`` keep nothing.
        divisor: what widths were divided by.
        held_bytes, growth_bytes_per_token, fixed_bytes, core_bytes, num_contexts_equal: of the divided
            model, as in ``MechanismRow``; ``core_bytes`` is ``size`` of the divided config.
        context_tokens, cache_bytes, state_bytes, cache_bytes_per_token: of the true model: what grows, what
            does not, and the slope.
        cache_ratio, kept_ratio: to the first model, without and with what does not grow.
    """

    model: str
    layers: dict[str, int]
    divisor: int
    num_tokens: int
    held_bytes: int
    growth_bytes_per_token: int
    fixed_bytes: int
    core_bytes: int
    num_contexts_equal: int
    context_tokens: int
    cache_bytes: int
    state_bytes: int
    cache_bytes_per_token: Fraction
    cache_ratio: float
    kept_ratio: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        slope = self.cache_bytes_per_token
        number = slope.numerator if slope.denominator == 1 else float(slope)
        return {**{name: getattr(self, name) for name in self.__slots__}, "cache_bytes_per_token": number}


def run_mechanism(shape: Shape, num_tokens: int, dtype: str = "bf16", seed: int = 0) -> MechanismRow:
    """Run one layer and hold what it counts against what the core computes.

    Raises:
        InvalidRequestError: ``num_tokens`` is out of range.
    """
    check_tokens(num_tokens)
    rng = np.random.default_rng(seed)
    layer = layer_of(shape, rng)
    x = rng.standard_normal((num_tokens, shape.hidden_size)).astype(np.float32)
    held = _held_by_steps(layer, x, dtype)
    answer = kvgauge.size(config_of(shape, dtype), context=num_tokens, no_weights=True).cache
    equal = sum(answer.bytes_at(tokens) == counted for tokens, counted in enumerate(held))
    return MechanismRow(
        layer.word,
        num_tokens,
        held[-1],
        held[-1] - held[-2],
        held[0],
        answer.total_bytes,
        equal - (answer.bytes_at(0) == held[0]),
        _form_difference(layer, x),
        _absorbed_difference(layer, x) if isinstance(layer, LatentAttention) else None,
    )


def check_tokens(num_tokens: int) -> None:
    """Refuse a number of tokens that would run for long, or not at all.

    Raises:
        InvalidRequestError: it is not from 1 to ``MAX_TOKENS``.
    """
    if not 1 <= num_tokens <= MAX_TOKENS:
        raise InvalidRequestError(
            f"the lab runs 1 to {MAX_TOKENS} tokens, not {num_tokens}",
            hint="bytes are exact at any length: kvgauge size",
            field="tokens",
        )


def _held_by_steps(layer: Mixer, x: Floats, dtype: str) -> list[int]:
    """Bytes held before the first token and after each."""
    cache = layer.new_cache(dtype)
    held = [cache.num_bytes]
    for token in range(len(x)):
        layer.forward(x[token : token + 1], cache)
        held.append(cache.num_bytes)
    return held


def _form_difference(layer: Mixer, x: Floats) -> float:
    """How far outputs one token at a time are from those of all tokens at once."""
    step = layer.forward
    if isinstance(layer, GatedDeltaNet | Mamba2):
        step = partial(layer.forward, chunk_tokens=0)
    cache = layer.new_cache("f32")
    stepped = np.concatenate([step(x[token : token + 1], cache) for token in range(len(x))])
    return relative_difference(stepped, layer.forward(x, layer.new_cache("f32")))


def _absorbed_difference(layer: LatentAttention, x: Floats) -> float:
    outputs = [layer.forward(x, layer.new_cache("f32"), absorbed=absorbed) for absorbed in (False, True)]
    return relative_difference(*outputs)


def relative_difference(a: Floats, b: Floats) -> float:
    """Return the largest difference of two arrays over the largest value of the first."""
    return float(np.abs(a - b).max() / max(np.abs(a).max(), np.finfo(np.float32).tiny))


def run_models(
    models: Sequence[ModelLike] = ARTICLE_MODELS,
    *,
    num_tokens: int = 8,
    context: int = 32_768,
    offline: bool = False,
) -> list[StackRow]:
    """Run the pattern of each model with divided widths, and size it as it is, at one context.

    Raises:
        KvgaugeError: a model can't be found or read, has layers that the lab does not run, or
            ``num_tokens`` is out of range.
    """
    check_tokens(num_tokens)
    rows: list[StackRow] = []
    for model in models:
        loaded = kvgauge.load(model, offline=offline)
        rows.append(_run_model(loaded, num_tokens, context, rows[0] if rows else None))
    return rows


def _run_model(loaded: Model, num_tokens: int, context: int, base: StackRow | None) -> StackRow:
    config, path = loaded.raw.config, text_path(loaded.architecture)
    if "general.architecture" in config:
        raise FeatureUnsupportedError(
            "the lab reads the config of a model, not its GGUF", hint="name the model on the hub"
        )
    divisor = divisor_of(text_part(config, path))
    small = scaled(config, divisor, path)
    stack = build_stack(small)
    held, _ = run_stack_by_steps(stack, num_tokens, "bf16")
    fixed = sum(cache.num_bytes for cache in stack.new_caches("bf16"))
    answer = kvgauge.size(small, context=num_tokens, kv_dtype="bf16", no_weights=True).cache
    true = kvgauge.size(loaded, context=context, kv_dtype="bf16", no_weights=True).cache
    state = true.fixed_bytes_per_sequence
    grown = true.bytes_per_sequence - state
    return StackRow(
        model=loaded.raw.id,
        layers=stack.counts,
        divisor=divisor,
        num_tokens=num_tokens,
        held_bytes=held[-1],
        growth_bytes_per_token=held[-1] - (held[-2] if num_tokens > 1 else fixed),
        fixed_bytes=fixed,
        core_bytes=answer.total_bytes,
        num_contexts_equal=sum(answer.bytes_at(n) == counted for n, counted in enumerate(held, 1)),
        context_tokens=true.workload.context_tokens,
        cache_bytes=grown,
        state_bytes=state,
        cache_bytes_per_token=true.growth_bytes_per_token,
        cache_ratio=grown / base.cache_bytes if base and base.cache_bytes else 1.0,
        kept_ratio=(grown + state) / (base.cache_bytes + base.state_bytes) if base else 1.0,
    )
