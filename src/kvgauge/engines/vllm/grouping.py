"""Groups: layers that share block tables, so that one pool of equal blocks serves every kind.

Source: ``v1/core/kv_cache_planning.py`` of vLLM 0.33.0 and ``kv_cache_utils.py`` before it. One block of the
pool is a page in every layer of one group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kvgauge.engines.vllm.cache_spec import WHOLE_CONTEXT, CacheSpec, SpecKind
from kvgauge.engines.vllm.packing import packed_groups, padded_groups
from kvgauge.engines.vllm.versions import UNEQUAL_SINCE, VllmRules
from kvgauge.errors import FeatureUnsupportedError
from kvgauge.values import dataclass

_WINDOWS = (SpecKind.SLIDING, SpecKind.CHUNKED)


@dataclass(frozen=True, slots=True)
class SpecGroup:
    """Layers whose blocks are counted together.

    Args:
        is_sum: its page is the sum of its layers' pages; else every layer has that page.
    """

    specs: tuple[CacheSpec, ...]
    is_sum: bool = False

    @property
    def sample(self) -> CacheSpec:
        """The spec whose blocks a request is counted by."""
        return self.specs[0]

    @property
    def bytes_per_block(self) -> int:
        """Bytes of one block over all layers of the group."""
        return sum(spec.page_bytes for spec in self.specs)

    @property
    def page_bytes(self) -> int:
        """The page as the engine names it: of the group where pages differ, else of a layer."""
        return self.bytes_per_block if self.is_sum else self.sample.page_bytes


def group_layers(
    specs: tuple[CacheSpec, ...], rules: VllmRules, *, hybrid_manager: bool, block_first: bool
) -> tuple[SpecGroup, ...]:
    """Return the groups of a model, over all its pipeline stages.

    Args:
        hybrid_manager: False keeps windows as full attention.
        block_first: the layout puts the block before the layer, so that groups may differ in bytes.

    Raises:
        FeatureUnsupportedError: pages that this version can't bring to one size.
    """
    if not specs:
        return ()
    if rules.engine_v0 or not rules.hybrid_manager or not hybrid_manager:
        specs = _without_windows(specs, everywhere=rules.engine_v0)
    if not rules.chunked_groups and any(spec.kind is SpecKind.CHUNKED for spec in specs):
        specs = _without_windows(specs, everywhere=False)
    if len({spec.bucket for spec in specs}) == 1:
        return (SpecGroup(specs),)
    uniform = len({(spec.family, spec.block_tokens) for spec in specs}) == 1
    if uniform and (rules.uniform_groups or rules.engine_v0):
        return (SpecGroup(specs, is_sum=True),)
    if block_first and len({spec.page_bytes for spec in specs}) > 1:
        return tuple(SpecGroup(part, is_sum=True) for part in _unequal_groups(specs, rules))
    return _equal_groups(_one_page(specs), rules)


def _unequal_groups(specs: tuple[CacheSpec, ...], rules: VllmRules) -> tuple[tuple[CacheSpec, ...], ...]:
    if rules.unequal_groups == "unknown":
        raise FeatureUnsupportedError(
            f"how vllm {rules.version} groups the caches of this model is not known, "
            f"only from {UNEQUAL_SINCE} on",
            hint=f"--engine vllm@{UNEQUAL_SINCE} or a later version",
            field="engine",
        )
    return packed_groups(specs) if rules.unequal_groups == "overlaid" else padded_groups(specs)


def block_bytes(groups: Sequence[Sequence[CacheSpec]], rules: VllmRules) -> int:
    """Return the bytes of one block that every group draws from, its page in each layer of a group.

    Groups lie over one another, so that the largest counts. Those of unequal bytes once had slots by page
    size instead: as many of a size as any group has layers of it, or of every size of the first group.
    """
    held = [group for group in groups if group]
    if rules.unequal_groups in ("overlaid", "unknown") or len({s.page_bytes for g in held for s in g}) < 2:
        return max((sum(spec.page_bytes for spec in group) for group in held), default=0)
    counts = [Counter(spec.page_bytes for spec in group) for group in held]
    if rules.unequal_groups == "by_tuple":
        return sum(counts[0]) * max(max(count.values()) for count in counts)
    sizes = {size for count in counts for size in count}
    return sum(size * max(count[size] for count in counts) for size in sizes)


def _without_windows(specs: tuple[CacheSpec, ...], *, everywhere: bool) -> tuple[CacheSpec, ...]:
    """Keep windows as full attention where full layers stand beside them (everywhere in the V0 engine)."""
    whole = [spec for spec in specs if spec.kind in WHOLE_CONTEXT]
    if not whole and not everywhere:
        return specs
    block = whole[0].block_tokens if whole else specs[0].block_tokens
    return tuple(spec.as_full(block) if spec.kind in _WINDOWS else spec for spec in specs)


def _one_page(specs: tuple[CacheSpec, ...]) -> tuple[CacheSpec, ...]:
    """Bring every page to the largest: by larger blocks where they divide it, else by padding."""
    largest = max(spec.page_bytes for spec in specs)
    return tuple(_to_page(spec, largest) for spec in specs)


def _to_page(spec: CacheSpec, page: int) -> CacheSpec:
    if spec.page_bytes == page:
        return spec
    if spec.kind is SpecKind.RECURRENT:
        return spec.with_page(page)
    times, rest = divmod(page, spec.page_bytes)
    if rest == 0 and spec.can_rescale:
        return spec.with_block(spec.block_tokens * times)
    if spec.kind in (SpecKind.LATENT, SpecKind.INDEX):
        raise FeatureUnsupportedError(
            f"how vllm brings pages of {spec.page_bytes} and {page} bytes to one size is not known",
            hint="another --block-size or --kv-cache-dtype may be",
            field="block-size",
        )
    return spec.with_page(page)


def _equal_groups(specs: tuple[CacheSpec, ...], rules: VllmRules) -> tuple[SpecGroup, ...]:
    buckets: dict[tuple[object, ...], list[CacheSpec]] = {}
    for spec in specs:
        buckets.setdefault(spec.bucket, []).append(spec)
    counts = [len(bucket) for bucket in buckets.values()]
    fewest, most = min(counts), max(counts)
    size = most if most < fewest * rules.group_threshold else fewest
    groups: list[SpecGroup] = []
    for bucket in buckets.values():
        number = -(-len(bucket) // size)
        for i in range(number):
            part = bucket[i::number] if rules.interleaved else bucket[i * size : (i + 1) * size]
            groups.append(SpecGroup(tuple(part)))
    return tuple(groups)
