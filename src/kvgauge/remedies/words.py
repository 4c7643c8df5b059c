"""What a remedy says: the change, and what comes of it; a note, so that it is translated."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from kvgauge.architecture import Note
from kvgauge.units import format_bytes

if TYPE_CHECKING:
    from kvgauge.fit_result import Verdict
    from kvgauge.remedies.changes import Tried

#: Code of a change -> what is done; the end of the sentence says what comes of it.
WHAT: Mapping[str, str] = MappingProxyType({
    "reserve_less": "{what} reserves no more than the load",
    "raise_limit": "{what} allows the load",
    "lower_max_num_seqs": "{what} lets the engine start",
    "larger_share": "{what} lets the engine use more of each GPU",
    "fewer_batched_tokens": "{what}, at slower prefill",
    "kv_dtype_fp8": "{what}",
    "kv_dtype_q8_0": "{what}",
    "kv_dtype_q4_0": "{what}, at some loss",
    "eager": "{what}, at slower decoding",
    "no_prefix_caching": "{what}, prompts that repeat computed anew",
    "shorter_context": "a context of up to {what} tokens",
    "fewer_sequences": "at most {what} of the sequences",
    "published_quantisation": "{what}, a published quantisation",
    "own_quantisation": "{what}, to be quantised by yourself",
    "more_ranks": "{what} on {count} GPUs",
    "another_card": "{what}",
    "experts_on_host": "{what} keeps experts on the host, slower",
    "cache_on_host": "{what} keeps the cache on the host, slower",
    "layers_on_host": "{what} keeps the other layers on the host, slower",
    "weights_on_host": "{what} reads weights from the host at every step, much slower",
    "together": "together: {what}",
})  # fmt: skip
ENDS: Mapping[str, str] = MappingProxyType({
    "fits": ": fits, {slack} to spare",
    "tight": ": fits only just, {slack} to spare as a rule",
    "short": ": {lack} short instead of {before}",
})  # fmt: skip


def note_of(found: Tried, before: Verdict) -> Note:
    """Return the sentence of a remedy.

    Args:
        before: the verdict without it.
    """
    verdict, code = found.verdict, found.change.code
    end = "short" if not verdict.fits else verdict.status
    slack, short = abs(verdict.slack_bytes), abs(before.slack_bytes)
    sizes = {"slack": slack} if verdict.fits else {"lack": slack, "before": short}
    counts = {"count": f"{found.change.counts['num_gpus']:,}"} if code == "more_ranks" else {}
    values = {
        "what": found.change.shown,
        **counts,
        **{name: format_bytes(size) for name, size in sizes.items()},
    }
    text = (WHAT[code] + ENDS[end]).format(**values)
    sentence = f"{code}_{end}"
    return Note(sentence, "info", text, tuple(values.items()), tuple(sizes.values()))


__all__ = ["ENDS", "WHAT", "note_of"]
