"""Errors as answers: which HTTP status a code has, and no path of this machine in the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from kvgauge.errors import KvgaugeError

if TYPE_CHECKING:
    from kvgauge.render.messages import Texts


class WebError(KvgaugeError):
    """A request that the server itself refuses.

    Attributes:
        status: its HTTP status.
    """

    code = "invalid_request"
    status: ClassVar[int] = 400


class ForbiddenError(WebError):
    """The request comes from another site, or names another host."""

    code, status = "forbidden", 403


class NoSuchAddressError(WebError):
    """Nothing is at that address."""

    code, status = "not_found", 404


class MethodError(WebError):
    """The address does not take this method."""

    code, status = "method_not_allowed", 405


class SlowBodyError(WebError):
    """The body did not arrive in time."""

    code, status = "timeout", 408


class TooLargeError(WebError):
    """The body is larger than is taken."""

    code, status = "too_large", 413


class MediaTypeError(WebError):
    """The body is of another type."""

    code, status = "unsupported_media_type", 415


class BusyError(WebError):
    """Too much is going on, or an answer took too long."""

    code, status = "busy", 503


class InternalError(WebError):
    """Something that should not happen: a defect of this program."""

    code, status = "internal", 500


#: Code of an error -> HTTP status; others are of the server itself and know their own.
STATUS = {
    "invalid_request": 400,
    "gated": 403,
    "model_not_found": 404,
    "offline": 404,
    "unknown_architecture": 422,
    "missing_field": 422,
    "invalid_field": 422,
    "damaged_file": 422,
    "feature_unsupported": 422,
    "error": 422,
    "network": 502,
}

#: An absolute path of two parts or more, not the path of an address.
_PATH = re.compile(r"(?<![\w:/.~-])(?:~|[A-Za-z]:)?[/\\](?:[^\s/\\'\",;:()]+[/\\])+([^\s/\\'\",;:()]*)")


def status_of(error: KvgaugeError) -> int:
    """Return the HTTP status of an error."""
    return error.status if isinstance(error, WebError) else STATUS.get(error.code, 422)


def without_paths(text: str) -> str:
    """Return a text with absolute paths cut down to their last part.

    >>> without_paths("/home/me/.cache/hub/config.json is damaged; see https://huggingface.co/a/b")
    'config.json is damaged; see https://huggingface.co/a/b'
    """
    return _PATH.sub(lambda match: match[1] or "...", text)


def error_json(error: KvgaugeError, texts: Texts) -> dict[str, object]:
    """Return the ``kvgauge.error/1`` object, in a language."""
    shown = (lambda text: text) if isinstance(error, WebError) else without_paths
    field = None if error.field is None else shown(error.field)
    return {
        "schema": "kvgauge.error/1",
        "error": {
            "code": error.code,
            "message": shown(texts.error(error.message)),
            "hint": shown(texts.error(error.hint)),
            "field": field,
        },
    }
