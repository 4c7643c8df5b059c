"""FP8 checkpoints: one scale a tensor, an output or a block; DeepSeek-V4's with experts in four bits.

Sources: Transformers 5.24 (fine-grained FP8, FBGEMM), vLLM 0.33 (``Fp8Config``, ``DeepseekV4FP8Config``).
Embeddings, norms, the head and routers stay; so do the index weights of DSA and what joins the inputs of a
prediction module.
"""

from __future__ import annotations

from kvgauge.readers.hf.nesting import stated_model_type
from kvgauge.readers.hf.schemes.block import MAX_GROUP, Block
from kvgauge.readers.hf.schemes.formats import fp8_blocks, fp8_channel, fp8_tensor, mxfp4, nvfp4
from kvgauge.readers.hf.schemes.names import Mode, NameSet
from kvgauge.readers.hf.schemes.rules import (
    Reach,
    Rule,
    Scheme,
    any_family,
    is_linear,
    is_mtp_input,
    labelled,
)
from kvgauge.readers.values import as_count
from kvgauge.weight_formats import plain
from kvgauge.weights import Part, TensorFamily

_REACH = Reach(towers=True, mtp=True)
_V4_TYPES = ("deepseek_v4", "deepseek_v41")


def _takes(family: TensorFamily) -> bool:
    return _REACH.takes(family) and not is_mtp_input(family)


def _kept(block: Block) -> Rule:
    return Rule(
        None, NameSet.of(block.names("ignored_layers", "modules_to_not_convert"), Mode.PATH), any_family
    )


def _block_size(block: Block) -> tuple[int, int] | None:
    value = block.values.get("weight_block_size")
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        raise block.invalid("weight_block_size", "two numbers or null")
    rows, columns = (as_count(n, block.where("weight_block_size"), low=1, high=MAX_GROUP) for n in value)
    return rows, columns


def read_fp8(block: Block) -> Scheme:
    """Read an FP8 block: ``weight_block_size``, ``activation_scheme``, modules left out."""
    if block.has("store_dtype"):
        raise block.unsupported("store_dtype", "fp8", block.text("store_dtype"))
    if stated_model_type(block.config).startswith(_V4_TYPES):
        return _deepseek_v4(block)
    size = _block_size(block)
    if size is None:
        chosen = fp8_tensor(input_scale=block.text("activation_scheme") == "static")
        return Scheme("fp8", (_kept(block), Rule(chosen, takes=_takes)))
    return Scheme(
        labelled("fp8", f"{size[0]}x{size[1]}"), (_kept(block), Rule(fp8_blocks(*size), takes=_takes))
    )


def read_fbgemm(block: Block) -> Scheme:
    """Read an FBGEMM block: a scale an output."""
    return Scheme(labelled("fbgemm", "fp8"), (_kept(block), Rule(fp8_channel(), takes=_takes)))


_EXPERT_FORMATS = {"fp4": mxfp4(), "nvfp4": nvfp4(input_scale=True)}
_F32_LEAVES = ("hc_attn_fn", "hc_attn_base", "hc_attn_scale", "hc_ffn_fn", "hc_ffn_base", "hc_ffn_scale")
_F32_ENDS = (*_F32_LEAVES, "hc_head_fn", "hc_head_base", "hc_head_scale", "attn_sink", ".ape")


def _deepseek_v4(block: Block) -> Scheme:
    """FP8 blocks with e8m0 scales and experts in fp4; with fp8 experts the scales are fp32."""
    dtype = block.config.get("expert_dtype", "fp4")
    if dtype not in ("fp4", "fp8"):
        raise block.unsupported("expert_dtype", "expert_dtype", str(dtype))
    size = _block_size(block) or (128, 128)
    linear = fp8_blocks(*size, scale_bits=8 if dtype == "fp4" else 32)
    rules = [_kept(block), Rule(plain("f32"), takes=lambda family: family.name.endswith(_F32_ENDS))]
    label = labelled("fp8", f"{size[0]}x{size[1]}")
    if block.text("moe_quant_algo") == "nvfp4":
        rules.append(Rule(mxfp4(), NameSet.of(block.names("ignore"), Mode.PATH), _is_expert))
        rules.append(Rule(_EXPERT_FORMATS["nvfp4"], takes=_is_expert))
        label = labelled("nvfp4", "+", label)
    elif dtype == "fp4":
        rules.append(Rule(_EXPERT_FORMATS["fp4"], takes=_is_expert))
        label = labelled("mxfp4", "+", label)
    rules.append(Rule(linear, takes=_v4_linear))
    return Scheme(label, tuple(rules))


def _is_expert(family: TensorFamily) -> bool:
    return "{expert}" in family.name and is_linear(family)


def _v4_linear(family: TensorFamily) -> bool:
    compressor = ".compressor." in family.name
    return _takes(family) and not compressor and family.part is not Part.EMBEDDING
