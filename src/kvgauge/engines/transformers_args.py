"""The words that say which cache object Transformers is given: ``cache=static max_cache_len=4096``."""

from __future__ import annotations

import difflib
import shlex
from dataclasses import dataclass

from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.units import MAX_TOKENS

CACHES = ("dynamic", "dynamic_without_config", "static", "quantized", "offloaded", "offloaded_static")
#: Words for a cache whose layers wait on the host, and the cache that it is otherwise.
_OFFLOADED = {"offloaded": "dynamic", "offloaded_static": "static"}

#: Words beside ``cache`` that each cache object takes.
_WORDS = {
    "dynamic": (),
    "dynamic_without_config": (),
    "static": ("max_cache_len",),
    "quantized": ("backend", "nbits", "prompt"),
    "offloaded": (),
    "offloaded_static": ("max_cache_len",),
}
#: Bits a value that each backend packs; the first is the default. hqq also packs 3, in a layout of its own.
BACKEND_BITS = {"quanto": (4, 2), "hqq": (4, 2, 8), "fp8": (8,)}


@dataclass(frozen=True, slots=True)
class CacheChoice:
    """Which cache object, and its numbers.

    Args:
        cache: the cache whose layers it has.
        max_cache_tokens: rows that a static cache allocates; None is the context.
        prompt_tokens: tokens that a quantised cache packs at prefill; None is the context.
        offloading: its layers wait on the host: ``DynamicCache(config=..., offloading=True)``, or static.
    """

    cache: str = "dynamic"
    max_cache_tokens: int | None = None
    backend: str = "quanto"
    bits: int = 4
    prompt_tokens: int | None = None
    offloading: bool = False

    @property
    def word(self) -> str:
        """Return the word that asks for it."""
        return next((w for w, c in _OFFLOADED.items() if self.offloading and c == self.cache), self.cache)


def parse_cache_choice(args: str) -> CacheChoice:
    """Read the words of ``--engine-args``.

    Raises:
        InvalidRequestError: an unknown word or value, or one that this cache does not take; names it.
        FeatureUnsupportedError: a width that the backend does not pack.

    >>> parse_cache_choice("cache=static max_cache_len=64").max_cache_tokens
    64
    """
    words = _split(args)
    cache = words.pop("cache", "dynamic")
    if cache not in CACHES:
        raise _unknown(f"cache={cache}", cache, CACHES)
    for name in words:
        if name not in _WORDS[cache]:
            known = any(name in names for names in _WORDS.values())
            if not known:
                raise _unknown(name, name, ("cache", *(n for names in _WORDS.values() for n in names)))
            raise InvalidRequestError(
                f"cache={cache} does not take {name}", hint=_takes(cache), field="engine-args"
            )
    backend = words.get("backend", "quanto")
    if backend not in BACKEND_BITS:
        raise _unknown(f"backend={backend}", backend, tuple(BACKEND_BITS))
    return CacheChoice(
        _OFFLOADED.get(cache, cache),
        _number(words, "max_cache_len", low=1),
        backend,
        _bits(words, backend),
        _number(words, "prompt", low=0),
        cache in _OFFLOADED,
    )


def _split(args: str) -> dict[str, str]:
    try:
        tokens = shlex.split(args)
    except ValueError as error:
        raise InvalidRequestError(f"--engine-args: {error}", field="engine-args") from None
    words: dict[str, str] = {}
    for token in tokens:
        name, equals, value = token.partition("=")
        if not equals or not value:
            raise InvalidRequestError(
                f"--engine-args: {token!r} is not of the form word=value",
                hint="for example cache=static max_cache_len=4096",
                field="engine-args",
            )
        if words.setdefault(name, value) != value:
            raise InvalidRequestError(f"--engine-args gives {name} twice", field="engine-args")
    return words


def _bits(words: dict[str, str], backend: str) -> int:
    bits = _number(words, "nbits", low=1)
    if bits is None:
        return BACKEND_BITS[backend][0]
    if bits not in BACKEND_BITS[backend]:
        raise FeatureUnsupportedError(
            f"nbits={bits} is not known for the {backend} backend",
            hint=f"{backend} packs " + ", ".join(map(str, BACKEND_BITS[backend])) + " bits",
            field="engine-args",
        )
    return bits


def _number(words: dict[str, str], name: str, *, low: int) -> int | None:
    text = words.get(name)
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 12 or not low <= int(text) <= MAX_TOKENS:
        raise InvalidRequestError(
            f"{name}={text} must be a whole number, at least {low}", field="engine-args"
        )
    return int(text)


def _takes(cache: str) -> str:
    names = _WORDS[cache]
    return f"it takes {', '.join(names)}" if names else "it takes no further words"


def _unknown(word: str, value: str, choices: tuple[str, ...]) -> InvalidRequestError:
    near = difflib.get_close_matches(value, choices, n=1)
    hint = f"did you mean {near[0]}?" if near else f"one of: {', '.join(choices)}"
    return InvalidRequestError(
        f"--engine-args: {word!r} is not known to transformers", hint=hint, field="engine-args"
    )
