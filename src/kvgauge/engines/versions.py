"""What engines say of a version that is older or newer than the rules known here."""

from __future__ import annotations

from collections.abc import Callable

from kvgauge.architecture import Note
from kvgauge.errors import FeatureUnsupportedError


def too_old(engine: str, version: str | None, oldest: str) -> FeatureUnsupportedError:
    """Return the refusal of a version before the oldest whose rules are known."""
    return FeatureUnsupportedError(
        f"the cache rules of {engine} {version} are not known, only {oldest} and later",
        hint=f"--engine {engine}@{oldest} or a later version",
        field="engine",
    )


def newer_note(engine: str, version: str, newest: str) -> Note:
    """Say that the newest known rules stand in for those of ``version``."""
    text = f"{engine} {version} is read with the rules of {newest}, the newest known"
    return Note(
        "engine_version_newer", "info", text, (("engine", engine), ("version", version), ("rules", newest))
    )


def known_version(
    engine: str,
    version: str | None,
    newest: str,
    rules_for: Callable[[str], object],
    numbers: Callable[[str], tuple[int, ...]],
) -> tuple[str, tuple[Note, ...]]:
    """Return the version whose rules are taken, the newest known for None, and a note where it is newer.

    Args:
        rules_for: refuses what is no version, or older than what is known.
        numbers: of a version, in their order.

    Raises:
        KvgaugeError: as ``rules_for`` refuses it.
    """
    if version is None:
        return newest, ()
    _ = rules_for(version)
    is_known = numbers(version) <= numbers(newest)
    return version, () if is_known else (newer_note(engine, version, newest),)
