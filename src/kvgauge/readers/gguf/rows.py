"""One data row a GGUF architecture: what llama.cpp's code does with it that no key of the file says.

``data/gguf_architectures.json`` holds the rows; ``general.architecture`` names them. A new architecture of
known mechanisms is one row. Source: llama.cpp v0.5.0, ``src/llama-arch.cpp`` (names) and
``load_arch_hparams`` of ``src/models/*.cpp``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from kvgauge.data import read_data
from kvgauge.values import dataclass


@dataclass(frozen=True, slots=True)
class Windows:
    """Which layers slide.

    Args:
        period: every ``period``-th layer is full, the others slide; 0: all slide; None: the file lists them.
            A list or a number under ``attention.sliding_window_pattern`` goes before it.
        full_first: the full layer opens the period instead of closing it.
        optional: without ``attention.sliding_window`` every layer is full.
        default: window where the key is absent.
        fixed: window whatever the key says.
        chunked: chunks of that many tokens instead of a window.
        num_layers: only models of this many layers slide.
    """

    period: int | None = None
    full_first: bool = False
    optional: bool = False
    default: int | None = None
    fixed: int | None = None
    chunked: bool = False
    num_layers: int | None = None


@dataclass(frozen=True, slots=True)
class Indexer:
    """Which layers keep index keys beside their cache.

    Args:
        layers: all; types (``attention.indexer.types``, 1 where a layer owns an indexer); after_dense (from
            ``leading_dense_block_count`` on); attention (all that are not recurrent).
        pooled: one key stands for ``attention.compress_ratios`` tokens.
        optional: models without ``attention.indexer.top_k`` have none.
        listed_from_context: below this context length every layer owns an indexer unless types are listed.
        period: without types, layers 0, 1, 2 and every ``period``-th after layer 2 own one.
    """

    layers: str
    pooled: bool = False
    optional: bool = False
    listed_from_context: int = 0
    period: int | None = None


@dataclass(frozen=True, slots=True)
class ArchitectureRow:
    """What is known of an architecture beside its keys.

    Args:
        known: the architecture has a row; others are read by their keys alone and marked inferred.
        no_cache: encoders and diffusion models keep none.
        refused: why a file of this architecture is no language model of its own.
        multi_head: converters leave ``attention.head_count_kv`` out where each query head has its own.
        width_stated: published files state ``attention.key_length``; embedding / heads is not the rule.
        rotates_whole_head: ``rope.dimension_count`` is the width of a head.
        windows: which layers slide; None: the code reads no window.
        state: the recurrence, a ``Mechanism``.
        state_layers: all; beside (each layer has attention too); no_kv_heads (layers without KV heads);
            no_kv_heads_or_ffn (those without a feed-forward part either); interval (all but every
            ``full_attention_interval``-th, or ``attention.recurrent_layers``).
        interval: that interval where the key is absent.
        latent: rows are latents where the ``_mla`` keys stand; without them heads are expanded.
        latent_needed: the code requires those keys.
        indexer: index keys beside the cache.
        compressed: DeepSeek-V4's window and compressed records.
        own_layers: layers after this many read an earlier layer's cache.
        encoder_decoder: decoder layers keep the encoder's K and V too.
        loops: ``num_loops`` runs the blocks again, each pass with a cache of its own.
        router_layer: one more attention layer of one head, which routes adapters.
    """

    name: str
    known: bool = False
    no_cache: bool = False
    refused: str | None = None
    multi_head: bool = False
    width_stated: bool = False
    rotates_whole_head: bool = False
    windows: Windows | None = None
    state: str | None = None
    state_layers: str | None = None
    interval: int | None = None
    latent: bool = False
    latent_needed: bool = False
    indexer: Indexer | None = None
    compressed: bool = False
    own_layers: int | None = None
    encoder_decoder: bool = False
    loops: bool = False
    router_layer: bool = False


@lru_cache(maxsize=1)
def _table() -> Mapping[str, dict[str, object]]:
    return cast("Mapping[str, dict[str, object]]", json.loads(read_data("gguf_architectures.json")))


@lru_cache(maxsize=256)
def architecture_row(name: str) -> ArchitectureRow:
    """Return the row of an architecture; an unknown one gets one with ``known`` false.

    >>> architecture_row("gemma3").windows.period
    6
    """
    raw = _table().get(name)
    if raw is None:
        return ArchitectureRow(name, windows=Windows(optional=True), latent=True)
    values = dict(raw)
    windows, indexer = values.get("windows"), values.get("indexer")
    if isinstance(windows, dict):
        values["windows"] = Windows(**windows)
    if isinstance(indexer, dict):
        values["indexer"] = Indexer(**indexer)
    return ArchitectureRow(name, known=True, **values)  # type: ignore[arg-type]


def known_architectures() -> tuple[str, ...]:
    """Return all architectures with a row."""
    return tuple(_table())
