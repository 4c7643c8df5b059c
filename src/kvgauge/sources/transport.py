"""Bounded HTTP: a request that ends in time, within its bytes, and goes only where a hub sends it.

The standard library carries it: proxies of the environment, TLS of the system. A redirect is followed when
the hub itself answers with one; credentials never leave the hub's own addresses. Nothing that a server or a
proxy says is repeated in a message, and no address is shown with its query or user name.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from kvgauge._version import __version__
from kvgauge.errors import NetworkError
from kvgauge.sources.failures import Origin, TransferError, address_of, explain, origin_of

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PIECE_BYTES = 1 << 16
_HEADERS = {"User-Agent": f"kvgauge/{__version__}", "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may cost.

    Args:
        step_s: seconds until a connection stands, and between two pieces of an answer.
        total_s: seconds until everything is there, redirects included.
        max_redirects: hops after the first request.
    """

    step_s: float = 10.0
    total_s: float = 60.0
    max_redirects: int = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said.

    Args:
        url: the address that answered, after redirects.
        headers: by lower-case name; ``x-`` names that the last hop lacks are taken from earlier ones.
        body: at most the bytes that were asked for.
        cut_off: whether the connection ended before the declared length.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    cut_off: bool = False

    @property
    def length(self) -> int | None:
        """The declared length of the body, in bytes."""
        return whole_number(self.headers.get("content-length"))


@dataclass(frozen=True, slots=True)
class Site:
    """A hub as it is spoken to.

    Args:
        endpoint: its address without a closing slash; a mirror's where one is set.
        variable: the environment variable that set the endpoint, or "".
        secrets: headers that only the hub itself may see.
        origins: further origins of the same hub.
    """

    name: str
    endpoint: str
    variable: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    origins: frozenset[Origin] = frozenset()
    limits: Limits = field(default_factory=Limits)

    @property
    def shown(self) -> str:
        """How messages name it: the hub, or the mirror and the variable that chose it."""
        address = address_of(self.endpoint)
        return f"the mirror {address} ({self.variable})" if self.variable else self.name

    def is_own(self, url: str) -> bool:
        """Whether an address belongs to the hub."""
        return origin_of(url) in self.origins or origin_of(url) == origin_of(self.endpoint)

    def ask(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        max_bytes: int = 0,
        within_s: float | None = None,
    ) -> Answer:
        """Send a request and follow the redirects that the hub answers with.

        ``HEAD`` stops at a redirect that leaves the hub: its headers are what was asked for.

        Raises:
            NetworkError: no answer, not in time, a redirect of someone else, or too many of them.
        """
        end = time.monotonic() + min(within_s or self.limits.total_s, self.limits.total_s)
        met: dict[str, str] = {}
        for _ in range(self.limits.max_redirects + 1):
            answer = self._once(method, url, headers or {}, max_bytes, end)
            met = {k: v for k, v in met.items() if k.startswith("x-")} | dict(answer.headers)
            target = urljoin(url, answer.headers.get("location", ""))
            leaves = answer.status in _REDIRECTS and not self.is_own(target)
            if answer.status not in _REDIRECTS or (method == "HEAD" and leaves):
                return Answer(answer.url, answer.status, met, answer.body, answer.cut_off)
            self._check_redirect(url, target)
            url = target
        raise self.failure(f"it redirects more than {self.limits.max_redirects} times")

    def failure(self, reason: str, hint: str = "") -> NetworkError:
        """Return the error of an answer that can't be used."""
        return NetworkError(f"{self.shown}: {reason}", hint=hint or self._hint())

    def _hint(self) -> str:
        if self.variable:
            return f"check that {self.variable} is the address of a hub, or unset it"
        return "try again; --offline uses the catalogue and the local cache alone"

    def _once(self, method: str, url: str, headers: Mapping[str, str], max_bytes: int, end: float) -> Answer:
        sent = {**_HEADERS, **headers, **(self.secrets if self.is_own(url) else {})}
        left_s = end - time.monotonic()
        try:
            request = urllib.request.Request(url, headers=sent, method=method)  # noqa: S310 - checked below
            return _exchange(request, max_bytes, min(self.limits.step_s, max(left_s, 0.001)), left_s)
        except TransferError as error:
            raise self.failure(error.reason, error.hint) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            told = explain(error, url, _proxy_of(url), self.limits.step_s)
            raise self.failure(told.reason, told.hint) from None

    def _check_redirect(self, url: str, target: str) -> None:
        if not self.is_own(url):
            raise self.failure(f"{address_of(url)} redirects elsewhere, which only the hub itself may")
        parts = urlsplit(target)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise self.failure("it redirects to something that is no web address")
        if parts.scheme == "http" and urlsplit(url).scheme == "https":
            raise self.failure(f"it redirects to {address_of(target)} without encryption")


def whole_number(text: str | None) -> int | None:
    """Return a header's number of bytes, or None where it is no such number.

    >>> whole_number("17"), whole_number("-1"), whole_number(None)
    (17, None, None)
    """
    if text is None or not (text.isascii() and text.strip().isdigit()) or len(text) > 19:
        return None
    return int(text)


class _Watch:
    """Shuts the socket of one request down when its time is up, whatever the server trickles."""

    def __init__(self, seconds: float) -> None:
        self.expired = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(max(seconds, 0.0), self._end)
        self._timer.daemon = True

    def __enter__(self) -> _Watch:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def attach(self, connected: socket.socket | None) -> None:
        self._socket = connected
        if self.expired:
            self._end()

    def _end(self) -> None:
        self.expired = True
        if self._socket is not None:
            try:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            except OSError:
                return


def _watched(kind: type[http.client.HTTPConnection], watch: _Watch) -> type[http.client.HTTPConnection]:
    class Watched(kind):  # type: ignore[valid-type,misc]
        def connect(self) -> None:
            super().connect()
            watch.attach(self.sock)

    return Watched


class _Http(urllib.request.HTTPHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def http_open(self, req: urllib.request.Request) -> Any:  # noqa: ANN401 - as its base class
        return self.do_open(_watched(http.client.HTTPConnection, self._watch), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, watch: _Watch) -> None:
        super().__init__(context=_tls())
        self._watch = watch

    def https_open(self, req: urllib.request.Request) -> Any:  # noqa: ANN401 - as its base class
        kind = _watched(http.client.HTTPSConnection, self._watch)
        return self.do_open(kind, req, context=_tls())


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Trust what the system trusts, or the bundle that a variable names."""
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    bundle = next((os.environ[name] for name in names if os.environ.get(name)), None)
    if bundle is None and os.name != "nt" and ssl.get_default_verify_paths().cafile is None:
        bundle = _shipped_bundle()
    if bundle and os.path.isdir(bundle):  # noqa: PTH112 - a plain text from the environment
        return ssl.create_default_context(capath=bundle)
    return ssl.create_default_context(cafile=bundle)


def _shipped_bundle() -> str | None:
    """Return certifi's bundle where the system has none, as on some installations of Python for macOS."""
    paths = ssl.get_default_verify_paths()
    if paths.capath is not None:
        return None
    try:
        from importlib import import_module  # noqa: PLC0415

        return str(import_module("certifi").where())
    except ImportError:
        return None


def _proxies() -> dict[str, str]:
    found = urllib.request.getproxies()
    if "all" in found:
        found = {"http": found["all"], "https": found["all"], **found}
    return {scheme: found[scheme] for scheme in ("http", "https") if scheme in found}


def _proxy_of(url: str) -> str | None:
    """Return the proxy that an address is reached through."""
    parts = urlsplit(url)
    proxy = _proxies().get(parts.scheme)
    try:
        return None if proxy is None or urllib.request.proxy_bypass(parts.netloc) else proxy
    except OSError:
        return proxy


def _exchange(request: urllib.request.Request, max_bytes: int, step_s: float, total_s: float) -> Answer:
    """Send one request and read at most ``max_bytes`` of its answer."""
    url = request.full_url
    proxy = _proxy_of(url)
    if proxy is not None and proxy.lower().startswith("socks"):
        raise TransferError("SOCKS proxies are not supported", "name an HTTP proxy in HTTPS_PROXY")
    opener = urllib.request.OpenerDirector()
    with _Watch(total_s) as watch:
        handlers = (urllib.request.ProxyHandler(_proxies()), _Http(watch), _Https(watch))
        for handler in handlers:
            opener.add_handler(handler)
        try:
            with opener.open(request, timeout=step_s) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                answer = Answer(url, response.status, headers)
                body = b"" if request.method == "HEAD" else _read(response, max_bytes)
        except (OSError, http.client.HTTPException, ValueError):
            if watch.expired:
                raise TransferError(f"no complete answer of {address_of(url)} in time") from None
            raise
        if watch.expired:
            raise TransferError(f"no complete answer of {address_of(url)} in time")
    wanted = max_bytes if answer.length is None else min(answer.length, max_bytes)
    cut_off = request.method != "HEAD" and answer.length is not None and len(body) < wanted
    return Answer(url, answer.status, headers, body, cut_off)


def _read(response: http.client.HTTPResponse, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = max_bytes
    while left > 0:
        part = response.read1(min(left, _PIECE_BYTES))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
