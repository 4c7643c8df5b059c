"""Replay weights: what a rank holds once it is loaded, as the engine counts it.

The model's own config where its name is known; else the one that the record is tied to, in the
quantisation that
the record states or that the model's name bears.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kvgauge.card_budget import loading
from kvgauge.engines import sglang_load
from kvgauge.engines.vllm.devices import DEFAULT_GPU
from kvgauge.engines.vllm_load import loaded_bytes
from kvgauge.engines.vllm_weights import shard_policy
from kvgauge.errors import KvgaugeError
from kvgauge.models import Model
from kvgauge.readers.hf.rotary import read_rotary
from kvgauge.replay import sglang, tensorrt_llm, vllm
from kvgauge.replay.figures import Figure, Skip, needed
from kvgauge.replay.models import ModelFinder, read_model
from kvgauge.replay.records import Record
from kvgauge.sources.catalogue import find_model
from kvgauge.stored_weights import StoredWeights
from kvgauge.units import GIB
from kvgauge.weight_ranks import THEORY, rank_bytes, rank_tensors
from kvgauge.workload import Parallelism

#: Words of a quantisation, or of a model's name -> the scheme that prices it; the first row that fits counts.
_SCHEMES: tuple[tuple[str, str], ...] = (
    (r"nvfp4|modelopt_fp4|\bfp4\b", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"w4a16|w4a8|int4|auto.?round|awq|gptq|\b4.?bit|qat", "int4"),
    (r"w8a8|int8", "int8"),
    (r"fp8", "fp8"),
)
#: A file type of llama.cpp as its log prints it: "Q4_K - Medium", "Q8_0", "IQ4_XS - 4.25 bpw".
_FILE_TYPE = re.compile(
    r"(BF16|F16|F32|I?Q\d_[0-9A-Z_]+|I?Q\d_K|TQ\d_0|MXFP4)(?:\s*-\s*(Small|Medium|Large))?", re.I
)
_SIZES: Mapping[str, str] = MappingProxyType({"small": "_s", "medium": "_m", "large": "_l"})
#: File types without sizes; their log says "Medium" of all its kin.
_NO_SIZE = frozenset({"q2_k", "q6_k"})
_FLOATS: Mapping[str, str] = MappingProxyType({"f16": "fp16", "f32": "fp32"})
_MODEL_SIZE = re.compile(r"([\d.]{1,12}) (GiB|MiB)")
_BITS = re.compile(r"([\d.]{1,12}) BPW")
#: A label may stand for a recipe whose bits are this far from it.
_FAR = 0.15
#: Devices that are not CUDA's.
_OTHER_MAKERS = re.compile(r"\b(?:AMD|MI\d{2,3}\w*|XPU|NPU|MUSA|Gaudi|Ascend)\b", re.I)
#: Engines load a 32-bit model in 16 bits unless told otherwise.
_SIXTEEN_BIT = replace(THEORY, loaded_as={"f32": "bf16"})


def weights(record: Record, finder: ModelFinder) -> Figure:
    """GiB of the weights of the fullest rank; of llama.cpp, of the file.

    Raises:
        Skip: a field or a shape lacks. KvgaugeError: the scheme or the split is not possible.
    """
    if record.family == "llama.cpp":
        return _file(record, finder)
    measured, rounding = _measured(record)
    model, scheme = model_of(record, finder)
    stored = stored_of(model, scheme)
    counts = {"vllm": _vllm_bytes, "sglang": sglang_bytes}.get(record.family, _plain_bytes)
    ours = counts(record, model, stored, scheme)
    because = scheme or stored.scheme
    if record.family != "sglang":
        return Figure(measured, ours / GIB, rounding, because=because)
    # Its figure is what is gone of the free memory, kernels and workspaces that come with the weights too.
    beside = loading()
    low, central, high = (
        (ours + size) / GIB for size in (beside.low_bytes, beside.central_bytes, beside.high_bytes)
    )
    return Figure(measured, central, rounding, low, high, because=f"{because}, and {beside.because}")


def _measured(record: Record) -> tuple[float, float]:
    for name, inner in (("weights_gib", ""), ("weights_gb", ""), ("weights_gb", "extra")):
        value = record.number(name, within=inner)
        if value is not None:
            digits = len(repr(value).partition(".")[2])
            return value, 0.5 * 10 ** -max(2, min(digits, 4))
    free = [record.number(f"avail_mem_{when}_load_gb") for when in ("before", "after")]
    if free[0] is not None and free[1] is not None:
        return free[0] - free[1], 0.01
    before, after = (record.number(f"{when}_model_gib", within="extra") for when in ("before", "after"))
    if before is not None and after is not None:
        return before - after, 0.01
    raise Skip("null", "weights_gib")


def bits_a_weight(record: Record) -> float | None:
    """Return the bits a weight of a file, as llama.cpp prints them."""
    bits = _BITS.search(str(record.inner("hparams").get("model_size") or ""))
    return float(bits[1]) if bits else None


def model_of(record: Record, finder: ModelFinder) -> tuple[Model, str]:
    """Return the model and the scheme to price it in, empty for its own.

    A build that is not known itself is taken for one of the same model in the same scheme, where one is
    known.
    """
    name = record.text("model") or ""
    stated = f"{(record.text('quantization') or '').lower()} {name.lower()}"
    scheme = next((word for words, word in _SCHEMES if re.search(words, stated)), "")
    own = finder.named(name)
    model = own if own is not None else finder.model(record)
    if not scheme or _has_scheme(model, scheme):
        return model, ""
    build = finder.build(record.text("config_ref") or "", scheme) if own is None else None
    return (build, "") if build is not None else (model, scheme)


def _has_scheme(model: Model, scheme: str) -> bool:
    """Whether a model's own weights are in a scheme, and in no other beside it."""
    kept = model.weighed.stored
    return kept is not None and scheme in kept.scheme and "+" not in kept.scheme


def stored_of(model: Model, scheme: str) -> StoredWeights:
    """Return the weights in a scheme, empty for the model's own.

    Raises:
        Skip: they can't be known. KvgaugeError: the scheme is not possible.
    """
    if model.weighed.stored is None:  # a config reduced to its cache: the same model may be known in full
        raw = find_model(model.raw.id)
        model = read_model(raw) or model if raw is not None else model
    weighed = model.weighed_as(scheme) if scheme else model.weighed
    if weighed.stored is None:
        raise Skip("no_shape", "; ".join(note.message for note in weighed.notes))
    return weighed.stored


def _vllm_bytes(record: Record, model: Model, stored: StoredWeights, scheme: str) -> int:
    settings = vllm.settings_of(record)
    architecture = model.architecture
    experts = settings.tensor * settings.data if settings.expert_parallel else 1
    layout = Parallelism(settings.tensor, settings.pipeline, settings.data, experts)
    policy = shard_policy(
        model_type=architecture.model_type,
        compute_capability=_capability(record) or settings.gpu.capability or DEFAULT_GPU.capability or (9, 0),
        model_dtype="" if scheme else architecture.model_dtype,
        version=settings.version,
    )
    rotary = read_rotary(model.raw.config)
    ranks = (
        rank_tensors(stored, layout, num_layers=architecture.num_layers, policy=policy, stage=stage,
                     mtp=settings.speculation.uses_mtp)
        for stage in range(layout.pipeline)
    )  # fmt: skip
    return max(
        loaded_bytes(rank, rotary, model_type=architecture.model_type, version=settings.version)
        for rank in ranks
    )


def _capability(record: Record) -> tuple[int, int] | None:
    """Return the compute capability that a log names: of Marlin kernels on Hopper, 8.0 stands in."""
    note = f"{record.text('note') or ''} {' '.join(record.words('doubts'))}".lower()
    return (8, 0) if "marlin" in note or record.flag("marlin", within="extra") else None


def sglang_bytes(record: Record, model: Model, stored: StoredWeights, scheme: str = "") -> int:
    """Return what SGLang finds gone of the fullest rank's device after loading."""
    del scheme
    told = sglang.settings_of(record)
    layout = Parallelism(told.tensor, told.pipeline)
    rotary, depth = read_rotary(model.raw.config), model.architecture.num_layers
    is_cuda = told.gpu.capability is not None and not _OTHER_MAKERS.search(record.text("gpu") or "")
    return max(
        sglang_load.loaded_bytes(
            rank_tensors(stored, layout, num_layers=depth, policy=_SIXTEEN_BIT, stage=stage), rotary,
            model_type=model.architecture.model_type, wide_tables=is_cuda,
        )
        for stage in range(layout.pipeline)
    )  # fmt: skip


def _plain_bytes(record: Record, model: Model, stored: StoredWeights, scheme: str) -> int:
    del model, scheme
    told = tensorrt_llm.settings_of(record)
    layout = Parallelism(told.tensor, told.pipeline)
    depth = max((max(item.family.layers, default=0) for item in stored.families), default=0) + 1
    return max(rank_bytes(stored, layout, num_layers=depth, policy=_SIXTEEN_BIT))


def _file(record: Record, finder: ModelFinder) -> Figure:
    printed = _MODEL_SIZE.search(str(record.inner("hparams").get("model_size") or ""))
    stated = record.number("file_size_gib", within="extra")
    if stated is None:
        buffers = record.inner("model_buffer_mib").values()
        sizes = (b for b in buffers if isinstance(b, int | float) and not isinstance(b, bool))
        stated = sum(sizes) / 1024 or None
    if printed is None and stated is None:
        raise Skip("null", "hparams.model_size")
    size = float(printed[1]) / (1 if printed[2] == "GiB" else 1024) if printed else stated or 0.0
    rounding = 0.0005 if printed else 0.005
    model = finder.any_model(record)
    mtp = record.number("mtp_kv_layers", within="extra") is not None
    word = file_scheme(record.text("quant") or "")
    stated_bits = bits_a_weight(record)
    stored = _priced(model, word)
    if stored is not None and not _contradicts(stored, stated_bits):
        ours = stored.num_bytes + (stored.mtp_bytes if mtp else 0)
        return Figure(needed(size, "hparams.model_size"), ours / GIB, rounding, because=word)
    stored = stored_of(model, "bf16")
    if stated_bits is None:
        raise Skip("null", "quant")
    sized = stored.num_parameters * stated_bits / 8 / GIB
    return Figure(size, sized, rounding + size * 0.0005 / stated_bits, because=f"{stated_bits} bits a weight")


def _priced(model: Model, word: str) -> StoredWeights | None:
    """Return the weights in a file type, None where it is a fork's own."""
    try:
        return stored_of(model, word) if word else None
    except KvgaugeError:
        return None


def _contradicts(stored: StoredWeights, bits: float | None) -> bool:
    """Whether printed bits a weight are far from a label's: the label is then of one tensor."""
    if bits is None or not stored.num_parameters:
        return False
    ours = stored.num_bytes * 8 / stored.num_parameters
    return abs(ours / bits - 1) > _FAR


def file_scheme(label: str) -> str:
    """Return the scheme word of a file type as llama.cpp's log prints it; empty where there is none.

    >>> file_scheme("Q4_K - Medium"), file_scheme("Q8_0"), file_scheme("IQ4_K_R4 - 4.5 bpw")
    ('q4_k_m', 'q8_0', 'iq4_k_r4')
    """
    match = _FILE_TYPE.match(label.strip())
    if match is None:
        return ""
    word = match[1].lower()
    if match[2] and word not in _NO_SIZE and not word.startswith("iq"):
        word += _SIZES[match[2].lower()]
    return _FLOATS.get(word, word)
