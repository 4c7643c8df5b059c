"""What stands before every address: which hosts and sites may ask, how many at once, and safe headers."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from kvgauge.web.failures import BusyError, ForbiddenError, InternalError, WebError
from kvgauge.web.settings import WebSettings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
#: Writes the answer of an error.
Refuse = Callable[[WebError, Scope, Receive, Send], Awaitable[None]]

#: Nothing is loaded from anywhere else, nothing is sent anywhere else, and nobody frames the page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)

#: Seconds until a part of an answer is taken.
_SEND_S = 30.0
_LOG = logging.getLogger("kvgauge.web")
_LOOPBACK_NAMES = frozenset({"localhost"})
#: From where a browser may ask the API: this page, or the address bar.
_OWN_SITES = frozenset({"same-origin", "none"})
API = "/api/"


class Guard:
    """Middleware around the whole application."""

    def __init__(self, app: App, settings: WebSettings, refuse: Refuse) -> None:
        self._app, self._settings, self._refuse = app, settings, refuse
        self._names = known_names(settings.host)
        self._any_address = settings.host != "" and not is_loopback(settings.host)
        self._waiting = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer why not."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        guarded = _Sender(send)
        try:
            self._check(scope)
        except WebError as error:
            await self._refuse(error, scope, receive, guarded)
            return
        self._waiting += 1
        try:
            await self._app(scope, receive, guarded)
        except Exception as error:
            _LOG.error("an answer failed: %s", type(error).__name__)
            if guarded.has_started:
                raise
            await self._refuse(InternalError("something went wrong here"), scope, receive, guarded)
        finally:
            self._waiting -= 1

    def _check(self, scope: Scope) -> None:
        headers = _headers(scope)
        host = headers.get("host", "")
        if not self._is_own(host):
            raise ForbiddenError(
                f"this server does not answer to the name {host[:80]!r}",
                hint="use the address that it printed when it started",
                field="Host",
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin[:300]).netloc.lower() != host.lower():
            raise ForbiddenError("the request comes from another site", hint="", field="Origin")
        if scope["path"].startswith(API) and headers.get("sec-fetch-site", "none") not in _OWN_SITES:
            raise ForbiddenError("the request comes from another site", hint="", field="Sec-Fetch-Site")
        if self._waiting >= self._settings.limits.num_waiting:
            raise BusyError("too many requests wait for an answer", hint="try again in a second")

    def _is_own(self, host: str) -> bool:
        """Whether a name is ours: no other name may lead a browser here.

        Where the server is open to a network, any address is: an address can't be made to mean another.
        """
        name = host_name(host)
        if name is None:
            return False
        if name in self._names or is_loopback(name):
            return True
        return self._any_address and is_address(name)


class _Sender:
    """Sends an answer with our headers, and does not wait for ever for someone to take it."""

    def __init__(self, send: Send) -> None:
        self._send, self.has_started = send, False

    async def __call__(self, message: Message) -> None:
        """Send a part of an answer."""
        if message["type"] == "http.response.start":
            self.has_started = True
            given = {name for name, _ in message.get("headers", ())}
            more = [pair for pair in HEADERS if pair[0] not in given]
            message["headers"] = [*message.get("headers", ()), *more]
        async with asyncio.timeout(_SEND_S):
            await self._send(message)


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers that are looked at; of one that is given twice, nothing that could pass."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1")
        if key in ("host", "origin", "sec-fetch-site"):
            found[key] = "?" if key in found else value.decode("latin-1")
    return found


@lru_cache(maxsize=256)
def host_name(host: str) -> str | None:
    """Return the name in a Host header, without its port; None where it is none.

    >>> host_name("localhost:8642"), host_name("[::1]:80"), host_name("a@b")
    ('localhost', '::1', None)
    """
    if not host or len(host) > 255 or not host.isascii() or any(c in host for c in "@/?#\\ "):
        return None
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # refuses one that is no number
    except ValueError:
        return None
    return parts.hostname.rstrip(".") if parts.hostname else None


def is_address(name: str) -> bool:
    """Whether a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(name: str) -> bool:
    """Whether a name leads to this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if name in _LOOPBACK_NAMES:
        return True
    return is_address(name) and ipaddress.ip_address(name).is_loopback


def known_names(host: str) -> frozenset[str]:
    """Return the names that a server at ``host`` answers to, beside loopback's."""
    names: Iterable[str] = (host,)
    if not is_loopback(host):
        own = socket.gethostname().lower()
        names = (host, own, own.partition(".")[0], f"{own.partition('.')[0]}.local")
    return frozenset(name.lower() for name in names if name)
