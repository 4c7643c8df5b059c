"""Working buffers: what the largest graph needs at its fullest moment.

llama.cpp reserves one buffer a device for a prompt of one micro-batch with every cell in use. Its size is the
largest, over a few moments of the graph, of a sum of products: at the logits ``4 x outputs x vocabulary`` and
more, in the feed-forward part ``12 x tokens x feed-forward`` and more, in attention without flash attention
``4 x tokens x cells x heads`` and more. The coefficients of every architecture are in
``data/llamacpp_compute.json``: measured with the libraries of v0.5.0, which plan without allocating, over
shapes
drawn at random, and each a whole number of bytes. They are of the graph, not of a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from kvgauge.architecture import ModelArchitecture
from kvgauge.data import read_data
from kvgauge.dtypes import get_format, row_bytes
from kvgauge.engines.llamacpp.cells import ContextSizes
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.layers import LayerKind, Mechanism, Role
from kvgauge.values import dataclass

#: Symbol of a term -> key of the metadata.
SYMBOLS: Mapping[str, str] = {
    "d": "embedding_length", "f": "feed_forward_length", "V": "vocab_size", "L": "block_count",
    "x": "expert_feed_forward_length", "u": "expert_used_count", "e": "expert_count",
    "s": "expert_shared_feed_forward_length", "h": "attention.head_count", "g": "attention.head_count_kv",
    "k": "attention.key_length", "v": "attention.value_length", "kw": "attention.key_length_swa",
    "vw": "attention.value_length_swa", "km": "attention.key_length_mla", "vm": "attention.value_length_mla",
    "r": "attention.kv_lora_rank", "q": "attention.q_lora_rank", "p": "rope.dimension_count",
    "i": "ssm.inner_size", "n": "ssm.state_size", "b": "ssm.group_count", "t": "ssm.time_step_rank",
    "a": "kda.head_dim", "w": "wkv.head_size", "y": "attention.indexer.head_count",
    "z": "attention.indexer.key_length", "tk": "attention.indexer.top_k",
    "l": "embedding_length_per_layer_input", "hc": "hyper_connection.count",
    "og": "attention.output_group_count", "ol": "attention.output_lora_rank",
}  # fmt: skip

Term = tuple[float, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Moment:
    """One sum of products.

    Args:
        terms: factor in bytes and the symbols that it is multiplied by.
        condition: (left, sign, factor, right): it counts where left > or <= factor x right. Which tensors fit
            into room that others left depends on their widths.
    """

    terms: tuple[Term, ...]
    condition: tuple[tuple[str, ...], str, float, tuple[str, ...]] | None = None

    @property
    def has_logits(self) -> bool:
        """Whether it is about the rows of the vocabulary."""
        return any("V" in names for _, names in self.terms)


#: Where nothing is known of an architecture: the moments of common decoders, and how far they may be off.
GENERIC = "*"
_WINDOWS = frozenset({LayerKind.SLIDING, LayerKind.CHUNKED})
_WHOLE = frozenset({LayerKind.FULL, LayerKind.LATENT})


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of a buffer.

    Args:
        low, high: range that the true size lies in.
        moment: the terms of the largest sum, for explanations.
    """

    bytes: int
    low: int
    high: int
    moment: str


@dataclass(frozen=True, slots=True)
class GraphRow:
    """The moments of one architecture's graph.

    Args:
        buffers: ``device``, ``host`` and ``cpu`` (no devices), each also with ``_plain`` for graphs
            without flash attention, ``_away`` for a cache kept off the device, ``_full`` for windows as
            long as the context, ``_packed`` for quantised rows.
        ranges: low and high factors of each, from what was left over in the measurements.
    """

    buffers: Mapping[str, tuple[Moment, ...]]
    ranges: Mapping[str, tuple[float, float]]


@lru_cache(maxsize=1)
def _table() -> Mapping[str, object]:
    return cast("Mapping[str, object]", json.loads(read_data("llamacpp_compute.json")))


@lru_cache(maxsize=256)
def graph_row(architecture: str) -> GraphRow | None:
    """Return the moments of an architecture's graph, or None where it was not measured."""
    table = _table()
    raw = cast("Mapping[str, Mapping[str, object]]", table["architectures"]).get(architecture)
    if raw is None:
        return None
    pieces = cast("list[Mapping[str, object]]", table["moments"])
    buffers = {
        name: tuple(_moment(pieces[number]) for number in cast("list[int]", numbers))
        for name, numbers in cast("Mapping[str, object]", raw["buffers"]).items()
    }
    ranges = {n: (r[0], r[1]) for n, r in cast("Mapping[str, list[float]]", raw["ranges"]).items()}
    return GraphRow(buffers, ranges)


def _moment(raw: Mapping[str, object]) -> Moment:
    terms = tuple(
        (float(cast("float", factor)), tuple(term.split("*"))) for term, factor in raw.items() if term != "?"
    )
    condition = raw.get("?")
    if not isinstance(condition, str):
        return Moment(terms)
    sign = ">" if ">" in condition else "<"
    left, _, right = condition.partition(sign)
    factor, _, names = right.partition("*")
    return Moment(terms, (tuple(left.split("*")), sign, float(factor), tuple(names.split("*"))))


def symbols(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes
) -> Mapping[str, int]:
    """Return the value of every symbol; sizes that the file does not state are 0."""
    stated = _with_head_widths(dict(architecture.dimensions))
    window = next((c.window_tokens for c in architecture.layers if c.kind in _WINDOWS), None)
    alone = any(c.kind is LayerKind.COMPRESSED for c in architecture.layers)
    windows = 0
    if window:
        windows = sizes.window_cells(window, settings, shared=sizes.streams == 1 and not alone)
    outputs = settings.outputs or sizes.batch_tokens
    return {
        **{symbol: stated.get(name, 0) for symbol, name in SYMBOLS.items()},
        "1": 1,
        "tk": min(stated.get(SYMBOLS["tk"], 0), sizes.compressed_cells(4) if alone else sizes.cells),
        "D": int(stated.get("leading_dense_block_count", 0) > 0),
        "KB": _row_bytes(settings.k_type, stated.get(SYMBOLS["k"], 0)) if alone else 0,
        "KR": _row_bytes(settings.k_type, _widest(architecture, values=False, kinds=_WHOLE)),
        "VR": _row_bytes(settings.v_type, _widest(architecture, values=True, kinds=_WHOLE)),
        "F": int(settings.k_type == "f32"),
        "GV": _widest(architecture, values=True, kinds=frozenset(LayerKind)),
        "I": sum(c.mechanism is Mechanism.SPARSE_INDEX for c in architecture.layers),
        "J": sum(c.kind is LayerKind.INDEX for c in architecture.layers) if alone else 0,
        "Z": sizes.compressed_cells(4) if alone else 0,
        "H": sizes.compressed_cells(128) if alone else 0,
        "T": sizes.sequences if alone else sizes.streams,
        "X": architecture.context_limit_tokens or 0,
        "ub": sizes.micro_batch_tokens,
        "o": min(sizes.micro_batch_tokens, outputs),
        "C": sizes.cells,
        "W": windows,
        "S": sizes.sequences,
    }


def _row_bytes(dtype: str, elements: int) -> int:
    """Return the bytes of a cache's row; of blocks that do not divide it, the whole ones."""
    block = max(1, get_format(dtype).row_block)
    return row_bytes(dtype, Role.KEY, 1, elements // block * block)


def _widest(architecture: ModelArchitecture, *, values: bool, kinds: frozenset[LayerKind]) -> int:
    """Return the elements of the widest V row, or K row, over layers of these kinds."""
    rows = (
        sum(stream.elements for stream in group.streams if (stream.role is Role.VALUE) is values)
        for group in architecture.groups
        if group.kind in kinds
    )
    return max(rows, default=0)


def _with_head_widths(stated: dict[str, int]) -> dict[str, int]:
    """Fill in embedding / heads, and as many KV heads as query heads, where the file leaves them out."""
    heads = stated.get("attention.head_count", 0)
    if heads:
        width = stated.get("embedding_length", 0) // heads
        stated.setdefault("attention.head_count_kv", heads)
        stated.setdefault("attention.key_length", width)
        stated.setdefault("attention.value_length", width)
    return stated


def _product(names: tuple[str, ...], of: Mapping[str, int]) -> int:
    product = 1
    for name in names:
        product *= of[name]
    return product


def value(moment: Moment, of: Mapping[str, int]) -> float:
    """Return the bytes of a moment, 0 where its condition does not hold."""
    if moment.condition is not None:
        left, sign, factor, right = moment.condition
        larger = _product(left, of) > factor * _product(right, of)
        if larger != (sign == ">"):
            return 0.0
    return sum(factor * _product(names, of) for factor, names in moment.terms)


def estimate(row: GraphRow, name: str, of: Mapping[str, int], *, logits: bool = True) -> Estimate | None:
    """Return the size of one buffer, or None where no moment of it is known.

    Args:
        logits: the output layer lies on this device.
    """
    moments = [m for m in row.buffers.get(name, ()) if logits or not m.has_logits]
    if not moments:
        return None
    size, largest = max(((value(m, of), m) for m in moments), key=lambda pair: pair[0])
    low, high = row.ranges.get(name, row.ranges["device"])
    return Estimate(round(size), round(size * low), round(size * high), formula(largest))


def formula(moment: Moment) -> str:
    """Return a moment as text.

    >>> formula(Moment(((12, ("ub", "f")), (2, ("ub", "C")))))
    '12 × ub × f + 2 × ub × C'
    """
    terms = [" × ".join([f"{factor:g}", *(n for n in names if n != "1")]) for factor, names in moment.terms]
    return " + ".join(terms)
