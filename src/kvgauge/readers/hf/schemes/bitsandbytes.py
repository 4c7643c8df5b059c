"""bitsandbytes: int8 with a scale an output, or four bits with a scale of 64 values.

Tensors as Transformers saves them (bitsandbytes 0.50): int8 ``weight`` and fp32 ``SCB``; or packed
``weight``, ``absmax`` (fp32, or uint8 with a scale of 256 of them where quantised twice), ``quant_map`` of
16 fp32 and a short description. All linear layers but the head are taken.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from kvgauge.readers.hf.schemes.block import Block
from kvgauge.readers.hf.schemes.names import Mode, NameSet
from kvgauge.readers.hf.schemes.rules import Reach, Rule, Scheme, any_family, labelled
from kvgauge.weight_formats import Tile, WeightFormat
from kvgauge.weights import TensorFamily

_VALUES, _SCALES = 64, 256
_MAP_BYTES, _NESTED_MAP_BYTES = 16 * 4, 256 * 4
_REACH = Reach(router=True, towers=True, fragile=True)
#: Digits that an offset, a float of the file, takes in the description; it varies by two or three.
_AN_OFFSET = 0.012345678910111213


def read_bitsandbytes(block: Block) -> Scheme:
    """Read a bitsandbytes block."""
    skipped = block.names("llm_int8_skip_modules")
    kept = Rule(None, NameSet.of(skipped, Mode.PATH), any_family)
    if block.flag("load_in_8bit", default=block.flag("_load_in_8bit")):
        int8 = WeightFormat("int8", 8, (Tile(1, 0, 32),))
        return Scheme(labelled("bitsandbytes", "int8"), (kept, Rule(int8, takes=_REACH.takes)))
    if not block.flag("load_in_4bit", default=block.flag("_load_in_4bit")):
        raise block.unsupported("load_in_4bit", "bitsandbytes", "load_in_4bit=false")
    kind = block.text("bnb_4bit_quant_type", "fp4")
    if kind not in ("nf4", "fp4"):
        raise block.unsupported("bnb_4bit_quant_type", "bitsandbytes", kind)
    nested = block.flag("bnb_4bit_use_double_quant")
    return Scheme(
        labelled("bitsandbytes", kind, "double" * nested),
        (kept, Rule(_four_bits(kind, nested), takes=_REACH.takes)),
    )


def _four_bits(kind: str, nested: bool) -> Callable[[TensorFamily], WeightFormat]:
    scales = Tile(0, _VALUES, 8 if nested else 32, flat=True)
    tiles = (scales, Tile(0, _VALUES * _SCALES, 32, flat=True)) if nested else (scales,)

    def given(family: TensorFamily) -> WeightFormat:
        state: dict[str, object] = {"quant_type": kind, "blocksize": _VALUES, "dtype": "bfloat16"}
        state["shape"] = list(family.shape)
        if nested:
            more = {"nested_blocksize": _SCALES, "nested_dtype": "float32", "nested_offset": _AN_OFFSET}
            state |= more
        own = _MAP_BYTES + nested * _NESTED_MAP_BYTES + len(json.dumps(state))
        return WeightFormat(kind, 4, tiles, per_tensor_bytes=own)

    return given
