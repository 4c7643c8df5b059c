"""Windows, chunks and default patterns that live in a model's code and not in its file."""

from __future__ import annotations

from kvgauge.readers.hf.config import ConfigView
from kvgauge.readers.hf.rows import LayerCycle, ModelTypeRow
from kvgauge.readers.hf.signatures import SIGNATURES
from kvgauge.readers.hf.words import cut, periodic, word_of
from kvgauge.readers.values import MAX_LAYERS, MAX_WINDOW, as_count, is_int


def words_from_code(view: ConfigView, row: ModelTypeRow, count: int) -> tuple[tuple[str, ...], str]:
    """Windows, chunks and default patterns that no list in the file spells out."""
    rope_listed = view.mentions("no_rope_layers") or view.has("no_rope_layer_interval")
    if view.find("attention_chunk_size") is not None and (row.chunked or rope_listed):
        return _rope_pattern(view, count, "chunked", "full"), "attention_chunk_size"
    window = window_tokens(view, row)
    if window is None:
        return _windowless(view, row, count)
    for name in ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"):
        if view.has(name):
            return window_pattern(view, name, count), view.sources(name)[0]
    if row.layers is not None:
        return _cycled(row.layers, count, windows=True), f"model code of {row.model_type}"
    if not (row.window_everywhere or rope_listed or view.has("use_sliding_window")):
        raise view.missing("layer_types", f"says which layers slide (sliding_window is {window})")
    return _windowed(view, count, rope_listed=rope_listed)


def _windowed(view: ConfigView, count: int, *, rope_listed: bool) -> tuple[tuple[str, ...], str]:
    """A window without a pattern: where rope is missing, from a switch's layer on, or everywhere."""
    if rope_listed:
        return _rope_pattern(view, count, "full", "sliding"), "no_rope_layers"
    if view.has("use_sliding_window"):
        return _switched(view, count), view.path + "use_sliding_window"
    return ("sliding",) * count, view.path + "sliding_window"


def _windowless(view: ConfigView, row: ModelTypeRow, count: int) -> tuple[tuple[str, ...], str]:
    """No window in force: what model code says, else every layer alike."""
    pattern = view.find("sliding_window_pattern")
    unswitched = view.find("use_sliding_window") is None and not row.window_unused
    if pattern is not None and unswitched and row.switch_default and view.find("sliding_window") is None:
        raise view.missing("sliding_window", f"{pattern[0]} goes with")
    if row.layers is not None:
        return _cycled(row.layers, count, windows=False), f"model code of {row.model_type}"
    if not row.known:
        _refuse_unplaced_state(view)
    return (row.layer_word or "full",) * count, ""


def _refuse_unplaced_state(view: ConfigView) -> None:
    """An unknown design with the geometry of a recurrence must say which layers are recurrent."""
    for names, _ in SIGNATURES:
        if all(view.find(name) is not None for name in names):
            raise view.missing("layer_types", f"says which layers {names[0]} belongs to")


def _cycled(rule: LayerCycle, count: int, *, windows: bool) -> tuple[str, ...]:
    words = [rule.words[i % len(rule.words)] for i in range(count)]
    if not windows:
        words = ["full" if word == "sliding" else word for word in words]
    for index in rule.also_full:
        if -count <= index < count:
            words[index] = "full"
    return tuple(words)


def _rope_pattern(view: ConfigView, count: int, with_rope: str, without: str) -> tuple[str, ...]:
    """Llama 4 and SmolLM3: layers with rope and layers without; an empty list means the default."""
    rope = view.counts("no_rope_layers", high=1)
    if rope:
        words = tuple(with_rope if v else without for v in rope)
        return cut(words, count, view.path + "no_rope_layers").words
    interval = view.optional_count("no_rope_layer_interval", high=MAX_LAYERS) or 4
    return periodic(count, interval, (interval - 1,), without, with_rope)


def _switched(view: ConfigView, count: int) -> tuple[str, ...]:
    """Qwen2 and Qwen3: layers from max_window_layers on slide."""
    start = view.optional_count("max_window_layers", low=0, high=MAX_LAYERS)
    if start is None:
        raise view.missing("max_window_layers", "says from which layer on windows slide")
    return tuple("sliding" if i >= start else "full" for i in range(count))


def window_pattern(view: ConfigView, name: str, count: int) -> tuple[str, ...]:
    """Read a window pattern given as a period, as letters ("LLLG") or as a list.

    A period of N: every Nth layer is full. Letters and lists are repeated as needed; in lists of
    numbers or truth values a true entry slides.
    """
    found = view.find(name)
    where, value = found if found else (name, None)
    if isinstance(value, str) and value and len(value) <= MAX_LAYERS:
        letters = [word_of(letter, where) for letter in value]
        return tuple(letters[i % len(letters)] for i in range(count))
    if isinstance(value, list | tuple) and value:
        entries = [_pattern_entry(v, f"{where}[{i}]") for i, v in enumerate(value[:MAX_LAYERS])]
        return tuple(entries[i % len(entries)] for i in range(count))
    period = as_count(value, where, low=0, high=MAX_LAYERS)
    if period == 0:
        return ("full",) * count
    return periodic(count, period, (period - 1,), "full", "sliding")


def _pattern_entry(value: object, where: str) -> str:
    if isinstance(value, bool) or is_int(value):
        return "sliding" if value else "full"
    return word_of(value, where)


def window_tokens(view: ConfigView, row: ModelTypeRow) -> int | None:
    """Return the window in force, or None where windows are off.

    A number is a decoy where its switch is off (Qwen) or the model's code never reads it.
    """
    if row.window_unused or not view.flag("use_sliding_window", default=row.switch_default):
        return None
    found = view.find("sliding_window")
    if found is None or found[1] in (-1, 0, False):
        return None
    view.find("sliding_window_size")  # looked up to be recorded: engines may read it otherwise
    return as_count(found[1], found[0], low=1, high=MAX_WINDOW)
