"""What a config says of a decoder that runs here: Llama's kind, and Qwen3's, which norms queries and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvgauge.errors import FeatureUnsupportedError, InvalidFieldError, MissingFieldError
from kvgauge.lab.rope import Rope, read_rope
from kvgauge.readers.values import as_count, is_int

#: Model type -> whether queries and keys are normed.
KINDS: Mapping[str, bool] = {"llama": False, "qwen3": True}
_FIRST, _SECOND = KINDS
#: The most that any dimension may be.
MAX_COUNT = 1 << 24


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The shape of a decoder.

    Args:
        head_width: values of one head.
        intermediate: values between the matrices of the FFN.
        has_query_norm: queries and keys are normed, head by head.
        is_tied: the embedding is the head too.
        has_attention_bias, has_ffn_bias: the matrices of a part add something to what they make.
        end_ids: ids that end a text.
    """

    model_type: str
    num_layers: int
    hidden: int
    query_heads: int
    kv_heads: int
    head_width: int
    intermediate: int
    vocabulary: int
    norm_epsilon: float
    rope: Rope
    has_query_norm: bool
    is_tied: bool
    has_attention_bias: bool
    has_ffn_bias: bool
    max_tokens: int
    end_ids: tuple[int, ...] = ()


def read_config(config: Mapping[str, object]) -> DecoderConfig:
    """Read a ``config.json``.

    Raises:
        FeatureUnsupportedError: another architecture, or a part of one that is not run here.
        MissingFieldError, InvalidFieldError: a field that it can't do without.
    """
    model_type = config.get("model_type")
    if model_type not in KINDS:
        raise FeatureUnsupportedError(
            f"the decoder here runs models of the types {_FIRST} and {_SECOND}, not {model_type}",
            hint="kvgauge size and explain answer for the others",
            field="model_type",
        )
    _refuse(config)
    hidden, heads = _count(config, "hidden_size"), _count(config, "num_attention_heads")
    kv_heads = _count(config, "num_key_value_heads", heads)
    width = _count(config, "head_dim", max(1, hidden // heads))
    if heads % kv_heads or width % 2:
        raise InvalidFieldError(
            f"{heads} query heads of width {width} and {kv_heads} KV heads do not go together",
            hint="query heads are a multiple of KV heads, widths are even",
            field="num_key_value_heads",
        )
    return DecoderConfig(
        model_type=str(model_type),
        num_layers=_count(config, "num_hidden_layers"),
        hidden=hidden,
        query_heads=heads,
        kv_heads=kv_heads,
        head_width=width,
        intermediate=_count(config, "intermediate_size"),
        vocabulary=_count(config, "vocab_size"),
        norm_epsilon=_epsilon(config.get("rms_norm_eps", 1e-6)),
        rope=read_rope(config),
        has_query_norm=KINDS[str(model_type)],
        is_tied=config.get("tie_word_embeddings", False) is True,
        has_attention_bias=config.get("attention_bias", False) is True,
        has_ffn_bias=model_type == _FIRST and config.get("mlp_bias", False) is True,
        max_tokens=_count(config, "max_position_embeddings", 2048),
        end_ids=_end_ids(config.get("eos_token_id")),
    )


def _refuse(config: Mapping[str, object]) -> None:
    """Refuse what would change the numbers and is not run here."""
    if config.get("hidden_act", "silu") != "silu":
        raise FeatureUnsupportedError(
            f"the activation function {config['hidden_act']} is not run here",
            hint="silu is",
            field="hidden_act",
        )
    if config.get("use_sliding_window"):
        raise FeatureUnsupportedError(
            "the decoder here runs no sliding windows",
            hint="kvgauge size answers for them",
            field="use_sliding_window",
        )
    if config.get("quantization_config"):
        raise FeatureUnsupportedError(
            "the decoder here runs no quantised weights",
            hint="give a folder of weights in 16 or 32 bit",
            field="quantization_config",
        )


def _count(config: Mapping[str, object], name: str, default: int | None = None) -> int:
    value = config.get(name)
    if value is None:
        value = default
    if value is None:
        raise MissingFieldError(f"the config has no {name}", hint="give the model's whole config", field=name)
    return as_count(value, name, low=1, high=MAX_COUNT)


def _epsilon(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise InvalidFieldError(
            "rms_norm_eps is no small number", hint="see the model's page", field="rms_norm_eps"
        )
    return float(value)


def _end_ids(value: object) -> tuple[int, ...]:
    ids = value if isinstance(value, list) else [value]
    return tuple(one for one in ids if is_int(one))
