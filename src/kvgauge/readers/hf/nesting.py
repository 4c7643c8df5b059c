"""Find the language model inside a config: flat, nested, or nested twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.errors import UnknownArchitectureError
from kvgauge.readers.hf.config import ALIASES, ConfigView, ReadLog
from kvgauge.readers.hf.rows import class_defaults, model_type_of_class, model_type_row

#: Keys under which composite models keep their language model, outermost first.
NESTS = ("thinker_config", "text_config", "llm_config", "llm_cfg", "language_config", "language_model",
         "language", "text_model", "decoder")  # fmt: skip

_OTHER_NESTS = ("vision_config", "audio_config", "encoder")
MAX_NESTS = 4

#: A full file spells these out; one that states any of them at its class default is not an abbreviated one.
_NOT_EVIDENCE = frozenset({"model_type", "attention_dropout", "max_position_embeddings"})


def language_view(config: Mapping[str, object], log: ReadLog) -> tuple[ConfigView, str]:
    """Return the view of the language model and its model type.

    Raises:
        UnknownArchitectureError: the config is not about a language model at all.
    """
    view = ConfigView(config, log)
    model_type = stated_model_type(config)
    for _ in range(MAX_NESTS):
        name = next(
            (n for n in NESTS if isinstance(config.get(n), Mapping) and _is_model(config[n], n, config)), None
        )
        if name is None:
            break
        inner = config[name]
        assert isinstance(inner, Mapping)  # noqa: S101 - narrowed above
        view = ConfigView(inner, log, f"{view.path}{name}.", (view, *view.outer))
        expected = class_defaults(model_type).get("_text")
        fallback = model_type_row(model_type).text or (expected if isinstance(expected, str) else "")
        model_type = stated_model_type(inner) or fallback or model_type
        config = inner
    if not config:
        raise UnknownArchitectureError("the config is empty", hint="give a model's config.json")
    defaults = {**usable_defaults(view, model_type), **model_type_row(model_type).implied}
    return replace(view, class_defaults=defaults), model_type


def stated_model_type(config: Mapping[str, object]) -> str:
    """Return the model type that a level names, or its class does; empty where neither."""
    value = config.get("model_type")
    if isinstance(value, str) and value and len(value) <= 100:
        return value
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    return model_type_of_class(name) if isinstance(name, str) and len(name) <= 100 else ""


def _is_model(inner: object, name: str, outer: Mapping[str, object]) -> bool:
    """A nest counts when it describes layers, names a model type, or the outside describes none."""
    if not isinstance(inner, Mapping):
        return False
    described = any(alias in inner for alias in ALIASES["num_hidden_layers"]) or any(
        key in inner for key in ("layer_types", "layers_block_type", "text_config")
    )
    if described:
        return True
    # A nest without layers may be an abbreviated one, unless the layers are described outside it.
    return (
        bool(inner) and not _describes_layers(outer) and (bool(stated_model_type(inner)) or name != "decoder")
    )


def _describes_layers(config: Mapping[str, object]) -> bool:
    return any(config.get(alias) is not None for alias in ALIASES["num_hidden_layers"])


def usable_defaults(view: ConfigView, model_type: str) -> Mapping[str, object]:
    """Return the class defaults that may stand for omitted fields.

    Transformers writes a nested config without the fields that equal its class defaults. A file that spells
    defaults out is a full one: what it lacks is lost, not implied, and only what the class itself applies to
    full files too may be filled in.
    """
    shape = _shape_defaults(model_type)
    if _is_implied_whole(view):
        return shape
    # Beside a part of the shape, depth is never implied; a flat file states it in any case.
    implied = {name: value for name, value in shape.items() if name not in ALIASES["num_hidden_layers"]}
    if _is_abbreviated(view, shape):
        return implied
    return {name: value for name, value in implied.items() if name in _ALWAYS}


def is_abbreviated(view: ConfigView, model_type: str) -> bool:
    """Whether a file leaves out what equals its class defaults, so that an absent size is the class's."""
    return _is_implied_whole(view) or _is_abbreviated(view, _shape_defaults(model_type))


def _shape_defaults(model_type: str) -> Mapping[str, object]:
    return {name: value for name, value in class_defaults(model_type).items() if name != "_text"}


def _is_implied_whole(view: ConfigView) -> bool:
    """Whether a part says next to nothing of its own shape, as in LLaVA."""
    return bool(view.path) and sum(not view.has(name) for name in _MAIN_SHAPES) > 1


def _is_abbreviated(view: ConfigView, shape: Mapping[str, object]) -> bool:
    """A flat file needs the marks of a saved one; older nested ones state some defaults but not the rest."""
    depth = () if view.path else ALIASES["num_hidden_layers"]
    spelled_out = any(_equals(view, name, value) for name, value in shape.items() if name not in depth)
    if view.path:
        missing = [name for name in _TELLTALES if name in shape and name not in view.values]
        return not spelled_out or len(missing) > 2
    stamped = view.mentions("architectures") and any(view.mentions(mark) for mark in _MARKS)
    return stamped and not spelled_out


def _equals(view: ConfigView, name: str, value: object) -> bool:
    stated = view.values.get(name)
    same_type = isinstance(value, bool) == isinstance(stated, bool)
    return name in view.values and name not in _NOT_EVIDENCE and stated == value and same_type


_MAIN_SHAPES = ("num_hidden_layers", "hidden_size", "num_attention_heads")
_TELLTALES = (
    "hidden_act", "hidden_activation", "rms_norm_eps", "layer_norm_eps", "attention_bias", "mlp_bias",
    "tie_word_embeddings", "intermediate_size", "vocab_size",
)  # fmt: skip
_MARKS = ("transformers_version", "torch_dtype", "dtype")

#: Switches and patterns that the class applies to full files too: they postdate many published files.
_ALWAYS = frozenset(
    {
        "multi_query", "no_rope_layer_interval", "attention_chunk_size", "global_attn_every_n_layers",
        "max_window_layers", "use_sliding_window", "sliding_window_pattern", "attn_layer_period",
        "attn_layer_offset", "max_source_positions", "new_decoder_architecture", "layer_group_size",
    }
)  # fmt: skip
