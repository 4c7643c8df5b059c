"""What a tensor of a checkpoint is, by its name: part, cut over ranks, layer, expert, values or scales.

``data/tensor_names.json`` lists words of names, of any family: Hugging Face modules, the consolidated files
of Meta, Mistral and DeepSeek, the suffixes of GPTQ, AWQ, compressed-tensors, FP8, NVFP4, MXFP4, bitsandbytes
and MLX. Nothing there is about one model. A name that no row fits is of part ``other``.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from kvgauge.data import read_data
from kvgauge.weights import Part, WeightShard

#: Longer names are of no model; they are not looked at.
MAX_NAME = 512
_NUMBER = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
#: Template names remembered; a model has some hundred.
_MAX_TEMPLATES = 8192


class Kept(StrEnum):
    """What a tensor holds."""

    VALUES = "values"
    SCALES = "scales"
    PER_INPUT = "per_input"
    ONCE = "once"
    BUFFER = "buffer"


class TensorPlace(NamedTuple):
    """What a name says.

    Args:
        template: the name with ``{layer}`` and ``{expert}`` for their numbers.
        module: the template without its suffix: scales and values of one matrix share it.
        suffix: ``weight``, ``qweight``, ``weight_scale`` ...
        kept: what the tensor holds.
        shard: how the matrix, as (outputs, inputs), is cut; see ``kept`` for what goes with it.
        is_mtp: the words of a multi-token-prediction module.
    """

    template: str
    module: str
    suffix: str
    kept: Kept
    part: Part
    shard: WeightShard
    layer: int | None = None
    expert: int | None = None
    is_mtp: bool = False


def place_of(name: str) -> TensorPlace:
    """Return what a tensor is by its name.

    >>> place = place_of("model.layers.3.mlp.experts.17.down_proj.weight_scale_inv")
    >>> place.layer, place.expert, place.part.value, place.kept.value, place.shard.value
    (3, 17, 'experts', 'scales', 'row')
    """
    template, layer, expert = split_name(name)
    return place_of_template(template)._replace(layer=layer, expert=expert)


def split_name(name: str) -> tuple[str, int | None, int | None]:
    """Return a name's template, layer and expert.

    >>> split_name("layers.7.feed_forward.experts.2.w1.weight")
    ('layers.{layer}.feed_forward.experts.{expert}.w1.weight', 7, 2)
    """
    if len(name) > MAX_NAME:
        return name, None, None
    words = _words()
    layer = expert = None
    parts = name.split(".")
    for at in range(1, len(parts)):
        if not parts[at][:1].isdecimal() or not _NUMBER.fullmatch(parts[at]):
            continue
        if expert is None and words.experts.fullmatch(parts[at - 1]):
            expert, parts[at] = int(parts[at]), "{expert}"
        elif layer is None and words.layers.fullmatch(parts[at - 1]):
            layer, parts[at] = int(parts[at]), "{layer}"
    return ".".join(parts), layer, expert


@lru_cache(maxsize=_MAX_TEMPLATES)
def place_of_template(template: str) -> TensorPlace:
    """Return what a tensor is by its template; its layer and expert are for ``split_name`` to tell."""
    words = _words()
    suffix, kept = _suffix(template)
    module = template[: -len(suffix)].rstrip("._") if suffix else template
    part = _part(template)
    shard = _shard(part, module)
    if words.buffers.search(template):
        kept, shard = Kept.BUFFER, WeightShard.REPLICATED
    if suffix == "bias" and shard is WeightShard.ROW:
        shard = WeightShard.REPLICATED  # added after the sum over ranks
    mtp = words.mtp.search(template) is not None
    return TensorPlace(template, module or template, suffix, kept, part, shard, is_mtp=mtp)


def _part(template: str) -> Part:
    words = _words()
    if words.mixer_mlp.search(template):
        return Part.MLP
    return next((part for pattern, part in words.parts if pattern.search(template)), Part.OTHER)


def _shard(part: Part, module: str) -> WeightShard:
    last = module.rpartition(".")[2]
    for shard, parts, pattern in _words().shards:
        if part in parts and pattern.fullmatch(last):
            return shard
    return WeightShard.REPLICATED


def _suffix(template: str) -> tuple[str, Kept]:
    """Return the suffix that a name ends in, and what it means; a bare parameter has none.

    Parameters of stacked experts end in it after an underscore: ``experts.gate_up_proj_scales``.
    """
    if ".weight.quant_state." in template:
        return template[template.rindex("weight.quant_state.") :], Kept.ONCE
    suffixes = _words().suffixes
    _, _, last = template.rpartition(".")
    pair = ".".join(template.rsplit(".", 2)[-2:])
    for suffix in (pair, last):
        if suffix in suffixes and suffix != template:
            return suffix, suffixes[suffix]
    stacked = last.rpartition("proj_")[2]
    kept = suffixes.get(f"proj_{stacked}") if stacked != last else None
    return ("", Kept.VALUES) if kept is None else (stacked, kept)


class _Words(NamedTuple):
    layers: re.Pattern[str]
    experts: re.Pattern[str]
    mtp: re.Pattern[str]
    buffers: re.Pattern[str]
    mixer_mlp: re.Pattern[str]
    parts: tuple[tuple[re.Pattern[str], Part], ...]
    shards: tuple[tuple[WeightShard, frozenset[Part], re.Pattern[str]], ...]
    suffixes: dict[str, Kept]


@lru_cache(maxsize=1)
def _words() -> _Words:
    raw = json.loads(read_data("tensor_names.json"))
    return _Words(
        layers=re.compile(_any(raw["layers"])),
        experts=re.compile(_any(raw["experts"])),
        mtp=_component(raw["mtp"]),
        buffers=_component(raw["buffers"]),
        mixer_mlp=_component(raw["mixer_mlp"]),
        parts=tuple((_component(words), Part(part)) for part, words in raw["parts"]),
        shards=tuple(
            (WeightShard(shard), frozenset(map(Part, parts.split())), re.compile(_any(words)))
            for shard, parts, words in raw["shards"]
        ),
        suffixes={word: Kept(kept) for kept, words in raw["suffixes"] for word in words.split()},
    )


def _any(words: str) -> str:
    """Return an expression for any of the words; ``*`` stays within one component."""
    return "(?:" + "|".join(re.escape(word).replace(r"\*", "[^.]*") for word in words.split()) + ")"


def _component(words: str) -> re.Pattern[str]:
    """Return an expression that finds one of the words as whole components of a name."""
    own = [word for word in words.split() if not word.startswith("^")]
    first = [word[1:] for word in words.split() if word.startswith("^")]
    begins = [rf"(?:^|\.){_any(' '.join(own))}"] if own else []
    begins += [f"^{_any(' '.join(first))}"] if first else []
    return re.compile(f"(?:{'|'.join(begins)})(?=$|\\.)")
