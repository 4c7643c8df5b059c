"""Recorded measurements: one JSON object a line, each field as it was printed, null where it was not.

The fields are described in ``docs/accuracy.md``. A record is data of others: nothing in it is trusted to
have a
type or a size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType

#: What can be measured, in the order of the table.
QUANTITIES = (
    "kv_bytes_per_token", "kv_tokens", "max_concurrency", "num_blocks", "kv_needed", "kv_cache_mib",
    "state_mib",
    "weights", "pool", "activation", "graphs", "compute",
)  # fmt: skip

#: Figures beyond this are no measurement.
_LARGEST = 1e18

#: Words of a record's note that make its figures doubtful -> the kind of doubt.
_DOUBTS: Mapping[str, str] = MappingProxyType({
    r"\bfixture\b|\bsample\b|\bcomposed\b|example lines": "fixture",
    r"\brounds?\b|\brounded\b": "rounded",
    r"\bguess(ed)?\b|\bclass\b|\binferred\b|\bassumed\b|\bprobably\b": "guess",
    r"unequal|another rank|other rank": "unequal cards",
})  # fmt: skip
#: Inputs that a record leaves open and that the engine fills in by itself. Any other assumption is a guess.
_DEFAULTS = (
    "kv_cache_dtype auto", "kv_cache_dtype f16", "max_num_batched_tokens default", "prefix caching default",
    "graph sizes default", "token rule by version not stated", "version by date", "no speculation",
    "state dtype of config", "window padding by build", "dsa default", "mem_fraction_static default",
)  # fmt: skip


@dataclass(frozen=True)
class Record:
    """One record; every reader returns None where the field is absent, null or of another type."""

    fields: Mapping[str, object]

    @property
    def id(self) -> str:
        """Name of the record."""
        return self.text("id") or "?"

    @property
    def family(self) -> str:
        """The engine whose rules apply: vllm, sglang, tensorrt-llm, llama.cpp, or the word of the record."""
        return engine_family(self.text("engine") or "")

    def text(self, name: str) -> str | None:
        """Return a text, or None."""
        value = self.fields.get(name)
        return value[:10_000] if isinstance(value, str) and value else None

    def number(self, name: str, *, within: str = "") -> float | None:
        """Return a finite number of a sane size, of an inner object where ``within`` names one."""
        value = (self.inner(within) if within else self.fields).get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if isfinite(value) and abs(value) <= _LARGEST else None

    def whole(self, name: str, *, within: str = "") -> int | None:
        """Return a whole number that is not negative, or None."""
        value = self.number(name, within=within)
        return int(value) if value is not None and value >= 0 and value == int(value) else None

    def flag(self, name: str, *, within: str = "") -> bool | None:
        """Return a truth value, or None."""
        value = (self.inner(within) if within else self.fields).get(name)
        return value if isinstance(value, bool) else None

    def inner(self, name: str) -> Mapping[str, object]:
        """Return an inner object; empty where there is none."""
        value = self.fields.get(name)
        return value if isinstance(value, Mapping) else {}

    def words(self, name: str) -> tuple[str, ...]:
        """Return the texts of a list."""
        value = self.fields.get(name)
        return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()

    @property
    def assumed(self) -> str:
        """What was taken as a default or guessed, as one text."""
        return "; ".join(self.words("assumed")).lower()

    @property
    def usable_for(self) -> tuple[str, ...]:
        """The quantities that its inputs are known for; all where the field is absent."""
        return self.words("usable_for") if "usable_for" in self.fields else QUANTITIES

    @property
    def doubts(self) -> frozenset[str]:
        """Why its figures are doubtful: of ``doubts``, else from words of its note."""
        stated = self.words("doubts")
        if stated:
            return frozenset(stated)
        texts = " ".join(filter(None, (self.text("note"), self.text("config_basis")))).lower()
        return frozenset(kind for words, kind in _DOUBTS.items() if re.search(words, texts[:4000]))

    def basis(self, quantity: str) -> str:
        """Return how well the inputs of a quantity are known: ``hard``, ``default`` or ``soft``.

        Hard: every input stated or tied. Default: only defaults of the engine are not stated. Soft: a guess.
        """
        touched = self.words("soft_for")
        if self.fields.get("soft") is not True or (touched and quantity not in touched):
            return "hard"
        assumed = self.words("assumed")
        tied = self.text("config_basis") or ""
        is_guess = tied.startswith("inferred") or bool(self.doubts) or not assumed
        known = all(any(word in text.lower() for word in _DEFAULTS) for text in assumed)
        return "default" if known and not is_guess else "soft"


def engine_family(word: str) -> str:
    """Return the engine whose rules apply to a word for an engine or one of its shells and forks.

    >>> engine_family("ik_llama.cpp"), engine_family("trtllm"), engine_family("ollama (llama.cpp runner)")
    ('llama.cpp', 'tensorrt-llm', 'llama.cpp')
    """
    text = word.lower()
    for family, words in _FAMILIES.items():
        if any(part in text for part in words):
            return family
    return text[:40] or "?"


_FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "llama.cpp": ("llama.cpp", "llamacpp", "llama-server", "llama-cli", "ollama", "lm studio", "koboldcpp"),
    "vllm": ("vllm",),
    "sglang": ("sglang",),
    "tensorrt-llm": ("tensorrt", "trtllm", "trt-llm"),
})  # fmt: skip
