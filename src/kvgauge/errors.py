"""The error tree: every refusal says what is wrong, where, and what to do.

Exit codes follow the command-line contract: 1 the input can't be sized, 2 wrong usage,
4 model not found, gated, private or unknown while offline, 5 network.
"""

from __future__ import annotations

from typing import ClassVar

MAX_MESSAGE = 400


def one_line(text: str, limit: int = MAX_MESSAGE) -> str:
    r"""Return text that is safe to print: one line, printable, bounded. Input may come from a hostile file.

    >>> one_line("a\x1b[31m\nb")
    'a?[31m b'
    """
    clipped = text if len(text) <= limit else text[: limit - 3] + "..."
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "?" for c in clipped)


class KvgaugeError(Exception):
    """Base of all errors raised on purpose.

    Attributes:
        code: stable machine word, never translated.
        hint: the step to take, one sentence.
        field: the config field, option or line concerned, or None.
    """

    code: str = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "", field: str | None = None) -> None:
        self.message = one_line(message)
        self.hint = one_line(hint)
        self.field = None if field is None else one_line(field, 200)
        super().__init__(self.message)

    def to_dict(self) -> dict[str, object]:
        """Return the ``kvgauge.error/1`` object."""
        return {
            "schema": "kvgauge.error/1",
            "error": {"code": self.code, "message": self.message, "hint": self.hint, "field": self.field},
        }


class UnknownArchitectureError(KvgaugeError):
    """The config describes no cache that a reader understands."""

    code = "unknown_architecture"


class MissingFieldError(KvgaugeError):
    """A field that the cache depends on is absent and nothing in the file replaces it."""

    code = "missing_field"


class InvalidFieldError(KvgaugeError):
    """A field holds an impossible value, or two fields contradict each other."""

    code = "invalid_field"


class DamagedFileError(KvgaugeError):
    """The file is not the JSON object that it should be."""

    code = "damaged_file"


class FeatureUnsupportedError(KvgaugeError):
    """The engine, format or parallel layout can't hold this model."""

    code = "feature_unsupported"


class MissingExtraError(KvgaugeError):
    """A part of the program needs libraries that are not installed with the core."""

    code = "missing_extra"


class InvalidRequestError(KvgaugeError):
    """An option is malformed or contradicts another one."""

    code = "invalid_request"
    exit_code = 2


class ModelNotFoundError(KvgaugeError):
    """No source knows the model."""

    code = "model_not_found"
    exit_code = 4


class OfflineError(ModelNotFoundError):
    """Neither the catalogue nor a local cache knows the model, and the network is not to be used."""

    code = "offline"


class GatedModelError(KvgaugeError):
    """The hub knows the model and does not hand it out: a licence to accept, or a token it refuses."""

    code = "gated"
    exit_code = 4


class NetworkError(KvgaugeError):
    """A server can't be reached, is busy, or answers with something else than what was asked for."""

    code = "network"
    exit_code = 5
