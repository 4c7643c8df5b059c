"""The flags of ``trtllm-serve`` and the fields of its ``kv_cache_config`` that touch the cache, as a table.

Fields may be given as ``kv_cache_config.tokens_per_block=32``, as a flag of their name, or as options of the
command. Source: ``commands/serve.py`` and ``llmapi/llm_args.py`` of the main branch of 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from kvgauge.engines.flag_words import (
    Reader,
    given,
    read_dtype,
    refuse_slip,
    refuse_unfollowed,
    set_once,
    split_words,
)
from kvgauge.engines.tensorrt_llm.kv_dtypes import known_word
from kvgauge.engines.tensorrt_llm.settings import TrtllmSettings
from kvgauge.errors import InvalidRequestError


def _whole(flag: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,20}", text, re.ASCII):
        raise InvalidRequestError(f"{flag} {text!r} is not a whole number", field=flag.lstrip("-"))
    return int(text)


def _fraction(flag: str, text: str) -> str:
    if not re.fullmatch(r"0?\.\d{1,9}", text, re.ASCII) or not float(text):
        raise InvalidRequestError(
            f"{flag} {text!r} is not a share of the free memory",
            hint="write it like 0.9",
            field=flag.lstrip("-"),
        )
    return text


def _kv_word(flag: str, text: str) -> str:
    del flag
    return known_word(text)


def _truth(flag: str, text: str) -> bool:
    word = text.lower()
    if word not in ("true", "false"):
        raise InvalidRequestError(f"{flag} {text!r} is neither true nor false", field=flag.lstrip("-"))
    return word == "true"


def _windows(flag: str, text: str) -> tuple[int, ...]:
    try:
        values = json.loads(text[:100_000])
    except (ValueError, RecursionError):
        values = None
    if isinstance(values, int) and not isinstance(values, bool):
        values = [values]
    if not isinstance(values, list) or not all(
        isinstance(v, int) and not isinstance(v, bool) for v in values
    ):
        raise InvalidRequestError(
            f"{flag} is not a list of token counts", hint="write it like [512, 32768]", field=flag.lstrip("-")
        )
    return tuple(values)


#: Names of flags and fields -> (field of the settings, how its value is read).
VALUES: Mapping[str, tuple[str, Reader]] = MappingProxyType({
    "tp_size": ("tensor", _whole), "tensor_parallel_size": ("tensor", _whole),
    "pp_size": ("pipeline", _whole), "pipeline_parallel_size": ("pipeline", _whole),
    "ep_size": ("expert", _whole), "moe_expert_parallel_size": ("expert", _whole),
    "kv_cache_free_gpu_memory_fraction": ("free_fraction", _fraction),
    "free_gpu_memory_fraction": ("free_fraction", _fraction),
    "kv_cache_free_gpu_mem_fraction": ("free_fraction", _fraction),
    "kv_cache_dtype": ("kv_dtype", _kv_word),
    "dtype": ("dtype", read_dtype),
    "tokens_per_block": ("tokens_per_block", _whole),
    "max_tokens": ("max_tokens", _whole), "max_tokens_in_paged_kv_cache": ("max_tokens", _whole),
    "max_gpu_total_bytes": ("max_gpu_bytes", _whole),
    "max_batch_size": ("max_batch", _whole),
    "max_num_tokens": ("max_num_tokens", _whole),
    "max_seq_len": ("max_seq_tokens", _whole),
    "max_attention_window": ("attention_windows", _windows),
    "max_attention_window_size": ("attention_windows", _windows),
    "enable_block_reuse": ("block_reuse", _truth),
    "enable_attention_dp": ("attention_dp", _truth),
    "mamba_ssm_cache_dtype": ("state_dtype", read_dtype),
    "mamba_prefix_cache_step": ("snapshot_tokens", _whole),
    "mamba_state_cache_interval": ("snapshot_tokens", _whole),
    "num_nextn_predict_layers": ("draft_tokens", _whole),
    "max_draft_len": ("draft_tokens", _whole),
})  # fmt: skip
#: Names -> where a file of settings has them (``llmapi/llm_args.py``); flags of the server have no row.
FILE_FIELDS: Mapping[str, str] = MappingProxyType({
    "kv_cache_dtype": "kv_cache_config.dtype", "tokens_per_block": "kv_cache_config.tokens_per_block",
    "max_tokens": "kv_cache_config.max_tokens", "max_tokens_in_paged_kv_cache": "kv_cache_config.max_tokens",
    "max_gpu_total_bytes": "kv_cache_config.max_gpu_total_bytes",
    "max_attention_window": "kv_cache_config.max_attention_window",
    "max_attention_window_size": "kv_cache_config.max_attention_window",
    "enable_block_reuse": "kv_cache_config.enable_block_reuse",
    "mamba_ssm_cache_dtype": "kv_cache_config.mamba_ssm_cache_dtype",
    "mamba_prefix_cache_step": "kv_cache_config.mamba_prefix_cache_step",
    "mamba_state_cache_interval": "kv_cache_config.mamba_state_cache_interval",
    "free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "kv_cache_free_gpu_mem_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "num_nextn_predict_layers": "speculative_config.num_nextn_predict_layers",
    "max_draft_len": "speculative_config.max_draft_len",
    "enable_attention_dp": "enable_attention_dp", "dtype": "dtype",
    "tensor_parallel_size": "tensor_parallel_size", "pipeline_parallel_size": "pipeline_parallel_size",
    "moe_expert_parallel_size": "moe_expert_parallel_size",
})  # fmt: skip
_SHORT = {"--tp": "--tp_size", "--pp": "--pp_size", "--ep": "--ep_size"}
#: Flags that stand for a file or change the cache in ways that no rule here follows -> what to do instead.
_REFUSED = {
    "extra_llm_api_options": "write its kv_cache_config fields out, as kv_cache_config.tokens_per_block=32",
    "config": "write its kv_cache_config fields out, as kv_cache_config.tokens_per_block=32",
    "cp_size": "leave it out: every rank then holds whole contexts",
}


def parse_flags(args: str, base: TrtllmSettings | None = None) -> TrtllmSettings:
    """Read the engine's flags on top of ``base``.

    Raises:
        InvalidRequestError: malformed, given twice with unlike values, or close to a name of the table.
        FeatureUnsupportedError: a flag whose effect on the cache is not known.

    >>> parse_flags("--tp_size 2 kv_cache_config.tokens_per_block=64").tokens_per_block
    64
    """
    facts: dict[str, object] = {}
    ignored: list[str] = []
    for name, value in _pairs(split_words(args)):
        if name in VALUES:
            field, read = VALUES[name]
            set_once(facts, name, field, read(name, given(name, value)))
        else:
            _check_unknown(name)
            ignored.append(name)
    if "draft_tokens" in facts:
        facts["mtp"] = True
    settings = base or TrtllmSettings()
    return replace(settings, ignored_flags=tuple(dict.fromkeys(ignored)), **facts)  # type: ignore[arg-type]


def knows(flag: str) -> bool:
    """Whether a word names a flag or a field whose meaning is known."""
    name = _SHORT.get(flag, flag).lstrip("-").replace("-", "_").rpartition(".")[2]
    return name in VALUES


def _pairs(words: list[str]) -> Iterator[tuple[str, str | None]]:
    """Yield (name, value): of flags, and of ``a.b=value`` words; others before a flag are a command."""
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        dashed = word.startswith("--")
        name, equals, value = _SHORT.get(word, word).partition("=")
        if not dashed and not equals:
            continue
        name = name.lstrip("-").replace("-", "_").rpartition(".")[2]
        if equals:
            yield name, value
        elif position < len(words) and not words[position].startswith("--"):
            yield name, words[position]
            position += 1
        else:
            yield name, "true" if name in ("enable_attention_dp", "enable_block_reuse") else None


def _check_unknown(name: str) -> None:
    refuse_unfollowed(name, _REFUSED)
    refuse_slip(name, VALUES, "tensorrt-llm")
