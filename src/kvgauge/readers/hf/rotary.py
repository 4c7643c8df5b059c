"""Read the rotary embeddings of a config: how wide, for how many positions.

Engines that keep tables of cosines and sines hold them beside the weights; Llama-4-Scout's ten million
positions are 2.5 GiB on every rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvgauge.readers.hf.config import ConfigView, ReadLog
from kvgauge.readers.hf.mixers.latent import is_latent
from kvgauge.readers.hf.nesting import language_view
from kvgauge.readers.values import MAX_WINDOW
from kvgauge.weights import Rotary

#: Types whose classes rotate nothing: learned, sinusoidal, relative or no positions at all.
_WITHOUT = frozenset(
    {
        "bart", "biogpt", "bloom", "falcon_mamba", "gpt2", "gpt_bigcode", "jais", "jamba", "kimi_linear",
        "m2m_100", "mamba", "mamba2", "marian", "mbart", "mpt", "mt5", "nemotron_h", "nllb_moe", "opt",
        "pegasus", "rwkv", "rwkv5", "rwkv6", "rwkv7", "t5", "umt5", "whisper",
    }
)  # fmt: skip
#: Types that rotate where ``position_embedding_type`` says so, and half of a head.
_IF_ASKED = frozenset({"granitemoehybrid"})
_HALF = frozenset({"chatglm"})
#: Types whose positions have axes whether the file says so or not (copies lose ``mrope_section``).
_AXES = frozenset({"qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text"})
_FRACTIONS = ("partial_rotary_factor", "rotary_pct", "rotary_percent")
_MAX_FACTOR = 1 << 20
_MAX_BASE = 1e15
#: Kinds that stretch the positions they were trained for, stated or the model's own, by a factor.
_STRETCHED = frozenset({"linear", "yarn", "deepseek_yarn"})
#: Frequencies of sliding layers, or of layers that are not compressed.
_OTHER_BASES = ("rope_local_base_freq", "swa_rope_theta", "compress_rope_theta")
#: Types whose sliding layers have their own frequency, stated or not.
_LOCAL = frozenset({"gemma3", "gemma3_text", "gemma3n", "gemma3n_text"})
_LOCAL_BASE = 10_000.0
#: A kind that fills the part of a head it does not rotate with zeros.
_WHOLE = "proportional"


def read_rotary(config: Mapping[str, object]) -> tuple[Rotary, ...]:
    """Return the distinct rotary embeddings of the language model; none where its class has none.

    Raises:
        UnknownArchitectureError, InvalidFieldError: the config can't be understood.

    >>> config = {"model_type": "llama", "head_dim": 128, "max_position_embeddings": 8192}
    >>> [(each.width, each.positions) for each in read_rotary(config)]
    [(128, 8192)]
    """
    view, model_type = language_view(config, ReadLog())
    if not _rotates(view, model_type):
        return ()
    positions = view.optional_count("max_position_embeddings", high=MAX_WINDOW)
    width = _head_width(view)
    if positions is None or width is None:
        return ()
    parameters = _section(view, "rope_parameters") or _section(view, "rope_scaling")
    latent = is_latent(view) or view.has("compress_rope_theta")
    tables = []
    for layers, section in _by_layers(view, parameters):
        head = width if layers == "sliding" else _wide_head(view) or width
        table = _one(view, section, head, positions, half=model_type in _HALF)
        has_axes = table.sections or model_type in _AXES
        tables.append(table._replace(latent=latent, sections=has_axes))
    if len(tables) == 1:
        tables += _more(view, model_type, tables[0], positions)
    return tuple(dict.fromkeys(tables))


def _rotates(view: ConfigView, model_type: str) -> bool:
    if model_type in _WITHOUT or view.values.get("alibi") is True:
        return False
    return model_type not in _IF_ASKED or view.values.get("position_embedding_type") == "rope"


def _head_width(view: ConfigView) -> int | None:
    if is_latent(view) or view.has("compress_rope_theta"):
        return view.optional_count("qk_rope_head_dim", low=0) or None
    if (stated := view.optional_count("head_dim")) is not None:
        return stated
    hidden, heads = view.optional_count("hidden_size"), view.optional_count("num_attention_heads")
    return None if hidden is None or heads is None else hidden // heads or None


def _wide_head(view: ConfigView) -> int | None:
    """Return the head width of full layers, where it is another one."""
    return view.optional_count("global_head_dim")


def _section(view: ConfigView, name: str) -> ConfigView | None:
    value = view.values.get(name)
    if not isinstance(value, Mapping) or not value:
        return None
    return replace(view, values=value, path=f"{view.path}{name}.", class_defaults={})


def _by_layers(view: ConfigView, parameters: ConfigView | None) -> list[tuple[str, ConfigView | None]]:
    """Return (kind of layers, its parameters): two where full and sliding layers differ."""
    inner = {name: _section(parameters, name) for name in parameters.values} if parameters else {}
    sections: list[tuple[str, ConfigView | None]] = [
        ("sliding" if "sliding" in name else "full", section)
        for name, section in inner.items()
        if section is not None
    ]
    if sections:
        return sections[:4]
    full = [("full", parameters)]
    return [*full, ("sliding", parameters)] if _wide_head(view) else full


def _one(view: ConfigView, section: ConfigView | None, head: int, positions: int, *, half: bool) -> Rotary:
    own = section or replace(view, values={}, class_defaults={})
    kind = next((v for n in ("rope_type", "type") if isinstance(v := own.values.get(n), str)), "default")
    original = own.optional_count("original_max_position_embeddings", high=MAX_WINDOW)
    rows = positions
    if kind in _STRETCHED:
        rows = int((original or positions) * _number(own, "factor", 1.0, _MAX_FACTOR))
    return Rotary(
        head if kind == _WHOLE else _rotated(view, own, head, half=half),
        rows,
        kind,
        original or 0 if kind == "longrope" else 0,
        "mrope_section" in own.values,
        base=_number(own, "rope_theta", 0.0, _MAX_BASE) or _number(view, "rope_theta", 0.0, _MAX_BASE),
    )


def _rotated(view: ConfigView, section: ConfigView, head: int, *, half: bool) -> int:
    stated = view.optional_count("rotary_dim", high=head)
    if stated is not None:
        return stated
    if half:
        return head // 2
    for name in _FRACTIONS:
        for place in (section, view):
            if place.values.get(name) is not None:
                return int(head * min(1.0, _number(place, name, 1.0, 1.0)))
    return head


def _number(view: ConfigView, name: str, default: float, high: float) -> float:
    return _bounded(view.values.get(name), default, high)


def _bounded(value: object, default: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
        return default
    return float(value)


def _more(view: ConfigView, model_type: str, first: Rotary, positions: int) -> list[Rotary]:
    """Return what others have beside the first: layers of another frequency, and an indexer's halves."""
    found = [view.find(name) for name in _OTHER_BASES]
    bases = [base for each in found if each and (base := _bounded(each[1], 0.0, _MAX_BASE))]
    if not bases and model_type in _LOCAL:
        bases = [_LOCAL_BASE]
    more = [first._replace(kind="default", positions=positions, base=base) for base in bases[:1]]
    keeps_halves = view.values.get("indexer_rope_interleave") is not True
    if is_latent(view) and view.has("index_head_dim") and keeps_halves:
        more.append(first._replace(indexer=True))
    return more
