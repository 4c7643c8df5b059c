"""The line that starts SGLang for a load, the user's own flags kept as they are."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kvgauge.engines.sglang.flags import SWITCHES, VALUES, parse_flags
from kvgauge.engines.sglang.pool import SglangPlan
from kvgauge.engines.sglang.settings import SglangSettings

_START = ("python", "-m", "sglang.launch_server")
#: Canonical dtype -> SGLang's word.
DTYPE_WORDS = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}


def launch_command(model: str, plan: SglangPlan, args: str, max_requests: int | None) -> str:
    """Return ``sglang.launch_server`` with a flag for everything that is not the engine's default.

    Args:
        max_requests: running requests that the load needs, where the default is fewer.
    """
    given, plain = parse_flags(args), SglangSettings()
    words = [*_START, "--model-path", model]
    for flag, value in _flags(plan, max_requests):
        name = _field(flag)
        if not name or getattr(given, name) == getattr(plain, name):
            words += [flag, value] if value else [flag]
    return shlex.join([*words, *_own_flags(args)])


def _field(flag: str) -> str:
    """Return the setting that a flag sets; empty for one that nobody else sets."""
    row = VALUES.get(flag) or SWITCHES.get(flag)
    return row[0] if row is not None else "speculation" if "speculative" in flag else ""


def _own_flags(args: str) -> list[str]:
    """Return the user's flags, without the command and the model that may stand before them."""
    own = shlex.split(args)
    if any(word in ("sglang", "python", "python3") for word in own[:1]):
        first = next((n for n, word in enumerate(own) if word.startswith("--")), len(own))
        own = own[first:]
    result: list[str] = []
    skipped = False
    for word in own:
        name = word.partition("=")[0]
        if name in ("--model-path", "--model"):
            skipped = "=" not in word
        elif skipped:
            skipped = False
        else:
            result.append(word)
    return result


def _flags(plan: SglangPlan, max_requests: int | None) -> Iterator[tuple[str, str]]:
    settings = plan.settings
    yield "--context-length", str(plan.context_tokens)
    for flag, count in (
        ("--tp-size", settings.tensor),
        ("--pp-size", settings.pipeline),
        ("--dp-size", settings.data),
        ("--ep-size", 1 if settings.dp_attention else settings.expert),
    ):
        if count > 1:
            yield flag, str(count)
    if settings.dp_attention:
        yield "--enable-dp-attention", ""
    if settings.kv_dtype != "auto":
        yield "--kv-cache-dtype", settings.kv_dtype
    if settings.state_dtype is not None:
        yield "--mamba-ssm-dtype", DTYPE_WORDS.get(settings.state_dtype, settings.state_dtype)
    if max_requests is not None:
        yield "--max-running-requests", str(max_requests)
    if settings.mem_fraction is not None:
        yield "--mem-fraction-static", settings.mem_fraction
    if settings.speculation.on:
        yield "--speculative-algorithm", settings.speculation.algorithm
        yield "--speculative-num-steps", str(plan.drafts.steps)
        yield "--speculative-eagle-topk", str(plan.drafts.top_k)
        yield "--speculative-num-draft-tokens", str(plan.drafts.tokens)
