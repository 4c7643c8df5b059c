"""What sizes of tensors depend on, by block: the file's sizes and those of the context."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kvgauge.architecture import ModelArchitecture
from kvgauge.engines.llamacpp.cells import ContextSizes, pad
from kvgauge.engines.llamacpp.compute import symbols
from kvgauge.engines.llamacpp.settings import LlamaSettings
from kvgauge.identity import Identity
from kvgauge.layers import LayerKind

#: Symbols beside those of ``compute.SYMBOLS`` -> key of the metadata.
MORE: Mapping[str, str] = {
    "cv": "ssm.conv_kernel", "lc": "shortconv.l_cache", "ml": "moe_latent_size",
    "xc": "expert_chunk_feed_forward_length", "dl": "attention.decay_lora_rank",
    "il": "attention.iclr_lora_rank", "gl": "attention.gate_lora_rank",
    "rl": "attention.value_residual_mix_lora_rank",
}  # fmt: skip
#: Keys that may list one size a block -> symbol.
BY_BLOCK: Mapping[str, str] = {
    "attention.head_count": "h", "attention.head_count_kv": "g", "feed_forward_length": "f",
}  # fmt: skip
_OWN_PARTS = frozenset({LayerKind.CONVOLUTION, LayerKind.CROSS})
_FEED_FORWARD = ("n", "d", "e")
#: A head's values are turned in squares of a power of two, at least this (``attn_inp_k_rot``).
_LEAST_TURN = 64


def turned(width: int) -> int:
    """Return the side of the matrix that turns rows of a head of this width before they are packed.

    >>> turned(128), turned(192), turned(96)
    (128, 64, 0)
    """
    return 0 if width <= 0 or width % _LEAST_TURN else width & -width


def block_kinds(architecture: ModelArchitecture) -> tuple[str, ...]:
    """Return the kind of every block: what it keeps and its feed-forward part, as in ``full.e``.

    Nothing where the blocks are not known.
    """
    return _block_kinds(Identity(architecture))


@lru_cache(maxsize=16)
def _block_kinds(of: Identity[ModelArchitecture]) -> tuple[str, ...]:
    """Keep the kinds of a model's blocks: a search asks for them hundreds of times."""
    architecture = of.of
    parts = dict(architecture.block_dimensions).get("feed_forward")
    if not parts or len(parts) != architecture.num_layers:
        return ()
    owners = {cache.index: cache.kind for cache in architecture.layers}
    kept: list[set[str]] = [set() for _ in parts]
    for cache in architecture.layers:
        if cache.index >= len(kept) or cache.kind in _OWN_PARTS:
            continue
        word = cache.kind.value
        if cache.kind is LayerKind.SHARED:
            owner = owners.get(cache.shares_cache_of if cache.shares_cache_of is not None else -1)
            word = f"shared-{owner.value if owner else '?'}"
        kept[cache.index].add(word)
    return tuple(
        "+".join(sorted(words) or ["none"]) + "." + _FEED_FORWARD[part]
        for words, part in zip(kept, parts, strict=True)
    )


def graph_symbols(
    architecture: ModelArchitecture, settings: LlamaSettings, sizes: ContextSizes
) -> dict[str, int]:
    """Return the value of every symbol, but those that differ by block."""
    stated = dict(architecture.dimensions)
    of = dict(symbols(architecture, settings, sizes))
    of |= {symbol: stated.get(name, 0) for symbol, name in MORE.items()}
    of["kw"], of["vw"] = of["kw"] or of["k"], of["vw"] or of["v"]
    # A micro-batch is shared out evenly over the sequences.
    of["ub"] = pad(of["ub"], sizes.sequences)
    of |= {"us": of["ub"] // sizes.sequences, "o": min(of["ub"], of["o"])}
    return of | {"kr": turned(of["k"]), "kwr": turned(of["kw"]), "zr": turned(of["z"])}


def block_symbols(architecture: ModelArchitecture, of: Mapping[str, int]) -> tuple[Mapping[str, int], ...]:
    """Return the symbols of each block; one mapping for all where no size differs."""
    listed = [(BY_BLOCK[name], sizes) for name, sizes in architecture.block_dimensions if name in BY_BLOCK]
    if not listed:
        return (of,) * architecture.num_layers
    alike: dict[tuple[int, ...], Mapping[str, int]] = {}
    found = []
    for entries in zip(*(sizes for _, sizes in listed), strict=True):
        if entries not in alike:
            own = {symbol: size for (symbol, _), size in zip(listed, entries, strict=True) if size}
            alike[entries] = {**of, **own}
        found.append(alike[entries])
    return tuple(found)
