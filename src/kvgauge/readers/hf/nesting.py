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
    model_type = _model_type(config)
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
        model_type = _model_type(inner) or fallback or model_type
        config = inner
    if not config:
        raise UnknownArchitectureError("the config is empty", hint="give a model's config.json")
    defaults = {**usable_defaults(view, model_type), **model_type_row(model_type).implied}
    return replace(view, class_defaults=defaults), model_type


def _model_type(config: Mapping[str, object]) -> str:
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
    return bool(inner) and not _describes_layers(outer) and (bool(_model_type(inner)) or name != "decoder")


def _describes_layers(config: Mapping[str, object]) -> bool:
    return any(config.get(alias) is not None for alias in ALIASES["num_hidden_layers"])


def usable_defaults(view: ConfigView, model_type: str) -> Mapping[str, object]:
    """Return the class defaults that may stand for omitted fields.

    Transformers writes a nested config without the fields that equal its class defaults. Such a file
    states no field at its default. A file that does spell defaults out is a full one: what it lacks is
    lost, not implied, and only what the class itself would derive may be filled in. A flat file is taken
    for an abbreviated one only where it bears the marks of a saved one (class name and dtype or version).
    """
    defaults = class_defaults(model_type)
    shape = {name: value for name, value in defaults.items() if name != "_text"}
    depth = () if view.path else ALIASES["num_hidden_layers"]  # a flat file states it in any case
    stated = [
        name
        for name, value in shape.items()
        if name in view.values
        and name not in _NOT_EVIDENCE
        and name not in depth
        and view.values[name] == value
        and isinstance(value, bool) == isinstance(view.values[name], bool)
    ]
    if stated:
        return {name: value for name, value in shape.items() if name in _ALWAYS}
    if not view.path or any(view.has(name) for name in _MAIN_SHAPES):
        # Depth is implied only where the whole shape of a nested part is; a flat file always states it.
        shape = {name: value for name, value in shape.items() if name not in ALIASES["num_hidden_layers"]}
    stamped = view.mentions("architectures") and any(view.mentions(mark) for mark in _MARKS)
    if not view.path and not stamped:
        return {name: value for name, value in shape.items() if name in _ALWAYS}
    return shape


_MAIN_SHAPES = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "kv_lora_rank")
_MARKS = ("transformers_version", "torch_dtype", "dtype")

#: Switches and patterns that the class applies to full files too: they postdate many published files.
_ALWAYS = frozenset(
    {
        "multi_query", "no_rope_layer_interval", "attention_chunk_size", "global_attn_every_n_layers",
        "max_window_layers", "use_sliding_window", "sliding_window_pattern", "attn_layer_period",
        "attn_layer_offset", "max_source_positions", "new_decoder_architecture", "layer_group_size",
    }
)  # fmt: skip
