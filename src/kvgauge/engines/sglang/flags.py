"""The flags of ``sglang.launch_server`` that touch the cache, as a table; the rest is named and left alone.

Source: ``arg_groups/fields`` of SGLang 0.5.23; older spellings beside the new ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from kvgauge.engines.flag_words import (
    Reader,
    first,
    grouped,
    read_dtype,
    read_gib,
    read_share,
    refuse_slip,
    refuse_unfollowed,
    set_once,
    split_words,
)
from kvgauge.engines.sglang.kv_dtypes import known_word
from kvgauge.engines.sglang.settings import SglangSettings
from kvgauge.errors import InvalidRequestError

#: SGLang's scales: decimal letters alone, binary ones with an i, which take no fraction.
_SCALES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
           "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}  # fmt: skip


def _whole(flag: str, text: str) -> int:
    match = re.fullmatch(r"(-?\d{1,18})(?:\.(\d{1,9}))?(k|M|G|T|Ki|Mi|Gi|Ti)?", text, re.ASCII)
    scale = match[3] or "" if match else ""
    if match is not None and not (match[2] and (not scale or scale.endswith("i"))):
        value = Fraction(f"{match[1]}.{match[2] or 0}") * _SCALES[scale]
        if value.denominator == 1:
            return int(value)
    raise InvalidRequestError(
        f"{flag} {text!r} is not a whole number",
        hint="sglang reads 32768, 32k as 32,000 and 32Ki as 32,768",
        field=flag.lstrip("-"),
    )


def _kv_word(flag: str, text: str) -> str:
    del flag
    return known_word(text)


def _text(flag: str, text: str) -> str:
    del flag
    return text.lower()


def _choice(*words: str) -> Callable[[str, str], str]:
    def read(flag: str, text: str) -> str:
        if text not in words:
            raise InvalidRequestError(
                f"{flag} {text!r} is not a mode", hint=f"one of: {', '.join(words)}", field=flag[2:]
            )
        return text

    return read


def _ratio(flag: str, text: str) -> float:
    if not re.fullmatch(r"\d{0,4}(?:\.\d{1,9})?", text, re.ASCII) or not float(text or 0):
        raise InvalidRequestError(f"{flag} {text!r} is not a ratio", hint="write it like 0.8", field=flag[2:])
    return float(text)


#: Flags with a value -> (field of the settings, how its value is read).
VALUES: Mapping[str, tuple[str, Reader]] = MappingProxyType({
    "--tp-size": ("tensor", _whole), "--tp": ("tensor", _whole), "--tensor-parallel-size": ("tensor", _whole),
    "--pp-size": ("pipeline", _whole), "--pp": ("pipeline", _whole),
    "--pipeline-parallel-size": ("pipeline", _whole),
    "--dp-size": ("data", _whole), "--dp": ("data", _whole), "--data-parallel-size": ("data", _whole),
    "--ep-size": ("expert", _whole), "--ep": ("expert", _whole), "--expert-parallel-size": ("expert", _whole),
    "--attn-dp-size": ("groups", _whole), "--attention-data-parallel-size": ("groups", _whole),
    "--kv-cache-dtype": ("kv_dtype", _kv_word),
    "--dtype": ("dtype", read_dtype),
    "--page-size": ("page_size_tokens", _whole),
    "--context-length": ("context_tokens", _whole),
    "--max-running-requests": ("max_running_requests", _whole),
    "--max-total-tokens": ("max_total_tokens", _whole),
    "--chunked-prefill-size": ("chunked_prefill_tokens", _whole),
    "--cuda-graph-max-bs": ("graph_max_batch", _whole),
    "--cuda-graph-max-bs-decode": ("graph_max_batch", _whole),
    "--cuda-graph-max-bs-prefill": ("prefill_graph_max_tokens", _whole),
    "--mem-fraction-static": ("mem_fraction", read_share),
    "--cpu-offload-gb": ("host_weight_bytes", read_gib),
    "--swa-full-tokens-ratio": ("window_ratio", _ratio),
    "--max-mamba-cache-size": ("max_state_slots", _whole),
    "--mamba-full-memory-ratio": ("state_ratio", _ratio),
    "--mamba-ssm-dtype": ("state_dtype", read_dtype),
    "--mamba-radix-cache-strategy": (
        "state_strategy", _choice("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy")
    ),
    "--mamba-scheduler-strategy": (
        "state_strategy", _choice("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy")
    ),
    "--attention-backend": ("attention_backend", _text),
    "--prefill-attention-backend": ("prefill_backend", _text),
    "--decode-attention-backend": ("decode_backend", _text),
    "--dsa-prefill-backend": ("sparse_prefill_backend", _text),
    "--nsa-prefill-backend": ("sparse_prefill_backend", _text),
    "--dsa-decode-backend": ("sparse_decode_backend", _text),
    "--nsa-decode-backend": ("sparse_decode_backend", _text),
    "--disaggregation-mode": ("role", _choice("null", "prefill", "decode")),
    "--moe-a2a-backend": ("all_to_all", _text),
    "--mm-feature-transport": ("feature_transport", _choice("cpu", "cuda_ipc", "cuda_vmm")),
})  # fmt: skip
#: The same for drafting.
DRAFTING: Mapping[str, tuple[str, Reader]] = MappingProxyType({
    "--speculative-algorithm": ("algorithm", lambda flag, text: text.upper()),
    "--speculative-algo": ("algorithm", lambda flag, text: text.upper()),
    "--speculative-num-steps": ("steps", _whole),
    "--speculative-eagle-topk": ("top_k", _whole),
    "--speculative-num-draft-tokens": ("draft_tokens", _whole),
    "--speculative-draft-model-path": ("model", lambda flag, text: text),
    "--speculative-draft-model": ("model", lambda flag, text: text),
})  # fmt: skip

#: Switches -> field and the value that each sets.
SWITCHES: Mapping[str, tuple[str, bool]] = MappingProxyType({
    "--enable-dp-attention": ("dp_attention", True),
    "--disable-radix-cache": ("radix_cache", False),
    "--disable-overlap-schedule": ("overlap", False),
    "--disable-hybrid-swa-memory": ("window_pools", False),
    "--disable-decode-cuda-graph": ("decode_graphs", False),
    "--disable-prefill-cuda-graph": ("prefill_graphs", False),
    "--disable-piecewise-cuda-graph": ("prefill_graphs", False),
    "--language-only": ("text_only", True), "--language-model-only": ("text_only", True),
    "--enable-multimodal": ("multimodal", True),
})  # fmt: skip
_ALGORITHMS = frozenset(
    {"EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK", "FROZEN_KV_MTP"}
)
#: Flags that change the cache in ways that no rule here follows -> what to do instead.
_REFUSED = {
    "--json-model-override-args": "give the fields with --override",
    "--dcp-size": "leave it out: every rank then holds whole contexts",
    "--attn-cp-size": "leave it out: every rank then holds whole contexts",
    "--enable-unified-memory": "leave it out: pools of fixed sizes are then used",
    "--enable-kv-cache-sharding": "leave it out: every rank then holds whole contexts",
    "--enable-hisparse": "leave it out: the whole cache then lies on the card",
    "--config": "write its flags out",
}


@lru_cache(maxsize=64)
def parse_flags(args: str, base: SglangSettings | None = None) -> SglangSettings:
    """Read the engine's flags on top of ``base``.

    Raises:
        InvalidRequestError: malformed, given twice with unlike values, or close to a flag of the table.
        FeatureUnsupportedError: a flag whose effect on the cache is not known.

    >>> parse_flags("--context-length 32k --tp 2 --disable-radix-cache").context_tokens
    32000
    """
    facts: dict[str, object] = {}
    drafting: dict[str, object] = {}
    ignored: list[str] = []
    for flag, values in grouped(split_words(args)):
        if flag in VALUES:
            name, read = VALUES[flag]
            set_once(facts, flag, name, read(flag, first(flag, values)))
        elif flag in DRAFTING:
            name, read = DRAFTING[flag]
            set_once(drafting, flag, name, read(flag, first(flag, values)))
        elif flag in SWITCHES:
            set_once(facts, flag, *SWITCHES[flag])
        elif flag == "--disable-cuda-graph":
            set_once(facts, flag, "decode_graphs", value=False)
            set_once(facts, flag, "prefill_graphs", value=False)
        elif flag in ("--cuda-graph-bs", "--cuda-graph-bs-decode"):
            sizes = [_whole(flag, value) for value in values]
            set_once(facts, flag, "graph_max_batch", max(sizes or [_whole(flag, "")]))
        else:
            _check_unknown(flag)
            ignored.append(flag)
    groups = facts.pop("groups", None)
    if groups is not None:
        facts |= {"data": groups, "dp_attention": True}
    settings = base or SglangSettings()
    if drafting:
        facts["speculation"] = replace(settings.speculation, **drafting)  # type: ignore[arg-type]
        _check_algorithm(drafting)
    return replace(settings, ignored_flags=tuple(dict.fromkeys(ignored)), **facts)  # type: ignore[arg-type]


def _check_algorithm(drafting: Mapping[str, object]) -> None:
    algorithm = drafting.get("algorithm", "")
    if algorithm and algorithm not in _ALGORITHMS:
        raise InvalidRequestError(
            f"--speculative-algorithm {algorithm!r} is not known to sglang",
            hint=f"one of: {', '.join(sorted(_ALGORITHMS))}",
            field="engine-args",
        )


def _check_unknown(flag: str) -> None:
    refuse_unfollowed(flag, _REFUSED)
    if flag.startswith("--"):
        refuse_slip(flag, [*VALUES, *DRAFTING, *SWITCHES], "sglang")
