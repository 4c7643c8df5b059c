"""From tensor families to bytes: what a config says of the quantisation of its weights.

``stored_weights`` finds the block that speaks of it, the file of its method, and stores every family in the
formats that the method's rules give. A method that is not known is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from kvgauge.errors import FeatureUnsupportedError
from kvgauge.readers.hf.schemes.assumed import assumptions
from kvgauge.readers.hf.schemes.block import Block, find_block
from kvgauge.stored_weights import StoredFamily, StoredWeights
from kvgauge.weight_formats import plain
from kvgauge.weights import ModelWeights

if TYPE_CHECKING:
    from kvgauge.readers.hf.schemes.rules import Scheme

#: quant_method -> (module, reader); a module is imported when its method is met.
_METHODS: Mapping[str, tuple[str, str]] = {
    "gptq": ("gptq", "read_gptq"),
    "gptqmodel": ("gptq", "read_gptq"),
    "awq": ("gptq", "read_awq"),
    "auto-round": ("gptq", "read_auto_round"),
    "auto_round": ("gptq", "read_auto_round"),
    "intel/auto-round": ("gptq", "read_auto_round"),
    "fp8": ("fp8", "read_fp8"),
    "deepseek_v4_fp8": ("fp8", "read_fp8"),
    "fbgemm_fp8": ("fp8", "read_fbgemm"),
    "compressed-tensors": ("compressed_tensors", "read_compressed_tensors"),
    "compressed_tensors": ("compressed_tensors", "read_compressed_tensors"),
    "modelopt": ("modelopt", "read_modelopt"),
    "modelopt_fp4": ("modelopt", "read_modelopt"),
    "modelopt_mixed": ("modelopt", "read_modelopt"),
    "mlx": ("mlx", "read_mlx"),
    "mxfp4": ("mxfp4", "read_mxfp4"),
    "bitsandbytes": ("bitsandbytes", "read_bitsandbytes"),
    "hqq": ("others", "read_hqq"),
    "quark": ("others", "read_quark"),
    "torchao": ("others", "read_torchao"),
}
#: Fields that tell the method of a block that does not name it.
_SIGNS = (
    ("quant_algo", "modelopt"),
    ("quantization", "modelopt"),
    ("config_groups", "compressed-tensors"),
    ("load_in_4bit", "bitsandbytes"),
    ("load_in_8bit", "bitsandbytes"),
    ("autoround_version", "auto-round"),
    ("desc_act", "gptq"),
    ("zero_point", "awq"),
    ("group_size", "mlx"),
)


def stored_weights(
    weights: ModelWeights,
    config: Mapping[str, object],
    side_file: Mapping[str, object] | None,
    model_dtype: str,
) -> StoredWeights:
    """Return the weights as the checkpoint of a config stores them.

    Args:
        weights: families of the config.
        config: the whole config, with ``quantization_config`` where there is one.
        side_file: ``hf_quant_config.json``.
        model_dtype: canonical dtype of what is not quantised.

    Raises:
        FeatureUnsupportedError: the method, or a variant of it, is not known.
        InvalidFieldError, MissingFieldError: the block can't be understood.
    """
    block = find_block(config, side_file)
    if block is None:
        return StoredWeights(
            tuple(StoredFamily(family, plain(model_dtype)) for family in weights.families),
            tuple(StoredFamily(family, plain(model_dtype)) for family in weights.mtp_families),
            scheme=model_dtype,
            notes=weights.notes,
        )
    scheme = read_scheme(block)
    return StoredWeights(
        scheme.store(weights.families, model_dtype),
        scheme.store(weights.mtp_families, model_dtype),
        scheme=scheme.label,
        notes=(*weights.notes, *scheme.notes),
    )


def read_scheme(block: Block) -> Scheme:
    """Return what a block says that weights are quantised with."""
    method = _method(block)
    if method == "gguf":
        raise FeatureUnsupportedError(
            "a GGUF repository holds one file for each quantisation",
            hint="name the file: org/name:file.gguf",
            field=block.where("quant_method"),
        )
    if method not in _METHODS:
        raise block.unsupported("quant_method", method)
    module, reader = _METHODS[method]
    scheme: Scheme = getattr(import_module(f"{__name__}.{module}"), reader)(block)
    return scheme._replace(notes=tuple(dict.fromkeys((*scheme.notes, *assumptions(block)))))


def _method(block: Block) -> str:
    named = block.text("quant_method")
    if named:
        return named
    return next((method for sign, method in _SIGNS if block.has(sign)), "")
