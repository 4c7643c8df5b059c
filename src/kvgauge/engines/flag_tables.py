"""Which flag of an engine says what: ``data/engine_flags.json``; versions that have it: ``releases``."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from kvgauge.data import read_data
from kvgauge.engines import releases
from kvgauge.engines.flag_words import split_words
from kvgauge.errors import FeatureUnsupportedError

#: What a flag says, beside the options of a load.
BATCHED_TOKENS, EAGER, OFFLOAD, MAX_SEQUENCES = "batched_tokens", "eager", "offload", "max_sequences"
NO_PREFIX_CACHING = "no_prefix_caching"


class FlagRow(NamedTuple):
    """A spelling of a flag.

    Args:
        option: what it says; the options of a load under their own names.
    """

    flag: str
    option: str


@lru_cache(maxsize=1)
def _tables() -> dict[str, tuple[FlagRow, ...]]:
    raw = json.loads(read_data("engine_flags.json"))
    return {engine: tuple(FlagRow(flag, **row) for flag, row in rows.items()) for engine, rows in raw.items()}


def flag_rows(engine: str) -> tuple[FlagRow, ...]:
    """Return the rows of an engine, the usual spelling of each first; empty where it has none."""
    return _tables().get(engine, ())


def spellings(engine: str, option: str) -> tuple[str, ...]:
    """Return the flags that say an option, the usual one first.

    >>> spellings("vllm", "tp")
    ('--tensor-parallel-size', '-tp')
    """
    return tuple(row.flag for row in flag_rows(engine) if row.option == option)


def has_flag(row: FlagRow, engine: str, version: str | None) -> bool:
    """Whether a version has a flag, as far as is known; a version that is not known is the newest.

    >>> row = next(row for row in flag_rows("vllm") if row.option == "dcp")
    >>> has_flag(row, "vllm", "0.10.1"), has_flag(row, "vllm", "0.10.2"), has_flag(row, "vllm", None)
    (False, True, True)
    """
    return releases.has_flag(engine, row.flag, version) is not False


def flag_for(engine: str, option: str, version: str | None) -> str | None:
    """Return the usual flag of a version for an option; None where it has none."""
    rows = (row for row in flag_rows(engine) if row.option == option)
    return next((row.flag for row in rows if has_flag(row, engine, version)), None)


def lacking(engine: str, version: str | None, args: str) -> tuple[FlagRow, ...]:
    """Return the rows of flags that a line has and the version lacks, in the order of the table."""
    given = {word.partition("=")[0] for word in split_words(args) if word.startswith("-")}
    given |= {_dashed(word) for word in given}
    rows = flag_rows(engine)
    return tuple(row for row in rows if row.flag in given and not has_flag(row, engine, version))


def refuse_lacking(engine: str, version: str | None, args: str, options: Iterable[str]) -> None:
    """Refuse flags that a version lacks, and options that none of its flags says.

    Args:
        options: names of options that need a flag.

    Raises:
        FeatureUnsupportedError: a flag or option is lacking; the hint says which versions have it.
    """
    if version is None:
        return
    found = list(lacking(engine, version, args)) if args else []
    for option in options:
        rows = [row for row in flag_rows(engine) if row.option == option]
        if rows and not any(has_flag(row, engine, version) for row in rows):
            found.append(rows[0])
    if found:
        row = found[0]
        usual = flag_for(engine, row.option, version)
        span = releases.span_words(releases.flag_span(engine, row.flag))
        hint = f"{usual} says it there" if usual else span
        raise FeatureUnsupportedError(f"{engine} {version} has no {row.flag}", hint=hint, field="engine")


def _dashed(word: str) -> str:
    return word.replace("_", "-") if word.startswith("--") else word


def without_flags(args: str, flags: Iterable[str]) -> str:
    """Return a line without some flags and their values.

    >>> without_flags("-tp 2 --port 80 --max_model_len=4096", ("-tp", "--max-model-len"))
    '--port 80'
    """
    gone = {form for flag in flags for form in (flag, _dashed(flag))}
    kept: list[str] = []
    is_gone = False
    for word in split_words(args):
        if word.startswith("-") and not re.fullmatch(r"-\d+", word, re.ASCII):
            name = word.partition("=")[0]
            is_gone = name in gone or _dashed(name) in gone
        if not is_gone:
            kept.append(word)
    return shlex.join(kept)


def stating(args: str, engine: str, option: str, value: str | None, version: str | None) -> str | None:
    """Return a line in which a flag says an option, whatever it said before.

    Args:
        value: empty for a switch; None takes it out.

    Returns:
        None where this version has no flag for it.

    >>> stating("--port 80 -tp 2", "vllm", "tp", "4", None)
    '--port 80 --tensor-parallel-size 4'
    """
    rest = without_flags(args, spellings(engine, option))
    if value is None:
        return rest
    flag = flag_for(engine, option, version)
    if flag is None:
        return None
    return " ".join(filter(None, (rest, flag, shlex.quote(value) if value else "")))


__all__ = [
    "FlagRow", "flag_for", "flag_rows", "has_flag", "lacking", "refuse_lacking", "spellings", "stating",
    "without_flags",
]  # fmt: skip
