"""Which models a version of an engine loads: the class that a config names against ``engines.releases``.

An engine loads a class of its own; vLLM and SGLang load others through Transformers, where attention is all
that their layers keep; anything may come from a model's own code or a plugin. Only what the tables are sure
of costs a launch line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kvgauge.architecture import ModelArchitecture, Note
from kvgauge.engines import releases
from kvgauge.layers import STATE_KINDS, LayerKind

#: Engines with a way to load classes of Transformers -> the first release that has it.
_FALLBACK = {"vllm": "0.7.2", "sglang": "0.4.7"}
#: Layers that this way takes.
_PLAIN = frozenset({LayerKind.FULL, LayerKind.SLIDING, LayerKind.CHUNKED, LayerKind.SHARED, LayerKind.NONE})
#: vLLM's keeps latents as latents from here on; before, as keys and values of every head.
_LATENTS_SINCE = "0.28.0"
#: Engines whose classes the tables have.
KNOWN_ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")
_TABLES = (*KNOWN_ENGINES, "transformers")
#: Layers that it surely does not take, whatever the class.
_NEVER = STATE_KINDS | {LayerKind.CROSS}
#: How classes end that generate; of others, which engines rename, only what is in the table is told.
_ENDS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")
#: Codes of notes under which there is no launch line.
NOT_LOADED = frozenset({"engine_model_later", "engine_model_dropped", "engine_model_unknown"})
_LONGEST, _MOST = 80, 4


def classes_of(config: Mapping[str, object]) -> tuple[str, ...]:
    """Return the model classes that a config names; empty where it names none."""
    named = config.get("architectures")
    if not isinstance(named, (list, tuple)):
        return ()
    return tuple(name[:_LONGEST] for name in named[:_MOST] if isinstance(name, str) and name)


def model_notes(
    engine: str,
    version: str | None,
    classes: tuple[str, ...],
    architecture: ModelArchitecture,
    *,
    is_reduced: bool = False,
) -> Iterator[Note]:
    """Say where a version has no class of its own for a model.

    Args:
        classes: as the config names them; none say nothing.
        is_reduced: the config is a row of the catalogue, maybe misnamed where no engine knows it.
    """
    if not classes or engine not in KNOWN_ENGINES:
        return
    known = [releases.loads(engine, name, version) for name in classes]
    if True in known or None in known:
        return
    name = classes[0]
    if not name.endswith(_ENDS) and releases.model_span(engine, name) is None:
        return
    if is_reduced and not any(releases.model_span(known, name) for known in _TABLES):
        return
    code, release = _finding(engine, version, name, architecture)
    text = _TEXTS[code].format(engine=engine, version=version, model=name, release=release)
    values = (("engine", engine), ("version", version or ""), ("model", name), ("release", release))
    yield Note(code, "info" if code == "engine_model_fallback" else "warning", text, values)


_TEXTS = {
    "engine_model_fallback": "{engine} {version} has no class of its own for {model}: it runs Transformers'",
    "engine_model_later": "{engine} {version} does not load {model}: {release} and later do",
    "engine_model_dropped": "{engine} {version} does not load {model}: {release} was the last to do",
    "engine_model_unknown": (
        "{engine} {version} does not load {model}: it has no class of its own for it, and its way through "
        "Transformers takes decoders of attention alone"
    ),
    "engine_model_plugin": (
        "{engine} {version} has no class of its own for {model}: it starts with the model's own code, "
        "another backend or a plugin alone"
    ),
    "engine_model_unconverted": "{engine} {version} converts no {model}: a GGUF of it comes from elsewhere",
}


def _finding(engine: str, version: str | None, name: str, architecture: ModelArchitecture) -> tuple[str, str]:
    """Return the code of the note, and the release that it names."""
    span = releases.model_span(engine, name)
    if span is not None and span.since and releases.is_before(engine, version, span.since):
        return "engine_model_later", span.since  # nor had the Transformers of its day the class, as a rule
    if engine == "llama.cpp":
        return "engine_model_unconverted", ""
    kinds = {layer.kind for layer in architecture.layers}
    has_latents = engine == "vllm" and not releases.is_before(engine, version, _LATENTS_SINCE)
    is_plain = kinds <= (_PLAIN | {LayerKind.LATENT} if has_latents else _PLAIN)
    is_plain = is_plain and not architecture.is_encoder_decoder
    has_way = engine in _FALLBACK and not releases.is_before(engine, version, _FALLBACK[engine])
    if is_plain and has_way and releases.loads("transformers", name, None):
        return "engine_model_fallback", ""
    if span is not None:
        return "engine_model_dropped", span.until
    if engine in _FALLBACK and (kinds & _NEVER or architecture.is_encoder_decoder):
        return "engine_model_unknown", ""
    return "engine_model_plugin", ""


def is_loaded(notes: tuple[Note, ...]) -> bool:
    """Whether nothing in the notes of a request says that the engine does not load the model."""
    return not any(note.code in NOT_LOADED for note in notes)


__all__ = ["KNOWN_ENGINES", "NOT_LOADED", "classes_of", "is_loaded", "model_notes"]
