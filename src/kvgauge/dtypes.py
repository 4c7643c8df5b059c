"""Cache formats: how a row of a stream becomes integer bytes.

A table, not branches: each format says per role how elements pack. Sources: ``architectures`` of
the engines' own code (vLLM 0.33, SGLang 0.5.23), the ggml type table (llama.cpp v0.5.0), FlashMLA
for the packed latents.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.layers import Role


class Packing(NamedTuple):
    """Bytes of one vector: packed elements, scales, padding.

    Args:
        bits: bits an element.
        scale_bytes: bytes of one scale.
        scale_block: elements that share a scale; 0 means the whole vector.
        pad_bytes: constant padding of a vector.
        multiple: the width must be a multiple of this.
    """

    bits: int
    scale_bytes: int = 0
    scale_block: int = 0
    pad_bytes: int = 0
    multiple: int = 1

    def vector_bytes(self, width: int) -> int:
        """Return the bytes of one vector of ``width`` elements."""
        if width == 0:
            return 0
        scales = -(-width // self.scale_block) if self.scale_block else 1
        return -(-width * self.bits // 8) + scales * self.scale_bytes + self.pad_bytes


class Format(NamedTuple):
    """A named cache format.

    Args:
        default: packing for every role that has no entry of its own; None refuses those roles.
        roles: packings of single roles.
        row_block: ggml types quantise blocks over a whole row of this many elements; 0 elsewhere.
        row_block_bytes: bytes of such a block.
    """

    name: str
    default: Packing | None
    roles: Mapping[Role, Packing]
    row_block: int = 0
    row_block_bytes: int = 0

    def row_bytes(self, role: Role, vectors: int, width: int) -> int:
        """Return the bytes of one row of ``vectors`` vectors of ``width`` elements.

        Raises:
            FeatureUnsupportedError: this format can't hold such a row.
        """
        if self.row_block:
            return self._block_row_bytes(role, vectors * width)
        packing = self.roles.get(role, self.default)
        if packing is None:
            raise FeatureUnsupportedError(
                f"{self.name} does not store {role.value} rows",
                hint=f"it packs {', '.join(sorted(r.value for r in self.roles))} rows only; use bf16 or fp8",
                field="kv_dtype",
            )
        if width % packing.multiple:
            raise FeatureUnsupportedError(
                f"{self.name} needs a multiple of {packing.multiple} elements; {role.value} rows: {width}",
                hint="use bf16 or fp8 for this model",
                field="kv_dtype",
            )
        return vectors * packing.vector_bytes(width)

    def _block_row_bytes(self, role: Role, elements: int) -> int:
        blocks, rest = divmod(elements, self.row_block)
        if rest:
            raise FeatureUnsupportedError(
                f"{self.name} packs {self.row_block} elements a block, {role.value} rows have {elements}",
                hint="use a type whose block divides the row: q8_0 (32), f16 (1)",
                field="kv_dtype",
            )
        return blocks * self.row_block_bytes


_PLAIN_BITS = {"f32": 32, "f16": 16, "bf16": 16, "fp8_e4m3": 8, "fp8_e5m2": 8, "int8": 8}

# ggml type -> (elements a block, bytes a block); rows must hold whole blocks.
_GGML_BLOCKS = {
    "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q8_0": (32, 34),
    "q8_1": (32, 36), "mxfp4": (32, 17), "iq4_nl": (32, 18), "q1_0": (128, 18), "q2_0": (64, 18),
    "tq1_0": (256, 54), "tq2_0": (256, 66),
    "q2_k": (256, 84), "q3_k": (256, 110), "q4_k": (256, 144), "q5_k": (256, 176), "q6_k": (256, 210),
    "q8_k": (256, 292), "iq1_s": (256, 50), "iq1_m": (256, 56), "iq2_xxs": (256, 66), "iq2_xs": (256, 74),
    "iq2_s": (256, 82), "iq3_xxs": (256, 98), "iq3_s": (256, 110), "iq4_xs": (256, 136),
    "i8": (1, 1), "i16": (1, 2), "i32": (1, 4), "i64": (1, 8), "f64": (1, 8),
}  # fmt: skip

# Quantised caches of Transformers (quanto, hqq): groups of 64 elements over whole rows, each with a 16-bit
# scale and zero. Written as a quarter of a group, as rows need not hold whole ones: 16 x bits / 8 + 1 bytes.
_GROUPED = {"int8_group64": (16, 17), "int4_group64": (16, 9), "int2_group64": (16, 5)}

#: The block types that llama.cpp takes for -ctk and -ctv (v0.5.0); the others are for weights.
_LLAMA_CPP_CACHE_TYPES = ("q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "iq4_nl")

_BF16 = Packing(16)

_PACKED: dict[str, tuple[Packing | None, dict[Role, Packing]]] = {
    # One fp32 scale for each token and head, for K and for V.
    "int8_per_token_head": (Packing(8, scale_bytes=4), {}),
    "fp8_per_token_head": (Packing(8, scale_bytes=4), {}),
    "int4_per_token_head": (Packing(4, scale_bytes=4, multiple=2), {}),
    # e4m3 with one power of two per 32 elements.
    "mxfp8": (Packing(8, scale_bytes=1, scale_block=32), {}),
    # e2m1 with one fp8 scale per 16 elements.
    "nvfp4": (Packing(4, scale_bytes=1, scale_block=16, multiple=16), {}),
    # FlashMLA records: V3 latents 512 fp8 + 4 fp32 scales + 64 bf16 rope = 656 B;
    # V4 records 448 fp8 + 7 e8m0 scales + 1 pad + 64 bf16 rope = 584 B.
    "fp8_ds_mla": (
        None,
        {
            Role.LATENT: Packing(8, scale_bytes=4, scale_block=128),
            Role.RECORD: Packing(8, scale_bytes=1, scale_block=64, pad_bytes=1),
            Role.ROPE: _BF16,
        },
    ),
    # 256 B of e2m1 + 32 scales + 64 fp8 rope = 352 B.
    "nvfp4_ds_mla": (
        None,
        {Role.LATENT: Packing(4, scale_bytes=1, scale_block=16, multiple=16), Role.ROPE: Packing(8)},
    ),
    # TurboQuant: bits of K and V, and the norms and offsets kept beside each vector.
    "turboquant_k8v4": (None, {Role.KEY: Packing(8, multiple=8), Role.VALUE: Packing(4, 4, multiple=8)}),
    "turboquant_4bit_nc": (
        None,
        {Role.KEY: Packing(4, 2, multiple=8), Role.VALUE: Packing(4, 4, multiple=8)},
    ),
    "turboquant_k3v4_nc": (
        None,
        {Role.KEY: Packing(3, 2, multiple=16), Role.VALUE: Packing(4, 4, multiple=16)},
    ),
    "turboquant_3bit_nc": (
        None,
        {Role.KEY: Packing(3, 2, multiple=8), Role.VALUE: Packing(3, 4, multiple=8)},
    ),
}

# Index keys quantised to fp8 carry one fp32 scale per 128 elements: 132 B at index_head_dim 128.
_FP8_ROLES = {Role.INDEX: Packing(8, scale_bytes=4, scale_block=128)}

_ALIASES = {
    "float32": "f32", "fp32": "f32", "float": "f32",
    "float16": "f16", "fp16": "f16", "half": "f16",
    "bfloat16": "bf16",
    "fp8": "fp8_e4m3", "fp8_e4m3fn": "fp8_e4m3", "float8_e4m3fn": "fp8_e4m3", "float8_e4m3": "fp8_e4m3",
    "e4m3": "fp8_e4m3", "float8_e5m2": "fp8_e5m2", "e5m2": "fp8_e5m2", "fp8_inc": "fp8_e4m3",
    "fp8_e4m3fnuz": "fp8_e4m3", "fp8_e5m2fnuz": "fp8_e5m2",
    "nvfp4_4over6": "nvfp4", "fp4_e2m1": "nvfp4", "fp4_mx_block16": "nvfp4",
    "double": "f64", "float64": "f64",
}  # fmt: skip

# Words kept as users wrote them where an engine knows them; shown names stay the engines' own.
_SHOWN = {"fp8_e4m3": "fp8", "f32": "fp32", "f16": "fp16"}


def _build_table() -> dict[str, Format]:
    table = {
        name: Format(name, Packing(bits), _FP8_ROLES if bits == 8 and name.startswith("fp8") else {})
        for name, bits in _PLAIN_BITS.items()
    }
    table |= {name: Format(name, default, roles) for name, (default, roles) in _PACKED.items()}
    table |= {
        name: Format(name, None, {}, row_block=block, row_block_bytes=size)
        for name, (block, size) in {**_GGML_BLOCKS, **_GROUPED}.items()
    }
    return table


_TABLE = _build_table()


def format_names() -> tuple[str, ...]:
    """Return the canonical names of all formats, for completion and documentation."""
    return tuple(_TABLE)


def dtype_words() -> tuple[str, ...]:
    """Return the words that a cache's dtype is asked for in, every engine's, for completion."""
    return ("auto", *_PLAIN_BITS, *_ALIASES, *_PACKED, *_LLAMA_CPP_CACHE_TYPES)


def canonical_dtype(word: str) -> str:
    """Return the canonical name for a dtype in any engine's words.

    Raises:
        InvalidRequestError: no engine uses this word.

    >>> canonical_dtype("half"), canonical_dtype("FP8")
    ('f16', 'fp8_e4m3')
    """
    name = word.strip().lower().removeprefix("torch.")
    name = _ALIASES.get(name, name)
    if name in _TABLE:
        return name
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped name needs it

    stored = [*_PLAIN_BITS, *_ALIASES, *_PACKED, *_LLAMA_CPP_CACHE_TYPES]
    near = get_close_matches(name, stored, n=1, cutoff=0.5) or get_close_matches(name, _TABLE, n=1)
    hint = f"did you mean {near[0]}?" if near else "for example bf16, fp8, q8_0, nvfp4, fp8_ds_mla"
    raise InvalidRequestError(f"dtype {word!r} is not a cache format of any engine", hint=hint)


def display_dtype(name: str) -> str:
    """Return the name that people and engines use for a canonical one: ``fp8``, ``fp32``, ``bf16``."""
    return _SHOWN.get(name, name)


def get_format(name: str) -> Format:
    """Return the format of a canonical name."""
    return _TABLE[name]


@lru_cache(maxsize=4096)
def row_bytes(dtype: str, role: Role, vectors: int, width: int, columns: int = 1) -> int:
    """Return the bytes of one row of a stream in ``dtype`` (canonical).

    Raises:
        FeatureUnsupportedError: the format can't hold such a row.

    >>> row_bytes("bf16", Role.KEY, 8, 128)
    2048
    """
    return _TABLE[dtype].row_bytes(role, vectors, width * columns)
