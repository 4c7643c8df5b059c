"""A copy of a config whose widths are divided, so that its layers run anywhere.

Layers, heads, groups and kernels stay as they are, so the ratios between models stay; a state, which is a
product of two widths, shrinks by the square of the divisor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kvgauge.architecture import ModelArchitecture
from kvgauge.lab.mechanisms.shapes import SPELLINGS, Config, stated

#: The words of a config that are widths.
WIDTH_WORDS = frozenset({
    "hidden_size", "head_dim", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
    "linear_key_head_dim", "linear_value_head_dim", "mamba_head_dim", "ssm_state_size", "conv_dim",
})  # fmt: skip
#: Those that must stay even: their halves are turned by position.
_EVEN_WORDS = frozenset({"head_dim", "qk_rope_head_dim"})
_SPELLED = frozenset(spelling for word in WIDTH_WORDS for spelling in SPELLINGS.get(word, (word,)))
_DIVISORS = (16, 8, 4, 2, 1)


def text_path(architecture: ModelArchitecture) -> tuple[str, ...]:
    """Return the keys under which a config keeps its language model: where fields of layers were found."""
    paths = Counter(
        source.rpartition(".")[0] for layer in architecture.layers for source in layer.sources[:1]
    )
    usual = paths.most_common(1)
    return tuple(usual[0][0].split(".")) if usual and usual[0][0] else ()


def text_part(config: Config, path: tuple[str, ...]) -> Config:
    """Return the part of a config under these keys.

    >>> text_part({"text_config": {"head_dim": 128}}, ("text_config",))
    {'head_dim': 128}
    """
    for key in path:
        config = config[key]
    return config


def divisor_of(text: Config) -> int:
    """Return the largest divisor, up to 16, that leaves every width whole and turned ones even.

    >>> divisor_of({"head_dim": 24, "hidden_size": 96})
    4
    """
    widths = {word: stated(text, word) for word in WIDTH_WORDS}
    heads = stated(text, "num_attention_heads")
    is_implied = widths["head_dim"] is None and widths["kv_lora_rank"] is None
    if is_implied and _is_width(widths["hidden_size"]) and _is_width(heads):
        widths["head_dim"] = widths["hidden_size"] // heads
    known = {word: width for word, width in widths.items() if _is_width(width)}
    for divisor in _DIVISORS:
        steps = {word: divisor * (2 if word in _EVEN_WORDS else 1) for word in known}
        if all(width % steps[word] == 0 for word, width in known.items()):
            return divisor
    return 1


def scaled(config: Config, divisor: int, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a copy of a config; the widths of the part under ``path`` are divided."""
    if path:
        inner = config[path[0]]
        return {**config, path[0]: scaled(inner if isinstance(inner, Mapping) else {}, divisor, path[1:])}
    return {
        word: value // divisor if word in _SPELLED and _is_width(value) else value
        for word, value in config.items()
    }


def _is_width(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
