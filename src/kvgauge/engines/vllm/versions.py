"""What each vLLM version does differently: a table of named rules, each with the first version that has it.

Found by comparing the released wheels 0.6.6 to 0.33.0 and held against start-up logs of those versions. A
development build counts as the release that it leads to.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

from kvgauge.engines.versions import too_old
from kvgauge.errors import InvalidRequestError
from kvgauge.values import dataclass

Tokens = Literal["blocks", "by_group", "concurrency"]
StateCaching = Literal["one", "off", "all", "align"]
UnequalGroups = Literal["overlaid", "by_page", "by_tuple", "unknown"]

OLDEST = "0.6.0"
NEWEST = "0.33.0"
#: First version whose groups may differ in bytes (it came with DeepSeek-V4).
UNEQUAL_SINCE = "0.20.0"
#: First version that keeps latents.
LATENTS_SINCE = "0.7.0"


class Version(NamedTuple):
    """A version that sorts: stage 0 is a development build, 1 a candidate, 2 the release."""

    major: int
    minor: int
    patch: int
    stage: int = 2
    number: int = 0


@dataclass(frozen=True, slots=True)
class VllmRules:
    """The rules of one version.

    Args:
        engine_v0: one kind of cache of every attention layer; state lies beside the blocks.
        latent_row_bytes: what a row of a latent is rounded up to.
        latents: MLA keeps latents; before, K and V of every head, in a form that is not known here.
        hybrid_manager: layers of several kinds share one pool; before, windows beside full layers were full.
        chunked_groups: chunked layers have blocks of their own; before, they were kept as full attention.
        uniform_groups: layers of one kind and unequal pages form one group whose page is their sum.
        unequal_groups: how groups of unequal bytes share a block (DeepSeek-V4): they lie over one another;
            before, layers of one page size did, windows padded to the pages of whole-context layers; before,
            every group got as many of each page.
        interleaved: group i of g takes layers i, i + g, ...; before, it took neighbours.
        group_threshold: the widest bucket gives the group size when it is below this times the narrowest.
        tokens: how the printed token capacity follows: blocks x block; blocks // groups x block; or the
            concurrency x the longest request.
        dcp_tokens: decode context parallelism multiplies the printed tokens.
        concurrency_by_blocks: printed concurrency is blocks over the blocks of one request; before,
            tokens over the longest request.
        in_flight_batches: windows keep the tokens of all batches in flight; before, of one batch.
        state_caching: what a state layer keeps while prefix caching is on.
        prefix_caching_hybrid: prefix caching is on by default for models with state layers.
        state_checkpoint: one more state page where prefill can hand over a checkpoint.
        state_alignment: blocks of hybrids follow the checkpoint grain of their state layers.
        delta_majors: compute capabilities (major) on which FlashInfer runs the gated delta net.
        mla_hybrid_multiple: what the block of a hybrid grows by beside a latent.
        held_back_blocks: blocks that admission keeps free.
        checks_states: a hybrid with full CUDA graphs does not start with more sequences than blocks; before,
            graphs of more were left out (config/compilation.py).
        tier_160: cards from 160 GiB on batch 16,384 tokens.
        small_tier: cards of 70 GiB and more that batch as smaller ones do.
        fits_items: where images attend both ways, a batch holds the largest of them.
        utilization: default share of the card.
        composite_gemma: head widths above 256 run on a pair of backends of their own.
    """

    version: str
    engine_v0: bool = False
    latents: bool = True
    latent_row_bytes: int = 1
    hybrid_manager: bool = True
    chunked_groups: bool = True
    uniform_groups: bool = True
    unequal_groups: UnequalGroups = "overlaid"
    interleaved: bool = True
    group_threshold: float = 1.5
    tokens: Tokens = "concurrency"
    dcp_tokens: bool = True
    concurrency_by_blocks: bool = True
    in_flight_batches: bool = True
    state_caching: StateCaching = "align"
    prefix_caching_hybrid: bool = True
    state_checkpoint: bool = True
    state_alignment: bool = True
    delta_majors: tuple[int, ...] = (9, 10, 12)
    mla_hybrid_multiple: int = 128
    held_back_blocks: int = 1
    checks_states: bool = True
    tier_160: bool = True
    small_tier: tuple[str, ...] = ("a100", "gb10")
    fits_items: bool = True
    utilization: str = "0.92"
    composite_gemma: bool = True


#: From -> what changed there, newest first: the fields as they were before that version.
_BEFORE: tuple[tuple[str, dict[str, object]], ...] = (
    # Logs of 0.29 on SM120 show neither grain nor checkpoint page there.
    ("0.33.0.dev0", {"mla_hybrid_multiple": 64, "composite_gemma": False, "delta_majors": (9, 10),
                     "small_tier": ("a100",)}),
    ("0.32.0.dev0", {"state_caching": "all"}),
    ("0.29.0.dev0", {"held_back_blocks": 0, "state_checkpoint": False, "state_alignment": False}),
    ("0.28.0.dev0", {"tier_160": False, "prefix_caching_hybrid": False}),
    ("0.27.0.dev0", {"unequal_groups": "by_page"}),
    ("0.26.0.dev0", {"in_flight_batches": False}),
    ("0.24.0.dev0", {"unequal_groups": "by_tuple"}),
    ("0.22.0.dev0", {"fits_items": False}),
    # 0.20.1rc1.dev16 prints the old figure, dev91 the new one.
    ("0.20.1.dev50", {"tokens": "by_group"}),
    # Logs of 0.19 count chunked layers in full.
    (f"{UNEQUAL_SINCE}.dev0", {"utilization": "0.9", "chunked_groups": False,
                               "unequal_groups": "unknown", "checks_states": False}),
    ("0.19.0.dev0", {"group_threshold": 1.25}),
    ("0.15.0.dev0", {"state_caching": "off"}),
    ("0.12.0.dev0", {"group_threshold": 1.0}),
    ("0.11.0.dev0", {"state_caching": "one", "interleaved": False, "uniform_groups": False,
                     "dcp_tokens": False}),
    ("0.9.2.dev0", {"hybrid_manager": False, "tokens": "blocks", "concurrency_by_blocks": False}),
    ("0.8.0.dev0", {"engine_v0": True, "latent_row_bytes": 256}),
    ("0.7.2.dev0", {"latent_row_bytes": 1}),
    (f"{LATENTS_SINCE}.dev0", {"latents": False}),
)  # fmt: skip


@lru_cache(maxsize=1024)
def parse_version(text: str) -> Version:
    """Read a version, builds included: ``0.33.0``, ``v0.11``, ``0.20.1rc1.dev91+ga749a33d8``.

    Raises:
        InvalidRequestError: not a version.

    >>> parse_version("0.20.1rc1.dev91+ga749a33d8") < parse_version("0.20.1")
    True
    """
    match = re.match(
        r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:\.?(rc|a|b|alpha|beta)(\d{0,4}))?"
        r"(?:\.dev(\d{0,6}))?(?:\.post\d{1,4})?(?:\+.*)?$",
        text.strip()[:80],
        re.ASCII,
    )
    if match is None:
        raise InvalidRequestError(
            f"{text!r} is not a version of vllm", hint=f"for example vllm@{NEWEST}", field="engine"
        )
    major, minor, patch, candidate, candidate_number, build = match.groups()
    release = (int(major), int(minor), int(patch or 0))
    if build is not None:
        return Version(*release, 0, int(build or 0))
    if candidate is not None:
        return Version(*release, 1, int(candidate_number or 0))
    return Version(*release)


@lru_cache(maxsize=64)
def rules_for(version: str | None) -> VllmRules:
    """Return the rules of a version; None is the newest known, whose rules newer ones get too.

    Raises:
        InvalidRequestError: not a version.
        FeatureUnsupportedError: older than what is known.

    >>> rules_for("0.19.1").tokens, rules_for("0.21.0").tokens, rules_for("0.9.2").group_threshold
    ('by_group', 'concurrency', 1.0)
    """
    asked = parse_version(version or NEWEST)
    if asked < parse_version(OLDEST):
        raise too_old("vllm", version, OLDEST)
    rules = VllmRules(version or NEWEST)
    for since, before in _BEFORE:
        if asked < parse_version(since):
            rules = replace(rules, **before)  # type: ignore[arg-type]
    return rules


def known_versions() -> tuple[str, ...]:
    """Return the first version of each set of rules, oldest first, for listings."""
    return (OLDEST, *(since.rpartition(".dev")[0] for since, _ in reversed(_BEFORE)))
