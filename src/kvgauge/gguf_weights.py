"""The weights of a GGUF: from its tensor table, else from its metadata in the mix that it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from kvgauge.engines.llamacpp_weights import GgufLayout
from kvgauge.errors import KvgaugeError
from kvgauge.ggml_mixes import ALIGN_BYTES, MixModel, ggml_format, mix_of_file_type, price_mix
from kvgauge.readers.gguf.tensor_tables import tensor_block, tensor_block_names, tensor_row
from kvgauge.readers.gguf.tensors import read_tensors
from kvgauge.readers.values import MAX_LAYERS, is_int
from kvgauge.sources.gguf import Tensor
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weights import ModelWeights, Part, TensorFamily

_LAYER = re.compile(r"^((?:enc\.|dec\.)?blk\.)(\d{1,6})\.")
_OLD_EXPERT = re.compile(r"^(blk\.\{layer\}\.ffn_(?:gate|up|down))\.(\d{1,6})\.(weight|bias)$")
_STACKED = re.compile(r"_exps\.(?:weight|bias|scale|input_scale)$")
_MAX_ALIGNMENT = 1 << 20


def gguf_layout(metadata: Mapping[str, object]) -> GgufLayout:
    """Return the layout of a model; one block where the metadata does not count them."""
    row = tensor_row(_architecture(metadata))
    blocks = _own_number(metadata, "block_count", high=MAX_LAYERS) or 1
    return GgufLayout(blocks, row.head if row else True, row.twice if row else False)


def gguf_weights(
    metadata: Mapping[str, object], tensors: Iterable[Tensor] = (), mix: str | None = None
) -> StoredWeights | None:
    """Return the weights of a GGUF, or None where neither tensors nor metadata tell.

    Args:
        metadata: whole keys and values.
        tensors: the tensor table, of all files of a split set.
        mix: price the model in this mix instead of what the file has.

    Raises:
        MissingFieldError, InvalidFieldError, FeatureUnsupportedError: the metadata can't be understood, or
            there is no such mix.
    """
    table = tuple(tensors)
    if mix is not None:
        weights = gguf_families(metadata, table)
        return None if weights is None else price_mix(weights, mix, mix_model(metadata))
    if table:
        return stored_from_gguf(table, metadata)
    number = metadata.get("general.file_type")
    name = mix_of_file_type(number) if is_int(number) else None
    return None if name is None else mix_of_metadata(metadata, name)


def gguf_families(metadata: Mapping[str, object], tensors: Iterable[Tensor] = ()) -> ModelWeights | None:
    """Return the tensor families of a GGUF: those of its table, else what its metadata implies.

    Raises:
        MissingFieldError, InvalidFieldError: there is no table, and the metadata can't be understood.
    """
    table = tuple(tensors)
    if not table:
        return read_tensors(metadata)
    stored = stored_from_gguf(table, metadata)
    families, mtp = (tuple(s.family for s in own) for own in (stored.families, stored.mtp_families))
    return ModelWeights(_merged(families), _merged(mtp))


def _merged(families: Iterable[TensorFamily]) -> tuple[TensorFamily, ...]:
    """Return families of one name and shape as one, whatever types they had."""
    layers: dict[TensorFamily, tuple[int, ...]] = {}
    for family in families:
        bare = replace(family, layers=())
        layers[bare] = tuple(sorted({*layers.get(bare, ()), *family.layers}))
    return tuple(replace(bare, layers=own) for bare, own in layers.items())


def mix_of_metadata(
    metadata: Mapping[str, object], mix: str, *, tied: bool | None = None
) -> StoredWeights | None:
    """Return what a mix would weigh, or None where the tensors of the architecture are not known.

    Args:
        metadata: whole keys and values.
        mix: ``q4_k_m`` and so on.
        tied: whether the head is the embedding; see ``read_tensors``.

    >>> keys = {"general.architecture": "llama", "llama.block_count": 32, "llama.embedding_length": 4096,
    ...         "llama.feed_forward_length": 14336, "llama.attention.head_count": 32,
    ...         "llama.attention.head_count_kv": 8, "llama.vocab_size": 128256}
    >>> mix_of_metadata(keys, "Q4_K_M").num_bytes  # Llama 3.1 8B
    4912898048
    """
    weights = read_tensors(metadata, tied=tied)
    return None if weights is None else price_mix(weights, mix, mix_model(metadata))


def mix_model(metadata: Mapping[str, object]) -> MixModel:
    """Return what the choice of types asks of a model; block 0 speaks for the heads, as in llama-quantize."""
    heads = _own_number(metadata, "attention.head_count")
    stated = metadata.get(f"{_architecture(metadata)}.attention.head_count_kv")
    return MixModel(
        _architecture(metadata),
        _own_number(metadata, "block_count", high=MAX_LAYERS),
        _own_number(metadata, "nextn_predict_layers", high=MAX_LAYERS),
        _own_number(metadata, "expert_count"),
        heads,
        heads if stated is None else _own_number(metadata, "attention.head_count_kv"),
    )


def _architecture(metadata: Mapping[str, object]) -> str:
    name = metadata.get("general.architecture")
    return name if isinstance(name, str) else ""


def _own_number(metadata: Mapping[str, object], key: str, *, high: int = 1 << 32) -> int:
    """Return a number of the architecture's keys, of block 0 where it is a list; 0 where there is none."""
    value = metadata.get(f"{_architecture(metadata)}.{key}")
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return value if is_int(value) and 0 <= value <= high else 0


def stored_from_gguf(tensors: Iterable[Tensor], metadata: Mapping[str, object]) -> StoredWeights:
    """Return the weights that a tensor table describes.

    Args:
        tensors: of all files of a split set; shapes as in the file, fastest dimension first.
        metadata: whole keys and values.
    """
    table = tuple(tensors)
    parts = _parts(metadata)
    used = _own_number(metadata, "expert_used_count")
    nextn = _own_number(metadata, "nextn_predict_layers", high=MAX_LAYERS)
    trunk = _own_number(metadata, "block_count", high=MAX_LAYERS) - nextn
    groups: dict[tuple[str, tuple[int, ...], str, Part], list[tuple[int, int]]] = {}
    for tensor in table:
        name, layer, expert = _placed(tensor.name)
        extra = bool(nextn) and layer >= trunk > 0
        part = Part.MTP if extra else parts.get((name, layer)) or _part_of_name(name)
        key = (name, tuple(reversed(tensor.shape)), tensor.dtype, part)
        groups.setdefault(key, []).append((layer, expert))
    align = _alignment(metadata)
    families: list[StoredFamily] = []
    mtp: list[StoredFamily] = []
    for (name, shape, dtype, part), places in groups.items():
        for family in _families(name, shape, part, places, used):
            stored = StoredFamily(family, ggml_format(dtype), align_bytes=align)
            (mtp if part is Part.MTP else families).append(stored)
    plain = ModelWeights(tuple(stored.family for stored in families))
    return StoredWeights(
        tuple(families),
        tuple(mtp),
        source="gguf",
        num_parameters=plain.num_parameters,
        num_active_parameters=plain.num_active_parameters,
        scheme=_scheme(metadata, families),
    )


def _placed(name: str) -> tuple[str, int, int]:
    """Return a tensor's name template, its block and its expert; -1 where it has none."""
    layer = expert = -1
    if found := _LAYER.match(name):
        name, layer = f"{found[1]}{{layer}}.{name[found.end() :]}", int(found[2])
    if found := _OLD_EXPERT.match(name):
        name, expert = f"{found[1]}.{{expert}}.{found[3]}", int(found[2])
    return name, layer, expert


def _families(
    name: str, shape: tuple[int, ...], part: Part, places: list[tuple[int, int]], used: int
) -> list[TensorFamily]:
    """Return the families of tensors of one name and shape; blocks with as many experts make one."""
    if "{expert}" not in name:
        layers = tuple(sorted({layer for layer, _ in places if layer >= 0}))
        if _STACKED.search(name) and len(shape) > 1:
            count = shape[0]
            return [
                TensorFamily(
                    name,
                    shape[1:],
                    part,
                    layers=layers,
                    num_experts=count,
                    num_active_experts=min(used, count),
                    stacked=True,
                )
            ]
        return [TensorFamily(name, shape, part, layers=layers)]
    by_layer: dict[int, int] = {}
    for layer, _ in places:
        by_layer[layer] = by_layer.get(layer, 0) + 1
    by_count: dict[int, list[int]] = {}
    for layer, count in sorted(by_layer.items()):
        by_count.setdefault(count, []).append(layer)
    return [
        TensorFamily(
            name, shape, part, layers=tuple(layers), num_experts=count, num_active_experts=min(used, count)
        )
        for count, layers in by_count.items()
    ]


def _parts(metadata: Mapping[str, object]) -> Mapping[tuple[str, int], Part]:
    """Return (name, block) -> part as the architecture has them; nothing where its tensors are not known."""
    try:
        weights = read_tensors(metadata)
    except KvgaugeError:
        return {}
    families = () if weights is None else weights.families
    return {(family.name, layer): family.part for family in families for layer in family.layers or (-1,)}


@lru_cache(maxsize=1)
def _known_parts() -> Mapping[str, Part]:
    """Return name -> part over all mechanisms; the first that has the name says."""
    found: dict[str, Part] = {}
    for block in tensor_block_names():
        for line in tensor_block(block).tensors:
            found.setdefault(line.name.removesuffix("[expert]"), line.part)
    return found


def _part_of_name(name: str) -> Part:
    stem = name.replace(".{expert}", "_exps")
    for suffix in ("", ".bias", ".scale", ".input_scale"):
        own = stem.removesuffix(suffix) + ".weight" if suffix and stem.endswith(suffix) else stem
        if own in _known_parts():
            found = _known_parts()[own]
            return Part.OTHER if found is Part.MTP else found  # only blocks at the end are of it
    return Part.NORM if "_norm" in name else Part.OTHER


def _alignment(metadata: Mapping[str, object]) -> int:
    stated = metadata.get("general.alignment")
    return stated if is_int(stated) and 1 <= stated <= _MAX_ALIGNMENT else ALIGN_BYTES


def _scheme(metadata: Mapping[str, object], families: list[StoredFamily]) -> str:
    """Return the mix that the file names, else the type that most bytes have."""
    number = metadata.get("general.file_type")
    named = mix_of_file_type(number) if is_int(number) else None
    if named is not None:
        return named
    sizes: dict[str, int] = {}
    for stored in families:
        sizes[stored.format.name] = sizes.get(stored.format.name, 0) + stored.num_bytes
    return max(sizes, key=lambda name: sizes[name], default="")


__all__ = [
    "GgufLayout",
    "gguf_families",
    "gguf_layout",
    "gguf_weights",
    "mix_model",
    "mix_of_metadata",
    "stored_from_gguf",
]
