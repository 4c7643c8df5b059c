"""What each llama.cpp build allocates: a table of facts, oldest first.

v0.5.0 was held against allocations of its own libraries. Older entries come from the changes that start-up
logs
show (padding, latents, window pool, slots); their build numbers are those of the first release after the
change,
to within a few days of releases.
"""

from __future__ import annotations

import re

from kvgauge.architecture import Note
from kvgauge.errors import FeatureUnsupportedError, InvalidRequestError
from kvgauge.values import dataclass

_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,4})(?:\.(\d{1,4}))?")
_BUILD = re.compile(r"b(\d{1,6})(?:-[0-9a-f]{1,40})?")
_DATE = re.compile(r"(20\d\d)-(\d\d)(?:-(\d\d))?")
_FORK = re.compile(r"ik(?:[-_]?(\d{1,6}))?")


@dataclass(frozen=True, slots=True)
class BuildRules:
    """Facts of one build and of those after it, up to the next entry.

    Args:
        name: tag of the oldest build of the era.
        build: number of that release; versions with dots count on from the newest number.
        date: day of that release, for versions given as a date.
        padding_tokens: the context of a stream is rounded up to this with flash attention.
        plain_padding_tokens: the same without flash attention.
        window_padding_tokens: cells of the window pool are rounded up to this; 0 as ``padding_tokens``.
        window_pool: sliding layers have cells of their own; before, a cache of the whole context.
        latents: what multi-head latent attention keeps: expanded heads, K and V, or K alone.
        streams: sequences that are not unified have a stream each; before, all share one.
        slots: of llama-server without ``-np``.
        unified: those slots share one stream.
        few_outputs: llama-server reserves logits for the rows that it asks for, not for the micro-batch.
        wide_masks: masks are fp32 inputs, made fp16 for flash attention beside them.
        fork: a fork of llama.cpp, with options of its own for latents.
    """

    name: str
    build: int
    date: str
    padding_tokens: int = 256
    plain_padding_tokens: int = 256
    window_padding_tokens: int = 256
    window_pool: bool = True
    latents: str = "k"
    streams: bool = True
    slots: int = 4
    unified: bool = True
    few_outputs: bool = True
    wide_masks: bool = False
    fork: bool = False


_OLD = {
    "plain_padding_tokens": 32, "slots": 1, "unified": False, "few_outputs": False, "wide_masks": True,
}  # fmt: skip

BUILDS: tuple[BuildRules, ...] = (
    BuildRules("b2000", 2000, "2024-01-27", window_pool=False, latents="expanded", streams=False, **_OLD),  # type: ignore[arg-type]
    BuildRules("b5140", 5140, "2025-04-15", window_pool=False, latents="kv", streams=False, **_OLD),  # type: ignore[arg-type]
    BuildRules("b5430", 5430, "2025-05-20", window_padding_tokens=0, latents="kv", streams=False, **_OLD),  # type: ignore[arg-type]
    BuildRules("b5910", 5910, "2025-07-16", window_padding_tokens=0, latents="kv", **_OLD),  # type: ignore[arg-type]
    BuildRules("b7000", 7000, "2025-11-09", latents="kv", few_outputs=False),
    BuildRules("b7820", 7820, "2026-01-25", few_outputs=False),
    BuildRules("b9000", 9000, "2026-05-15"),
    BuildRules("v0.5.0", 1_000_500, "2026-09-28"),
)
NEWEST = BUILDS[-1]

#: ik_llama.cpp: heads expanded unless ``-mla`` says otherwise, no window pool, contexts rounded as before.
FORK = BuildRules(
    "ik",
    0,
    "2024-08-01",
    window_pool=False,
    latents="expanded",
    streams=False,
    fork=True,
    **_OLD,  # type: ignore[arg-type]
)


def rules_for(version: str | None) -> BuildRules:
    """Return the rules of a version: ``v0.5.0``, ``b7123``, a day such as ``2025-06-01``, or ``ik``.

    Raises:
        InvalidRequestError: none of these.
        FeatureUnsupportedError: older than the oldest entry.

    >>> rules_for("b6500").latents, rules_for("2025-01").window_pool, rules_for(None).name
    ('kv', False, 'v0.5.0')
    """
    if version is None:
        return NEWEST
    text = version.strip().lower()
    if _FORK.fullmatch(text):
        return FORK
    date = _DATE.fullmatch(text)
    if date:
        day = f"{date[1]}-{date[2]}-{date[3] or '28'}"
        known = [rules for rules in BUILDS if rules.date <= day]
    else:
        number = _number(text, version)
        known = [rules for rules in BUILDS if rules.build <= number]
    if not known:
        raise FeatureUnsupportedError(
            f"the cache rules of llama.cpp {version} are not known, only {BUILDS[0].name} and later",
            hint=f"--engine llama.cpp@{BUILDS[0].name} or a later build",
            field="engine",
        )
    return known[-1]


def build_number(version: str) -> int:
    """Return the number that versions are ordered by, of a fork that of the newest.

    Raises:
        InvalidRequestError: not a version.

    >>> build_number("b6089") < build_number("2025-09-01") < build_number("v0.5.0")
    True
    """
    text = version.strip().lower()
    if _FORK.fullmatch(text):
        return NEWEST.build
    date = _DATE.fullmatch(text)
    if date is None:
        return _number(text, version)
    day = f"{date[1]}-{date[2]}-{date[3] or '28'}"
    return _between(day)


def _between(day: str) -> int:
    """Return the number of a day's build, counted on evenly between the builds of the table."""
    from datetime import date  # noqa: PLC0415 - few versions are days

    ordinal = [date.fromisoformat(rules.date).toordinal() for rules in BUILDS]
    try:
        own = date.fromisoformat(day).toordinal()
    except ValueError:
        raise InvalidRequestError(
            f"{day!r} is not a day", hint="for example llama.cpp@2025-06-01", field="engine"
        ) from None
    for before, after, low, high in zip(BUILDS, BUILDS[1:], ordinal, ordinal[1:], strict=False):
        if low <= own < high:
            return before.build + (after.build - before.build) * (own - low) // (high - low)
    return BUILDS[0].build if own < ordinal[0] else NEWEST.build


def _number(text: str, shown: str) -> int:
    build, version = _BUILD.fullmatch(text), _VERSION.fullmatch(text)
    if build:
        return int(build[1])
    if version is None:
        raise InvalidRequestError(
            f"{shown!r} is not a version of llama.cpp",
            hint="for example llama.cpp@v0.5.0, @b7123, or a day such as @2025-06-01",
            field="engine",
        )
    major, minor, patch = (int(part or 0) for part in version.groups())
    # v0.1.0 follows b9000 and its like; what lies between the two kinds of tags has one set of rules.
    return 1_000_000 * (major + 1) + 100 * minor + patch


def build_notes(version: str) -> tuple[Note, ...]:
    """Say where the rules of another build stand in for those of ``version``."""
    rules = rules_for(version)
    if rules.fork or version.strip().lower() in (rules.name, rules.name.removeprefix("v")):
        return ()
    newer = rules is NEWEST
    values = (("engine", "llama.cpp"), ("version", version), ("rules", rules.name))
    text = f"llama.cpp {version} is read with the rules of {rules.name}, " + (
        "the newest known" if newer else "the last change before it that is known"
    )
    return (Note("engine_version_newer" if newer else "engine_version_nearest", "info", text, values),)
