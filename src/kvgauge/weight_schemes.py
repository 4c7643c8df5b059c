"""The words of ``--weights``: a quantisation that the checkpoint need not have, in a small grammar.

``SCHEME[,OPTION=VALUE]...``. A scheme is a row of ``data/weight_schemes.json`` (``int4``, ``awq``), a plain
dtype (``bf16``, ``fp16``, ``fp32``: everything in it), or a mix of llama.cpp (``q4_k_m``). Options:

- ``group=N``: values along a row that share a scale; ``group=channel``: the whole row.
- ``bits=N``: 2 to 8, where the layout packs any width.
- ``sym=true|false``: without or with zero points.
- ``scales=fp16|bf16|fp32``: what scales are stored in.
- ``double=true|false``: bitsandbytes' second quantisation, of the scales.
- ``keep=PARTS``: what stays at 16 bit: ``default``, ``none`` or a part, then ``+PART`` and ``-PART``:
  ``keep=default+mlp``, ``keep=default-shared_experts``, ``keep=embedding+head``.

A mix takes ``keep`` alone, and keeps nothing unless told: its own rules choose a type for each tensor.

Layouts: AutoGPTQ ``qweight``/``qzeros``/``scales``/``g_idx``; AutoAWQ gemm; compressed-tensors 0.20
``pack_quantized`` (with ``weight_shape``), ``naive_quantized``, ``nvfp4_pack_quantized``; bitsandbytes
``Params4bit`` (its ``quant_state`` text of some 200 bytes a tensor is left out) and ``Int8Params``; HQQ with
``axis=1``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kvgauge.data import read_data
from kvgauge.errors import InvalidRequestError
from kvgauge.values import dataclass
from kvgauge.weight_formats import Tile, WeightFormat, plain
from kvgauge.weights import Part

_SCALE_BITS = {"fp16": 16, "f16": 16, "bf16": 16, "fp32": 32, "f32": 32}
_BOOLEANS = {
    "true": True,
    "on": True,
    "yes": True,
    "1": True,
    "false": False,
    "off": False,
    "no": False,
    "0": False,
}
_WIDTHS = range(2, 9)
MAX_GROUP = 4096
MAX_WORD = 200


@dataclass(frozen=True, slots=True)
class Scheme:
    """A quantisation asked for.

    Args:
        word: the row's word: ``int4``, ``awq``, ``q4_k_m``.
        text: the word and its options, as they are asked for.
        format: of what is quantised; of everything where ``is_plain``. A mix has none of its own.
        keep: parts that stay at 16 bit.
        group: values that share a scale; 0: a row.
        is_ggml: a mix of llama.cpp, whose rules choose the type of each tensor.
        is_plain: no quantisation, one dtype for everything.
    """

    word: str
    text: str
    format: WeightFormat | None
    keep: frozenset[Part] = frozenset()
    group: int = 0
    symmetric: bool = True
    is_ggml: bool = False
    is_plain: bool = False

    @property
    def value_bits(self) -> int:
        """Bits of a value, scales apart; of a mix, those in its name."""
        if self.format is not None:
            return self.format.value_bits
        return int(next(iter(re.findall(r"\d+", self.word)), "0"))


@lru_cache(maxsize=1)
def scheme_table() -> Mapping[str, Any]:
    """Return ``data/weight_schemes.json``."""
    table: Mapping[str, Any] = json.loads(read_data("weight_schemes.json"))
    return table


def scheme_words() -> tuple[str, ...]:
    """Return the words of all schemes, for completion and documentation."""
    return (*scheme_table()["schemes"], *scheme_table()["ggml"])


def default_keep() -> frozenset[Part]:
    """Return the parts that stay at 16 bit unless asked for otherwise."""
    return frozenset(Part(row["part"]) for row in scheme_table()["parts"] if row["advice"] == "keep")


def parse_scheme(word: str) -> Scheme:
    """Return the scheme that a ``--weights`` value asks for.

    Raises:
        InvalidRequestError: no such scheme, option or part.

    >>> parse_scheme("int4,group=64").format.tiles[0].columns
    64
    >>> parse_scheme("Q4_K_M").is_ggml
    True
    """
    if len(word) > MAX_WORD:
        raise InvalidRequestError("--weights is too long", hint="for example int4,group=64", field="weights")
    first, *rest = (piece.strip() for piece in word.lower().split(","))
    name = _scheme_name(first)
    table = scheme_table()
    row: Mapping[str, Any] = table["schemes"].get(name, {})
    is_ggml = name in table["ggml"]
    given = _options(name, rest, _known_options(row, is_ggml=is_ggml))
    text = ",".join([name, *(f"{option}={value}" for option, value in given.items())])
    if "plain" in row:
        return Scheme(name, text, plain(row["plain"]), is_plain=True)
    keep = _kept(given["keep"]) if "keep" in given else frozenset() if is_ggml else default_keep()
    if is_ggml:
        return Scheme(name, text, None, keep, is_ggml=True)
    return _quantised(name, text, row, given, keep)


def _scheme_name(word: str) -> str:
    name = word.replace("-", "_")
    table = scheme_table()
    name = table["aliases"].get(name, name)
    if name in table["schemes"] or name in table["ggml"]:
        return str(name)
    if name.startswith("ud_"):
        raise InvalidRequestError(
            f"{word} has no rule to price it by: types are chosen model by model with an importance matrix",
            hint="give the file itself: ORG/NAME:FILE.gguf",
            field="weights",
        )
    known = [*table["schemes"], *table["ggml"], *table["aliases"]]
    raise InvalidRequestError(
        f"{word!r} is no quantisation of weights that is known",
        hint=_near(name, known)
        or f"one of: {', '.join(table['schemes'])}, or a mix of llama.cpp: q4_k_m, q8_0",
        field="weights",
    )


def _near(word: str, known: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistyped word needs it

    near = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def _known_options(row: Mapping[str, Any], *, is_ggml: bool) -> tuple[str, ...]:
    if "plain" in row:
        return ()
    return ("keep",) if is_ggml else (*row["options"], "keep")


def _options(name: str, pieces: list[str], known: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for piece in pieces:
        option, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or not value:
            raise InvalidRequestError(
                f"{piece!r} is no option of {name}",
                hint="options are NAME=VALUE, parts are joined by +: keep=embedding+lm_head",
                field="weights",
            )
        if option not in known:
            listed = f"{name} takes {', '.join(known)}" if known else f"{name} takes no option"
            raise InvalidRequestError(
                f"{name} has no option {option!r}", hint=_near(option, list(known)) or listed, field="weights"
            )
        if option in given:
            raise InvalidRequestError(
                f"{option} is given twice", hint="give each option once", field="weights"
            )
        given[option] = value
    return given


def _kept(words: str) -> frozenset[Part]:
    """Return the parts of ``keep=``: a start, then parts added by + or taken away by -."""
    kept: set[Part] = set()
    for place, added in enumerate(words.split("+")):
        plus, *minus = added.split("-")
        if place == 0 and plus in ("default", "none"):
            kept |= default_keep() if plus == "default" else set()
        else:
            kept.add(_part(plus))
        kept -= {_part(part) for part in minus}
    return frozenset(kept)


def _part(word: str) -> Part:
    words = scheme_table()["part_words"]
    name = words.get(word.strip(), word.strip())
    if name in set(Part):
        return Part(name)
    known = [*(part.value for part in Part), *words, "default", "none"]
    raise InvalidRequestError(
        f"{word!r} is no part of a model",
        hint=_near(name, known) or f"parts are {', '.join(part.value for part in Part)}",
        field="weights",
    )


def _quantised(
    name: str, text: str, row: Mapping[str, Any], given: Mapping[str, str], keep: frozenset[Part]
) -> Scheme:
    bits = _bits(given["bits"]) if "bits" in given else row["bits"]
    group = _group(given["group"], row) if "group" in given else row["group"]
    symmetric = _chosen("sym", given["sym"], _BOOLEANS) if "sym" in given else row.get("sym", True)
    scales = _chosen("scales", given["scales"], _SCALE_BITS) if "scales" in given else row["scales"]
    doubled = "double" in row and _chosen("double", given.get("double", "true"), _BOOLEANS)
    zero_bits = bits if _has_zeros(row, symmetric=bool(symmetric)) else 0
    layout = WeightFormat(
        row["shown"] if bits == row["bits"] else f"int{bits}",
        bits,
        _tiles(row, group, scales, zero_bits, doubled=bool(doubled)),
        word_bits=row.get("word_bits", 0),
        packed_dim=row.get("packed_dim", -1),
        per_input_bytes=row.get("per_input_bytes", 0),
        per_tensor_bytes=row.get("per_tensor_bytes", 0)
        + (row["double"]["per_tensor_bytes"] if doubled else 0),
    )
    return Scheme(name, text, layout, keep, group, bool(symmetric))


def _has_zeros(row: Mapping[str, Any], *, symmetric: bool) -> bool:
    """GPTQ stores zero points that are all alike too."""
    zeros = row.get("zeros", "never")
    return zeros in ("always", "scale") or (zeros == "asymmetric" and not symmetric)


def _tiles(
    row: Mapping[str, Any], group: int, scales: int, zero_bits: int, *, doubled: bool
) -> tuple[Tile, ...]:
    flat = row.get("flat", False)
    if doubled:
        second = row["double"]
        return (
            Tile(1, group, second["scales"], flat=True),
            Tile(1, group * second["group"], second["second_scales"], flat=True),
        )
    tiles = [Tile(row.get("rows", 1), group, scales, flat=flat)]
    if zero_bits:
        as_scales = row["zeros"] == "scale"
        tiles.append(
            Tile(
                1, group, scales if as_scales else zero_bits, 0 if as_scales else row["word_bits"], flat=flat
            )
        )
    return tuple(tiles)


def _bits(value: str) -> int:
    if value in {str(bits) for bits in _WIDTHS}:
        return int(value)
    raise InvalidRequestError(f"bits={value} is not possible", hint="bits are 2 to 8", field="weights")


def _group(value: str, row: Mapping[str, Any]) -> int:
    if value == "channel" and not row.get("flat"):
        return 0
    group = int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 0
    if 8 <= group <= MAX_GROUP and group % 8 == 0:
        return group
    raise InvalidRequestError(
        f"group={value} is not possible",
        hint=f"a group is a multiple of 8 up to {MAX_GROUP}; group=channel is a whole row",
        field="weights",
    )


def _chosen(option: str, value: str, values: Mapping[str, int]) -> int:
    if value not in values:
        raise InvalidRequestError(
            f"{option}={value} is not possible", hint=f"one of: {', '.join(values)}", field="weights"
        )
    return values[value]
