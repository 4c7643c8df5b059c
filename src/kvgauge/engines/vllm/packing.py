"""Groups of unequal bytes, for layouts that put the block before the layer (DeepSeek-V4).

Source: ``v1/core/kv_cache_planning.py`` of vLLM 0.33.0, ``kv_cache_utils.py`` of 0.20.2 to 0.27.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kvgauge.engines.vllm.cache_spec import CacheSpec, SpecKind


def packed_groups(specs: tuple[CacheSpec, ...]) -> tuple[tuple[CacheSpec, ...], ...]:
    """Return groups of one kind and block each, cut so that little is wasted beside the widest.

    A bucket with as many layers of each page size may be cut into equal repeats. How many layers of a size a
    part holds is chosen from the largest bucket of several sizes up to the largest of any, for the least
    padding, the larger of equals.
    """
    buckets: dict[tuple[object, ...], list[CacheSpec]] = {}
    for spec in specs:
        buckets.setdefault((spec.family, spec.block_tokens), []).append(spec)
    balanced = {key: layers for key, bucket in buckets.items() if (layers := _repeats(bucket)) is not None}
    if not balanced:
        return tuple(tuple(bucket) for bucket in buckets.values())
    size = _best_repeats(buckets, balanced)
    groups: list[tuple[CacheSpec, ...]] = []
    for key, bucket in buckets.items():
        parts = -(-balanced[key] // size) if key in balanced else 1
        groups += _cut(bucket, parts)
    return tuple(groups)


def padded_groups(specs: tuple[CacheSpec, ...]) -> tuple[tuple[CacheSpec, ...], ...]:
    """Return groups as versions before 0.27 cut them: layers of the whole context first, then windows.

    Pages of windows are padded to the next size that layers of the whole context have. A layer of each page
    size makes a tuple; windows are cut into parts of equally many, for the least padding, but no fewer than
    the whole context has.
    """
    whole = tuple(spec for spec in specs if spec.kind is not SpecKind.SLIDING)
    windows: dict[tuple[int, int], list[CacheSpec]] = {}
    for spec in specs:
        if spec.kind is SpecKind.SLIDING:
            windows.setdefault((spec.block_tokens, spec.window_tokens), []).append(spec)
    tuples = [_most_of_a_size(bucket) for bucket in (whole, *windows.values()) if bucket]
    least, most = tuples[0], max(tuples)
    size = min(range(least, most + 1), key=lambda d: (sum(-n % d for n in tuples), -d))
    sizes = sorted({spec.page_bytes for spec in whole})
    groups = [whole] if whole else []
    for bucket in windows.values():
        padded = [_padded(spec, sizes) for spec in bucket]
        groups += _cut(padded, -(-_most_of_a_size(padded) // size))
    return tuple(groups)


def _most_of_a_size(specs: Iterable[CacheSpec]) -> int:
    return max(Counter(spec.page_bytes for spec in specs).values())


def _padded(spec: CacheSpec, sizes: list[int]) -> CacheSpec:
    """Pad a page to the next of these sizes; a larger one stays."""
    larger = [size for size in sizes if size >= spec.page_bytes]
    return spec.with_page(larger[0]) if larger else spec


def _repeats(bucket: list[CacheSpec]) -> int | None:
    """Return how many layers of each page size a bucket holds; None where sizes differ in number."""
    counts = set(Counter(spec.page_bytes for spec in bucket).values())
    return counts.pop() if len(counts) == 1 else None


def _best_repeats(
    buckets: dict[tuple[object, ...], list[CacheSpec]], balanced: dict[tuple[object, ...], int]
) -> int:
    mixed = [n for key, n in balanced.items() if len({s.page_bytes for s in buckets[key]}) > 1]
    most = max(balanced.values())
    least = max(mixed, default=most)
    return min(range(least, most + 1), key=lambda d: (sum(-n % d for n in balanced.values()), -d))


def _cut(bucket: list[CacheSpec], parts: int) -> list[tuple[CacheSpec, ...]]:
    """Deal the layers of each page size out to the parts in turn."""
    if parts == 1:
        return [tuple(bucket)]
    dealt: list[list[CacheSpec]] = [[] for _ in range(parts)]
    seen: Counter[int] = Counter()
    for spec in bucket:
        dealt[seen[spec.page_bytes] % parts].append(spec)
        seen[spec.page_bytes] += 1
    return [tuple(part) for part in dealt]
