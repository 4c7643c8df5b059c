"""Whether the libraries of the extra ``lab`` are there."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from kvgauge.errors import MissingExtraError


def require(what: str, names: Iterable[str]) -> None:
    """Refuse where a library is not installed.

    Args:
        what: what needs it, as the message begins.

    Raises:
        MissingExtraError: it is not.
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{what} needs {', '.join(missing)}, not installed here: pip install 'kvgauge[lab]'",
            hint="kvgauge learn lists the topics",
            field=missing[0],
        )
