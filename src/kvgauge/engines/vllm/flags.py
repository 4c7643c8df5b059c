"""The flags of ``vllm serve`` that touch the cache, as a table; the rest is named and left alone.

Source: ``engine/arg_utils.py`` of vLLM 0.33.0; older spellings beside the new ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from kvgauge.engines.flag_words import (
    Reader,
    dashed,
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
from kvgauge.engines.vllm.kv_dtypes import known_word
from kvgauge.engines.vllm.settings import MTP_METHODS, Speculation, VllmSettings
from kvgauge.errors import InvalidRequestError

#: vLLM's scales: small letters are decimal, capitals binary and whole.
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
           "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}  # fmt: skip


def _whole(flag: str, text: str) -> int:
    match = re.fullmatch(r"(\d{1,18})(?:\.(\d{1,9}))?([kmgtKMGT]?)", text, re.ASCII)
    if match is not None and not (match[2] and match[3].isupper()):
        value = Fraction(f"{match[1]}.{match[2] or 0}") * _SCALES[match[3]]
        if value.denominator == 1:
            return int(value)
    raise InvalidRequestError(
        f"{flag} {text!r} is not a whole number",
        hint="vllm reads 32768, 32k as 32,000 and 32K as 32,768",
        field=flag.lstrip("-"),
    )


def _length(flag: str, text: str) -> int:
    return 0 if text in ("auto", "-1") else _whole(flag, text)


def _kv_word(flag: str, text: str) -> str:
    del flag
    return known_word(text)


def _text(flag: str, text: str) -> str:
    del flag
    return text


def _cache_mode(flag: str, text: str) -> str:
    if text not in STATE_CACHE_MODES:
        raise InvalidRequestError(
            f"{flag} {text!r} is not a mode", hint=f"one of: {', '.join(STATE_CACHE_MODES)}", field=flag[2:]
        )
    return text


#: What ``--mamba-cache-mode`` takes.
STATE_CACHE_MODES = ("none", "align", "all")


#: Flags with a value -> (field of the settings, how its value is read).
VALUES: Mapping[str, tuple[str, Reader]] = MappingProxyType({
    "--tensor-parallel-size": ("tensor", _whole), "-tp": ("tensor", _whole),
    "--pipeline-parallel-size": ("pipeline", _whole), "-pp": ("pipeline", _whole),
    "--data-parallel-size": ("data", _whole), "-dp": ("data", _whole),
    "--decode-context-parallel-size": ("decode_context", _whole), "-dcp": ("decode_context", _whole),
    "--prefill-context-parallel-size": ("prefill_context", _whole), "-pcp": ("prefill_context", _whole),
    "--max-model-len": ("max_model_tokens", _length),
    "--max-num-batched-tokens": ("max_batched_tokens", _whole),
    "--max-num-seqs": ("max_sequences", _whole),
    "--kv-cache-dtype": ("kv_dtype", _kv_word),
    "--dtype": ("dtype", read_dtype),
    "--block-size": ("block_size_tokens", _whole),
    "--num-gpu-blocks-override": ("num_blocks_override", _whole),
    "--kv-cache-memory-bytes": ("kv_memory_bytes", _whole),
    "--kv-cache-memory": ("kv_memory_bytes", _whole),
    "--gpu-memory-utilization": ("utilization", read_share),
    "--cpu-offload-gb": ("host_weight_bytes", read_gib),
    "--mamba-cache-dtype": ("conv_dtype", read_dtype),
    "--mamba-ssm-cache-dtype": ("state_dtype", read_dtype),
    "--mamba-cache-mode": ("state_cache_mode", _cache_mode),
    "--mamba-block-size": ("state_block_tokens", _whole),
    "--attention-backend": ("attention_backend", _text),
})  # fmt: skip

#: Switches -> field and the value that each sets; ``--no-`` before the name sets the opposite.
SWITCHES: Mapping[str, tuple[str, bool]] = MappingProxyType({
    "--enable-prefix-caching": ("prefix_caching", True),
    "--enable-chunked-prefill": ("chunked_prefill", True),
    "--async-scheduling": ("async_scheduling", True),
    "--disable-hybrid-kv-cache-manager": ("hybrid_manager", False),
    "--enforce-eager": ("enforce_eager", True),
    "--enable-expert-parallel": ("expert_parallel", True), "-ep": ("expert_parallel", True),
    "--language-model-only": ("language_model_only", True),
})  # fmt: skip

#: Flags that change the cache in ways that no rule here follows -> what to do instead.
_REFUSED = {
    "--hf-overrides": "give the fields with --override",
    "--kv-cache-dtype-skip-layers": "leave it out: every layer is then in one dtype",
    "--config": "write its flags out",
}
_SPECULATION = "--speculative-config"
_OLD_SPECULATION = {"--num-speculative-tokens": "num_speculative_tokens", "--speculative-model": "model"}


def parse_flags(args: str, base: VllmSettings | None = None) -> VllmSettings:
    """Read the engine's flags on top of ``base``.

    Raises:
        InvalidRequestError: malformed, given twice with unlike values, or close to a flag of the table.
        FeatureUnsupportedError: a flag whose effect on the cache is not known.

    >>> parse_flags("--max-model-len 32k -tp 2 --no-enable-prefix-caching").max_model_tokens
    32000
    """
    facts = stated_settings(args)
    settings = base or VllmSettings()
    return replace(settings, **facts)  # type: ignore[arg-type]


def stated_settings(args: str) -> dict[str, object]:
    """Return the settings that flags state, whether or not they are the engine's defaults.

    Raises:
        InvalidRequestError, FeatureUnsupportedError: as ``parse_flags``.

    >>> stated_settings("-tp 1 --port 80")
    {'tensor': 1, 'ignored_flags': ('--port',)}
    """
    facts: dict[str, object] = {}
    drafting: dict[str, object] = {}
    ignored: list[str] = []
    for flag, values in grouped(split_words(args), _spelling):
        if flag in VALUES:
            name, read = VALUES[flag]
            set_once(facts, flag, name, read(flag, first(flag, values)))
        elif flag == "--performance-mode":
            set_once(facts, flag, "throughput_mode", first(flag, values) == "throughput")
        elif (switch := _switch(flag)) is not None:
            set_once(facts, flag, *switch)
        elif flag == _SPECULATION:
            drafting |= _json_object(flag, first(flag, values))
        elif flag.startswith(_SPECULATION + "."):
            drafting[flag.removeprefix(_SPECULATION + ".").replace("-", "_")] = first(flag, values)
        elif flag in _OLD_SPECULATION:
            drafting[_OLD_SPECULATION[flag]] = first(flag, values)
        else:
            _check_unknown(flag)
            ignored.append(flag)
    if drafting:
        facts["speculation"] = _speculation(drafting)
    if ignored:
        facts["ignored_flags"] = tuple(dict.fromkeys(ignored))
    return facts


def _spelling(word: str) -> tuple[str, str | None]:
    """Return a flag as the tables spell it; a speculation's fields are kept, ranks may be joined."""
    if word.startswith(_SPECULATION + "."):
        flag, equals, value = word.partition("=")
        return flag, value if equals else None
    joined = re.fullmatch(r"(-(?:tp|pp|dp|dcp|pcp))(\d+)(?:=.*)?", word, re.ASCII | re.DOTALL)
    return (joined[1], joined[2]) if joined is not None else dashed(word)


def _switch(flag: str) -> tuple[str, bool] | None:
    if flag in SWITCHES:
        return SWITCHES[flag]
    positive = "--" + flag.removeprefix("--no-")
    if flag.startswith("--no-") and positive in SWITCHES:
        name, value = SWITCHES[positive]
        return name, not value
    return None


def _check_unknown(flag: str) -> None:
    refuse_unfollowed(flag, _REFUSED)
    if flag.startswith("--"):
        refuse_slip(flag, [*VALUES, *SWITCHES, _SPECULATION], "vllm")


def _json_object(flag: str, text: str) -> dict[str, object]:
    try:
        value = json.loads(text[:10_000])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InvalidRequestError(
            f"{flag} is not a JSON object",
            hint='for example \'{"method": "mtp", "num_speculative_tokens": 1}\'',
            field="engine-args",
        )
    return value


def _speculation(drafting: Mapping[str, object]) -> Speculation:
    method, model = drafting.get("method"), drafting.get("model")
    if not isinstance(method, str):
        method = _guessed_method(model if isinstance(model, str) else "")
    tokens = drafting.get("num_speculative_tokens")
    if tokens is None and method in MTP_METHODS:
        tokens = 1
    if isinstance(tokens, str) and tokens.isdecimal():
        tokens = int(tokens[:9])
    if isinstance(tokens, bool) or not isinstance(tokens, int):
        raise InvalidRequestError(
            "--speculative-config does not say num_speculative_tokens",
            hint="every method but mtp needs it",
            field="engine-args",
        )
    return Speculation(tokens, method, model if isinstance(model, str) else "")


def _guessed_method(model: str) -> str:
    """Return the method that vLLM reads out of the name of a draft model."""
    name = model.lower()
    return next(
        (m for m in ("eagle3", "eagle", "mtp", "medusa", "ngram", "dflash") if m in name), "draft_model"
    )
