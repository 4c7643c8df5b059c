"""Weights from the tensors themselves: a checkpoint's headers as stored families, byte for byte.

Names say what a tensor is, the config's tensor families say it better where a name is theirs. Every tensor is
in exactly one family: the bytes of all families are the bytes of all tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

from kvgauge.architecture import Note
from kvgauge.checkpoint_bunches import Bunch, bunches_of, container_of, dims_of, stack_sizes
from kvgauge.config_tensors import ConfigTensors
from kvgauge.packed_tensors import BYTES, WORDS, Raw, num_elements
from kvgauge.readers.tensor_names import Kept, TensorPlace, place_of
from kvgauge.sources.safetensors import DTYPE_BITS, Checkpoint
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.tensor_orientation import oriented, whole_bytes
from kvgauge.weight_formats import WeightFormat
from kvgauge.weights import ModelWeights, Part, TensorFamily, WeightShard

#: Dtype words of the format -> canonical names; the others are shown as the format writes them.
_NAMES = {
    "F8_E4M3": "fp8_e4m3", "F8_E5M2": "fp8_e5m2", "F8_E4M3FNUZ": "fp8_e4m3", "F8_E5M2FNUZ": "fp8_e5m2",
    "F8_E8M0": "e8m0", "F6_E2M3": "fp6", "F6_E3M2": "fp6", "F4": "fp4", "I8": "int8", "U8": "uint8",
}  # fmt: skip
#: A checkpoint and its config differ when their parameters do by more than this part.
_TOLERANCE = 1000
_TOWERS = frozenset({Part.VISION, Part.AUDIO, Part.PROJECTOR})


class _Known(NamedTuple):
    """What is known of the whole checkpoint.

    Args:
        config: the config's families.
        num_layers: decoder layers; 0: not known.
        stacks: container of stacked experts -> how many.
        hidden: the hidden size, as a plain embedding has it; 0 where there is none.
        shared: the embedding that the stacks of an encoder-decoder share, or None.
    """

    config: ConfigTensors
    num_layers: int
    stacks: Mapping[str, int]
    hidden: int
    shared: Raw | None


class _Key(NamedTuple):
    """What tensors of one family have in common."""

    family: TensorFamily
    dtype: str
    is_mtp: bool
    is_duplicate: bool
    logical: int | None


def stored_from_checkpoint(
    checkpoint: Checkpoint,
    weights: ModelWeights | None = None,
    num_layers: int = 0,
    model_dtype: str = "bf16",
    num_kv_heads: int = 0,
) -> StoredWeights:
    """Return the weights that a checkpoint holds.

    Args:
        checkpoint: headers of all its files.
        weights: tensor families of its config, where the model type is known.
        num_layers: decoder layers as the config counts them; later ones predict tokens. 0: not known.
        model_dtype: named as the scheme of a checkpoint without tensors.
        num_kv_heads: heads that a cut keeps whole, where the families don't say; 0: not known, cut evenly.
    """
    bunches = bunches_of(checkpoint.tensors)
    config = ConfigTensors(weights, num_kv_heads)
    shared = dims_of(bunches, "shared.weight") or dims_of(bunches, "model.shared.weight")
    known = _Known(config, num_layers, stack_sizes(bunches), _hidden(bunches), shared)
    grouped = _grouped(bunches, known)
    main = [_stored(key) for key in grouped if not key.is_mtp]
    mtp = [_stored(key) for key in grouped if key.is_mtp]
    counted = _counted(main)
    stated = None if weights is None else weights.num_parameters
    notes = _differences(counted, stated)
    own = weights if weights is not None and not notes else None
    return StoredWeights(
        tuple(main),
        tuple(mtp),
        "safetensors",
        own.num_parameters if own is not None else counted or 0,
        own.num_active_parameters if own is not None else _active(main, config),
        _scheme(main) or model_dtype,
        (*(weights.notes if weights is not None else ()), *notes),
    )


def _placed(bunch: Bunch, known: _Known) -> tuple[TensorPlace, TensorFamily | None, bool]:
    """Return what a tensor is, the config's family of its matrix, and whether it predicts further tokens."""
    place = bunch.place
    family = known.config.family(place)
    if family is not None:
        if place.kept is Kept.BUFFER and family.num_elements == prod(bunch.raw.shape):
            place = place._replace(kept=Kept.VALUES)
        place = place._replace(part=family.part, shard=family.shard)
    elif place.shard is WeightShard.KV_HEADS and not known.config.kv_heads:
        place = place._replace(shard=WeightShard.COLUMN)
    if place.suffix == "bias" and len(bunch.raw.shape) > 2:  # the causal mask of GPT-2
        place = place._replace(kept=Kept.BUFFER, shard=WeightShard.REPLICATED)
    beyond = place.layer is not None and 0 < known.num_layers <= place.layer
    is_mtp = place.is_mtp or (beyond and not _is_elsewhere(place, family)) or known.config.is_mtp(place)
    return (place._replace(part=Part.MTP) if is_mtp else place), family, is_mtp


def _is_elsewhere(place: TensorPlace, family: TensorFamily | None) -> bool:
    """Whether a layer is counted in another stack than the decoder's."""
    listed = family is not None and place.layer in family.layers
    return listed or place.part in _TOWERS or "encoder" in place.template


def _grouped(bunches: Mapping[Bunch, int], known: _Known) -> list[_Key]:
    """Return the families; scales go first: what asks for a layer's width finds that of its values."""
    members: dict[_Key, dict[int | None, int]] = {}
    for bunch, count in bunches.items():
        by_layer = members.setdefault(_key(bunch, known), {})
        by_layer[bunch.place.layer] = by_layer.get(bunch.place.layer, 0) + count
    config = known.config
    families = [one for key, by_layer in members.items() for one in _split_by_count(key, by_layer, config)]
    return sorted(families, key=lambda key: key.logical != 0)


def _split_by_count(key: _Key, by_layer: Mapping[int | None, int], known: ConfigTensors) -> Iterator[_Key]:
    """Yield a family for each number of experts that its layers have."""
    for count, layers in _alike(by_layer).items():
        own = key.family.num_experts if key.family.stacked else 0
        experts = count if "{expert}" in key.family.name else own
        active = min(experts, known.active_experts)
        family = replace(key.family, layers=layers, num_experts=experts, num_active_experts=active)
        yield key._replace(family=family)


def _alike(by_layer: Mapping[int | None, int]) -> dict[int, tuple[int, ...]]:
    """Return number of tensors in a layer -> the layers that have so many."""
    alike: dict[int, list[int]] = {}
    for layer, count in by_layer.items():
        alike.setdefault(count, []).extend(() if layer is None else (layer,))
    return {count: tuple(sorted(layers)) for count, layers in alike.items()}


def _key(bunch: Bunch, known: _Known) -> _Key:
    """Return the family of a bunch, without its layers and experts."""
    place, family, is_mtp = _placed(bunch, known)
    tensors = dict(bunch.matrix)
    kept = _kept(place, tensors)
    stack = _stack(bunch, known)
    shape = bunch.raw.shape[1:] if stack else bunch.raw.shape
    wanted = None if family is None or kept is not Kept.VALUES else family.shape
    shape, shard = oriented(place, kept, shape, tensors, wanted, known.hidden, stacked=bool(stack))
    shape, shard = whole_bytes(shape, shard, bunch.raw.dtype)
    units = rows = 0
    if shard is WeightShard.KV_HEADS:
        units = (0 if family is None else family.shard_units) or known.config.kv_heads
        rows = family.unit_rows if family is not None and family.shape == shape else 0
    own = TensorFamily(
        place.template, shape or (1,), place.part, shard, (), stack, stacked=bool(stack),
        shard_units=units, unit_rows=rows,
    )  # fmt: skip
    logical = _logical(bunch, place, kept, family, known.hidden)
    return _Key(own, bunch.raw.dtype, is_mtp, not is_mtp and _is_copy(bunch, place, family, known), logical)


def _stack(bunch: Bunch, known: _Known) -> int:
    """Return how many experts' slices a tensor is made of; 0: it is none."""
    shape, template = bunch.raw.shape, bunch.place.template
    stack = known.stacks.get(container_of(template), 0)
    return stack if shape and shape[0] == stack and "{expert}" not in template else 0


def _kept(place: TensorPlace, tensors: Mapping[str, Raw]) -> Kept:
    """A bare ``scale`` is a parameter, unless the matrix beside it is of a narrow dtype."""
    if place.suffix != "scale" or place.kept is not Kept.SCALES:
        return place.kept
    narrow = any(DTYPE_BITS[raw.dtype] <= 8 for suffix, raw in tensors.items() if suffix != "scale")
    return Kept.SCALES if narrow else Kept.VALUES


def _logical(
    bunch: Bunch, place: TensorPlace, kept: Kept, family: TensorFamily | None, hidden: int
) -> int | None:
    """Return the parameters of one tensor; None where they can't be told."""
    dtype = bunch.raw.dtype
    is_table = dtype in ("I64", "BOOL") or (dtype == "I32" and len(bunch.raw.shape) < 2)
    if kept is not Kept.VALUES or (not place.suffix and is_table):
        return 0
    packed = dtype in WORDS or dtype in BYTES or place.suffix in ("qweight", "weight_packed")
    fits = family is not None and (place.layer is None or place.layer in family.layers)
    if packed and fits and family is not None and place.suffix != "bias":
        return family.num_elements * (family.num_experts if family.stacked else 1)
    inputs = hidden if place.shard in (WeightShard.COLUMN, WeightShard.KV_HEADS) else 0
    return num_elements(bunch.matrix, place.suffix, inputs)


def _hidden(bunches: Iterable[Bunch]) -> int:
    return next(
        (
            raw.shape[1]
            for place, raw, _ in bunches
            if place.part is Part.EMBEDDING
            and place.shard is WeightShard.VOCABULARY
            and len(raw.shape) == 2
            and raw.dtype not in WORDS | BYTES
        ),
        0,
    )


def _is_copy(bunch: Bunch, place: TensorPlace, family: TensorFamily | None, known: _Known) -> bool:
    """Whether an engine has these values already: a tied head, the embeddings of T5's two stacks."""
    if family is not None and family.tied_to:
        return True
    if place.part is Part.LM_HEAD and place.shard is WeightShard.VOCABULARY and known.config.is_tied:
        return len(bunch.raw.shape) == 2 and place.suffix == "weight"
    alike = known.shared == bunch.raw
    return alike and place.template.endswith(("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"))


def _stored(key: _Key) -> StoredFamily:
    form = WeightFormat(_NAMES.get(key.dtype, key.dtype.lower()), DTYPE_BITS[key.dtype])
    logical = None if key.logical is None else key.logical * key.family.num_tensors
    return StoredFamily(key.family, form, key.is_duplicate, logical)


def _counted(families: Iterable[StoredFamily]) -> int | None:
    """Return the parameters of tensors, or None where some don't tell."""
    counts = [item.logical for item in families if not item.is_duplicate]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _active(families: list[StoredFamily], known: ConfigTensors) -> int | None:
    """Return the parameters that one token passes through, or None where nobody says how many experts."""
    counted = _counted(families)
    routed = [item for item in families if item.family.num_experts and not item.is_duplicate]
    if counted is None or not routed or not known.active_experts:
        return None if routed else counted
    idle = (
        (item.logical or 0)
        // item.family.num_experts
        * (item.family.num_experts - item.family.num_active_experts)
        for item in routed
    )
    return counted - sum(idle)


def _differences(counted: int | None, stated: int | None) -> tuple[Note, ...]:
    if counted is None or stated is None or abs(counted - stated) * _TOLERANCE <= stated:
        return ()
    text = (
        f"the weight files hold {counted:,} parameters, the config implies {stated:,}; the files are counted"
    )
    values = (("files", f"{counted:,}"), ("config", f"{stated:,}"))
    return (Note("weights_differ_from_config", "warning", text, values),)


#: Ending of a name of values, dtype -> what a checkpoint is quantised with; bits are told by its size.
_SCHEMES = {
    ("blocks", "uint8"): "mxfp4", ("weight_packed", "uint8"): "nvfp4", ("weight", "uint8"): "{four}",
    ("weight_packed", "i32"): "int{bits}", ("qweight", "i32"): "{layout} int{bits}",
    ("weight", "u32"): "mlx {bits} bit", ("weight", "int8"): "{eight}",
    ("weight", "fp8_e4m3"): "fp8", ("weight", "fp8_e5m2"): "fp8",
}  # fmt: skip


def _scheme(families: list[StoredFamily]) -> str:
    """Return what most parameters of the layers are stored in, in a word."""
    values = [item for item in families if item.logical]
    inner = [item for item in values if item.family.layers] or values
    main = max(inner, key=lambda item: item.logical or 0, default=None)
    if main is None or not main.logical:
        return ""
    name = main.format.name
    endings = {item.family.name.rpartition(".")[2] for item in families}
    suffix = place_of(main.family.name).suffix or "weight"
    bits = round(main.file_bytes * 8 / main.logical)
    layout = "gptq" if "g_idx" in endings else "awq"
    narrow = "mxfp4" if any(item.format.name == "e8m0" for item in families) else "nvfp4"
    four = next((word for word in ("nf4", "fp4") if f"bitsandbytes__{word}" in endings), narrow)
    eight = "int8" if bits > 4 else narrow
    scheme = _SCHEMES.get((suffix, name), name)
    return scheme.format(bits=bits, layout=layout, four=four, eight=eight)
