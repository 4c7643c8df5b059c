"""``learn flash``: both attentions run and counted, then the closed form at the size of a model."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import kvgauge
from kvgauge.architecture import Note
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.lab.element import plain_element
from kvgauge.lab.flash.attention import HeadShape, Tile, plain_attention, tiled_attention
from kvgauge.lab.flash.formula import (
    plain_traffic,
    score_elements,
    score_passes,
    seen_scores,
    tiled_traffic,
)
from kvgauge.lab.flash.memory import Traffic
from kvgauge.lab.limits import bounded
from kvgauge.layers import LayerKind, Mechanism
from kvgauge.models import Model, ModelLike, load

DEFAULT_MODEL = "Qwen/Qwen3-8B"
_DEFAULT_TOKENS, _MAX_TOKENS = 32_768, 1 << 30
_MAX_SEQUENCES, _MAX_TILE = 1 << 20, 4096
_DEFAULT_TILE = Tile(128, 64)

#: The head that is run, in prefill and decode, and the tiles that it is run in.
_RUN = HeadShape(96, 96, 16)
_RUN_TILES = (Tile(8, 8), Tile(16, 16), Tile(16, 48), Tile(48, 16), Tile(40, 40), Tile(96, 96))


@dataclass(frozen=True, slots=True)
class TileRun:
    """One attention that was run. ``tile`` None: the plain one, whose fast memory is not counted.

    Args:
        formula: what the closed form gives for the same.
        difference: largest difference to the plain outputs.
    """

    tile: Tile | None
    causal: bool
    counted: Traffic
    formula: Traffic
    difference: float

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        return {
            "tile": None if self.tile is None else [self.tile.query_rows, self.tile.key_rows],
            "causal": self.causal,
            "read_elements": self.counted.read_elements,
            "written_elements": self.counted.written_elements,
            "peak_elements": self.counted.peak_elements if self.tile else None,
            "equals_formula": self.counted == self.formula,
            "difference": self.difference,
        }


@dataclass(frozen=True, slots=True)
class LayerTraffic:
    """One attention layer of a model: all query heads, one sequence, bytes.

    Args:
        score_matrix_bytes: scores of all heads, were they in memory.
        score_passes_bytes: scores and weights, each written and read once: what tiles take away.
        seen_fraction: of the scores, those that a causal mask leaves.
        plain_bytes, tiled_bytes, tiled_causal_bytes: everything moved: queries, keys, values, outputs too.
        decode_passes_bytes, decode_plain_bytes, decode_tiled_bytes: of one new token over as many tokens.
        peak_elements: held at once by one head in tiles.
    """

    head_score_bytes: int
    score_matrix_bytes: int
    score_passes_bytes: int
    seen_fraction: Fraction
    plain_bytes: int
    tiled_bytes: int
    tiled_causal_bytes: int
    decode_passes_bytes: int
    decode_plain_bytes: int
    decode_tiled_bytes: int
    peak_elements: int

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        named = {name: getattr(self, name) for name in self.__slots__}
        return {**named, "seen_fraction": float(self.seen_fraction)}


@dataclass(frozen=True, slots=True)
class FlashAnswer:
    """The answer of ``learn flash``.

    Args:
        num_layers: layers with attention over all tokens.
        cache_bytes: what ``size`` gives for this load in this dtype; tiles take nothing off it.
        run_shape: the head that was run.
    """

    model: Model
    tokens: int
    sequences: int
    dtype: str
    tile: Tile
    num_heads: int
    head_dim: int
    num_layers: int
    cache_bytes: int
    runs: tuple[TileRun, ...]
    layer: LayerTraffic
    run_shape: HeadShape = _RUN
    notes: tuple[Note, ...] = ()

    @property
    def load_passes_bytes(self) -> int:
        """Score passes of all layers and sequences in one prefill."""
        return self.num_layers * self.sequences * self.layer.score_passes_bytes

    @property
    def load_tiled_bytes(self) -> int:
        """What tiles move in the same prefill, masked tiles left out."""
        return self.num_layers * self.sequences * self.layer.tiled_causal_bytes

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.learn_flash/1`` object."""
        return {
            "schema": "kvgauge.learn_flash/1",
            "model": self.model.to_dict(),
            "request": {
                "context_tokens": self.tokens,
                "sequences": self.sequences,
                "dtype": self.dtype,
                "tile": [self.tile.query_rows, self.tile.key_rows],
            },
            "num_heads": self.num_heads,
            "head_dim": self.head_dim,
            "num_layers": self.num_layers,
            "cache_bytes": self.cache_bytes,
            "run": {"tokens": self.run_shape.num_keys, "head_dim": self.run_shape.head_dim},
            "runs": [run.to_dict() for run in self.runs],
            "layer": self.layer.to_dict(),
            "load": {"score_passes_bytes": self.load_passes_bytes, "tiled_bytes": self.load_tiled_bytes},
            "notes": [note.to_dict() for note in self.notes],
        }


def learn_flash(
    model: ModelLike | None = None,
    *,
    tokens: int | str | None = None,
    sequences: int | None = None,
    dtype: str | None = None,
    tile: str | None = None,
    offline: bool = False,
) -> FlashAnswer:
    """Run attention with and without tiles, and give the traffic of a model's layers in closed form.

    Args:
        tile: rows of queries and of keys held at once, such as ``128x64``.

    Raises:
        KvgaugeError: the model is refused or has no layer of plain attention, or a number is out of range.

    >>> answer = learn_flash()
    >>> answer.layer.score_passes_bytes / 1e9  # the article's 274.9
    274.877906944
    """
    found = load(model or DEFAULT_MODEL, offline=offline)
    heads = _heads(found)
    count = bounded(tokens, _DEFAULT_TOKENS, 1, _MAX_TOKENS, "tokens")
    name, size = plain_element(dtype or found.architecture.model_dtype)
    asked = _DEFAULT_TILE if tile is None else parse_tile(tile)
    number = bounded(sequences, 1, 1, _MAX_SEQUENCES, "sequences")
    kept = kvgauge.size(found, context=count, sequences=number, kv_dtype=name, no_weights=True)
    return FlashAnswer(
        model=found,
        tokens=count,
        sequences=number,
        dtype=name,
        tile=asked,
        num_heads=heads.num_heads,
        head_dim=heads.width,
        num_layers=heads.num_layers,
        cache_bytes=kept.cache.total_bytes,
        runs=_runs(),
        layer=layer_traffic(heads.num_heads, HeadShape(count, count, heads.width), asked, size),
        notes=_left_out(heads.num_left_out),
    )


def parse_tile(text: str) -> Tile:
    """Read ``64x128``: rows of queries, rows of keys.

    Raises:
        InvalidRequestError: it is something else, or a side is out of range.

    >>> parse_tile("64x128")
    Tile(query_rows=64, key_rows=128)
    """
    match = re.fullmatch(r"(\d{1,6})[x×](\d{1,6})", text.strip().lower())
    if match is None:
        raise InvalidRequestError(
            f"--tile {text!r} is not understood", hint="write it like 128x64", field="tile"
        )
    rows, columns = (bounded(side, 0, 1, _MAX_TILE, "tile") for side in match.groups())
    return Tile(rows, columns)


class _Heads(NamedTuple):
    """The heads of the layers that are counted, and how many layers with attention are not."""

    num_heads: int
    width: int
    num_layers: int
    num_left_out: int


def _heads(model: Model) -> _Heads:
    """Return the most usual shape of layers that attend to all tokens.

    Raises:
        FeatureUnsupportedError: there is none whose K and V are equally wide.
    """
    architecture = model.architecture
    full = [
        {stream.width for stream in layer.streams}
        for layer in architecture.layers
        if layer.mechanism is Mechanism.ATTENTION and layer.kind is LayerKind.FULL
    ]
    widths = Counter(width for each in full if len(each) == 1 for width in each)
    if not widths or not architecture.num_attention_heads:
        raise FeatureUnsupportedError(
            f"{model.raw.id} has no layer of plain attention over all tokens",
            hint="kvgauge explain shows what its layers keep",
        )
    ((width, count),) = widths.most_common(1)
    return _Heads(architecture.num_attention_heads, width, count, architecture.num_layers - count)


def _left_out(count: int) -> tuple[Note, ...]:
    if not count:
        return ()
    message = f"layers without attention over all tokens, or of another width, are not counted: {count}"
    return (Note("flash_layers_left_out", "info", message, (("count", str(count)),)),)


def _runs() -> tuple[TileRun, ...]:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((_RUN.num_keys, _RUN.head_dim)) for _ in range(3))
    runs = []
    for causal in (False, True):
        shape = HeadShape(_RUN.num_queries, _RUN.num_keys, _RUN.head_dim, causal)
        plain, moved = plain_attention(q, k, v, causal=causal)
        runs.append(TileRun(None, causal, moved, plain_traffic(shape), 0.0))
        for tile in _RUN_TILES:
            tiled, moved = tiled_attention(q, k, v, tile, causal=causal)
            off = float(np.abs(tiled - plain).max())
            runs.append(TileRun(tile, causal, moved, tiled_traffic(shape, tile), off))
    return tuple(runs)


def layer_traffic(heads: int, shape: HeadShape, tile: Tile, size: int) -> LayerTraffic:
    """Return the traffic of one layer whose heads have this shape, in elements of ``size`` bytes."""
    causal = HeadShape(shape.num_queries, shape.num_keys, shape.head_dim, causal=True)
    decode = HeadShape(1, shape.num_keys, shape.head_dim)
    tiled = tiled_traffic(shape, tile)
    return LayerTraffic(
        head_score_bytes=size * score_elements(shape),
        score_matrix_bytes=heads * size * score_elements(shape),
        score_passes_bytes=heads * size * score_passes(shape),
        seen_fraction=Fraction(seen_scores(causal), score_elements(shape)),
        plain_bytes=heads * size * plain_traffic(shape).moved_elements,
        tiled_bytes=heads * size * tiled.moved_elements,
        tiled_causal_bytes=heads * size * tiled_traffic(causal, tile).moved_elements,
        decode_passes_bytes=heads * size * score_passes(decode),
        decode_plain_bytes=heads * size * plain_traffic(decode).moved_elements,
        decode_tiled_bytes=heads * size * tiled_traffic(decode, tile).moved_elements,
        peak_elements=tiled.peak_elements,
    )
