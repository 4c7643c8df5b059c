"""Flags of a line that an engine's version does not know: named in one note, and left out of account."""

from __future__ import annotations

import re

from kvgauge.architecture import Note
from kvgauge.engines.flag_words import split_words
from kvgauge.engines.releases import has_flag, is_read

_SHORT_RANKS = re.compile(r"(-(?:tp|pp|dp|dcp|pcp|asc|dpr|dpn|dpl|dpa|dpp|dpb|O))\d+", re.ASCII)
_LONGEST, _MOST = 60, 8


def unknown_flags(engine: str, version: str | None, args: str) -> tuple[str, ...]:
    """Return the flags of a line that a version surely lacks, in the line's order.

    >>> unknown_flags("vllm", "0.33.0", "--port 80 -tp2 --no-enforce-eager --enforce-lazy --hf-overrides.a 1")
    ('--enforce-lazy',)
    >>> unknown_flags("vllm", "0.19.0", "--engram-config x"), unknown_flags("sglang", None, "--tp 2")
    (('--engram-config',), ())
    """
    if not is_read(engine):
        return ()
    words = (word for word in split_words(args) if word.startswith("-"))
    names = dict.fromkeys(
        word.partition("=")[0] for word in words if not re.fullmatch(r"--?|-[\d.]+", word, re.ASCII)
    )
    return tuple(name for name in names if not _is_known(engine, version, name))


def _is_known(engine: str, version: str | None, name: str) -> bool:
    if engine == "tensorrt-llm":
        from kvgauge.engines.tensorrt_llm.flags import knows  # noqa: PLC0415 - one engine is loaded

        return knows(name) or has_flag(engine, name, version) is not False
    if engine == "llama.cpp":
        from kvgauge.engines.llamacpp.flags import knows_elsewhere  # noqa: PLC0415

        return knows_elsewhere(name, version) or has_flag(engine, name, version) is not False
    flag = name.replace("_", "-") if name.startswith("--") else name
    short = _SHORT_RANKS.fullmatch(flag)
    forms = {flag, flag.partition(".")[0], short[1] if short else flag}
    if flag.startswith("-O"):
        forms.add("--optimization-level")
    if flag.startswith("--no-"):
        forms.add("--" + flag.removeprefix("--no-"))
    return any(has_flag(engine, form, version) is not False for form in forms)


def unknown_flag_notes(engine: str, version: str | None, args: str) -> tuple[Note, ...]:
    """Return one note that names the flags that a version lacks; none where it lacks none."""
    found = [name[:_LONGEST] for name in unknown_flags(engine, version, args)]
    if not found:
        return ()
    flags = ", ".join(found[:_MOST]) + (", ..." if len(found) > _MOST else "")
    values = (("engine", engine), ("version", version or ""), ("flags", flags))
    text = f"not known to {engine} {version}, which would stop at it: {flags}; left out of account"
    return (Note("flags_unknown", "warning", text, values),)


__all__ = ["unknown_flag_notes", "unknown_flags"]
