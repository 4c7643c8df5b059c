"""What llama.cpp v0.5.0 allocated, from the geometry of our architectures: rows x cells, to the byte.

``golden/llamacpp_v0.5.0_caches.jsonl``: one model a line, its GGUF keys without prefix, the names of its caches
and its distinct runs ``[type_k, type_v, flash attention, [[cells, layers, streams, K MiB, V MiB] a cache],
[rows, snapshots, R MiB, S MiB] of the state, bytes of all]``. MiB as logged, rounded; bytes exact. ``num_runs``
counts the runs behind them: CPU, one GPU with all layers, and the settings of the server.
"""

from __future__ import annotations

import pytest

from kvgauge.dtypes import row_bytes
from kvgauge.layers import LayerKind, Mechanism, Role
from kvgauge.readers.gguf import read_metadata
from support import golden_lines

RECORDS = golden_lines("llamacpp_v0.5.0_caches.jsonl")
MIB = 1 << 20
ROUNDED = 0.005001 * MIB
MAIN = (LayerKind.FULL, LayerKind.LATENT)
WINDOWS = (LayerKind.SLIDING, LayerKind.CHUNKED)


def metadata_of(record: dict) -> dict:
    name = record["architecture"]
    return {"general.architecture": name, **{f"{name}.{key}": value for key, value in record["keys"].items()}}


def members(architecture, part: str | None):
    """Return the caches that make up one of llama.cpp's."""
    compressed = [c for c in architecture.layers if c.mechanism is Mechanism.COMPRESSED_ATTENTION]
    if part == "non-SWA" and compressed:
        return []
    if part in ("DSV4 CSA compressed", "DSV4 HCA compressed"):
        ratio = 4 if "CSA" in part else 128
        return [
            c
            for c in compressed
            if c.kind is LayerKind.COMPRESSED and c.streams[0].counted.step_tokens == ratio
        ]
    kinds = WINDOWS if part == "SWA" else MAIN if part in (None, "non-SWA", "main") else (LayerKind.INDEX,)
    return [c for c in architecture.layers if c.kind in kinds]


def cell_bytes(cache, type_k: str, type_v: str) -> tuple[int, int]:
    """Return bytes of one cell: llama.cpp packs K, or latent and rope together, as one row."""
    values = [s for s in cache.streams if s.role is Role.VALUE]
    keys = [s for s in cache.streams if s.role is not Role.VALUE and s.role is not Role.COMPRESSOR]
    k = row_bytes(type_k, Role.KEY, 1, sum(s.elements for s in keys))
    return k, sum(row_bytes(type_v, Role.VALUE, 1, s.elements) for s in values)


def state_bytes(architecture) -> tuple[int, int]:
    """Return (convolution or compressor, state) of one sequence; llama.cpp keeps them in f32."""
    streams = [s for c in architecture.layers for s in c.streams]
    shifted = (Role.CONV, Role.COMPRESSOR)
    return tuple(
        4 * sum(s.elements for s in streams if s.role in roles) for roles in (shifted, (Role.RECURRENT,))
    )


def padded(architecture, caches, values: int, type_v: str) -> int:
    """Without flash attention V is as wide as the widest layer's, over all caches."""
    if not values:
        return 0
    widths = [s.elements for c in architecture.layers for s in c.streams if s.role is Role.VALUE]
    return row_bytes(type_v, Role.VALUE, 1, max(widths)) * len(caches)


@pytest.mark.parametrize("record", RECORDS, ids=[record["model"] for record in RECORDS])
def test_every_cache_comes_out(record):
    architecture = read_metadata(metadata_of(record))
    conv, state = state_bytes(architecture)
    for type_k, type_v, flash, parts, recurrent, total_bytes in record["runs"]:
        total = 0
        for name, (cells, layers, streams, k_mib, v_mib) in zip(record["parts"], parts, strict=True):
            caches = members(architecture, name)
            assert len(caches) == layers, name
            rows = [cell_bytes(c, type_k, type_v) for c in caches]
            keys, values = sum(k for k, _ in rows), sum(v for _, v in rows)
            values = values if flash else padded(architecture, caches, values, type_v)
            assert abs(keys * cells * streams - k_mib * MIB) < ROUNDED
            assert abs(values * cells * streams - v_mib * MIB) < ROUNDED
            total += (keys + values) * cells * streams
        if recurrent is not None:
            rows, snapshots, r_mib, s_mib = recurrent
            held = rows * (1 + snapshots)
            assert abs(conv * held - r_mib * MIB) < 3 * ROUNDED  # DeepSeek-V4: three logged figures
            assert abs(state * held - s_mib * MIB) < ROUNDED
            total += (conv + state) * held
        assert total == total_bytes


def test_the_records_are_many():
    assert len(RECORDS) == 44
    assert sum(record["num_runs"] for record in RECORDS) == 6490
