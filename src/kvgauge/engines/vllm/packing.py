"""Groups of unequal bytes, for layouts that put the block before the layer (DeepSeek-V4 from vLLM 0.24 on).

Source: ``v1/core/kv_cache_planning.py`` of vLLM 0.33.0.
"""

from __future__ import annotations

from collections import Counter

from kvgauge.engines.vllm.cache_spec import CacheSpec


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
