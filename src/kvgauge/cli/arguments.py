"""Put a command line in order before it is parsed.

Options may stand before the verb, ``kvgauge MODEL`` means ``size``, ``--mtp`` may stand bare; and whether
JSON is wanted, and in which language to speak, must be known even when the line can't be parsed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kvgauge.cli.options import VALUE_FLAGS
from kvgauge.cli.topics import COMMANDS, topic_command
from kvgauge.errors import FeatureUnsupportedError

if TYPE_CHECKING:
    from kvgauge.render.messages import Lang

VERBS = (
    "size",
    "compare",
    "explain",
    "fit",
    "plan",
    "verify",
    "accuracy",
    "models",
    "gpus",
    "engines",
    "doctor",
    "completion",
    "learn",
    "serve",
)
SHELLS = ("bash", "zsh", "fish")
LATER_VERBS: tuple[str, ...] = ()

_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
#: Options that make ``kvgauge MODEL`` mean ``fit``.
_FIT_FLAGS = frozenset({"--gpu", "--memory", "--gpu-file", "--kv-memory"})
_GROUP_FLAGS = frozenset({"--help", "-h", "--version"})


class Positional(NamedTuple):
    """A word of the command line that is no option; ``position`` is its place."""

    position: int
    text: str


def positionals(argv: Sequence[str]) -> Iterator[Positional]:
    """Yield the words that are neither options nor their values."""
    skip = False
    for position, word in enumerate(argv):
        if skip:
            skip = False
        elif word == "--":
            yield from (Positional(i, argv[i]) for i in range(position + 1, len(argv)))
            return
        elif word in VALUE_FLAGS:
            skip = True
        elif word == "-" or not word.startswith("-"):
            yield Positional(position, word)


def _with_bare_mtp(argv: Sequence[str]) -> list[str]:
    result = list(argv)
    for position, word in enumerate(argv):
        if word == "--":
            break
        following = argv[position + 1] if position + 1 < len(argv) else ""
        if word == "--mtp" and not following.lstrip("-").isdecimal():
            result[position] = "--mtp=1"
    return result


def in_order(argv: Sequence[str]) -> list[str]:
    """Return the arguments with the verb first, ``fit`` (with a device) or ``size`` where there is none.

    Raises:
        FeatureUnsupportedError: the verb belongs to a later release.

    >>> in_order(["--json", "compare", "a", "b"]), in_order(["--context", "32k", "a"])
    (['compare', '--json', 'a', 'b'], ['size', '--context', '32k', 'a'])
    >>> in_order(["learn", "--json", "activations", "a"])
    ['learn activations', '--json', 'a']
    >>> in_order(["a", "--gpu", "H100"])
    ['fit', 'a', '--gpu', 'H100']
    """
    args = _with_bare_mtp(argv)
    first = next(positionals(args), None)
    if first is None:
        about = [word for word in args if word in _GROUP_FLAGS]
        verb = "fit" if _names_device(args) else "size"
        return about[:1] if about or not args else [verb, *args]
    if first.text == "help":
        verb = next((word.text for word in positionals(args[first.position + 1 :])), "")
        rest = args[first.position + 1 :]
        return in_order([*rest, "--help"]) if verb in VERBS else ["--help"]
    if first.text in (*VERBS, *COMMANDS) and "--" not in args[: first.position]:
        rest = [*args[: first.position], *args[first.position + 1 :]]
        return _with_topic(rest) if first.text == "learn" else [first.text, *rest]
    if first.text in LATER_VERBS:
        raise FeatureUnsupportedError(
            f"'{first.text}' is not part of this release",
            hint=f"this release has {', '.join(VERBS)}; a file of that name is ./{first.text}",
            field=first.text,
        )
    return ["fit" if _names_device(args) else "size", *args]


def _with_topic(rest: list[str]) -> list[str]:
    """Return the words after ``learn`` with the topic's own command first, ``learn`` where none is named."""
    word = next(positionals(rest), None)
    command = topic_command(word.text) if word else None
    if word is None or command is None:
        return ["learn", *rest]
    return [command, *rest[: word.position], *rest[word.position + 1 :]]


def _names_device(args: Sequence[str]) -> bool:
    options = args[: args.index("--")] if "--" in args else args
    return any(word.partition("=")[0] in _FIT_FLAGS for word in options)


def wants_json(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Whether JSON was asked for, on the line or in the environment."""
    return "--json" in argv or environ.get("KVGAUGE_JSON", "").strip().lower() in _TRUE


def wants_lines(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> bool:
    """Whether requests come as NDJSON: then an error is one line of JSON."""
    verb = next((word.text for word in positionals(argv)), "size")
    is_set = bool(environ.get("KVGAUGE_NDJSON")) and (verb in ("size", "plan") or verb not in VERBS)
    return is_set or any(word.partition("=")[0] == "--ndjson" for word in argv)


def chosen_lang(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> Lang:
    """Return the language: ``--lang``, ``KVGAUGE_LANG``, else the locale, else English."""
    asked = ""
    for position, word in enumerate(argv):
        if word.startswith("--lang="):
            asked = word.removeprefix("--lang=")
        elif word == "--lang" and position + 1 < len(argv):
            asked = argv[position + 1]
    keys = ("KVGAUGE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
    name = asked or next((environ[key] for key in keys if environ.get(key)), "") or _system_locale()
    return "zh" if name.lower().startswith(("zh", "chinese")) else "en"


def _system_locale() -> str:
    if os.name != "nt":
        return ""
    import locale  # noqa: PLC0415 - Windows alone keeps the locale outside the environment

    return locale.getlocale()[0] or ""
