"""Say in one line why a server could not be reached, and what to do."""

from __future__ import annotations

import http.client
import socket
import ssl
import urllib.error
from urllib.parse import urlsplit

_PROXY_HINT = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
_REACH_HINT = "check the network; HF_ENDPOINT names a mirror, HTTPS_PROXY a proxy; --offline does without"


class TransferError(Exception):
    """A request that went wrong, in words that are safe to show.

    Args:
        reason: what happened.
        hint: the step to take, or "" where the caller knows better.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def address_of(url: str) -> str:
    """Return an address without user name, path and query: what may be shown.

    >>> address_of("https://user:secret@hub.example:8443/a/b?signature=x")
    'https://hub.example:8443'
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that is none"
    return f"{parts.scheme}://{parts.hostname or ''}{port}"


Origin = tuple[str, str, int]


def origin_of(url: str) -> Origin:
    """Return (scheme, host, port) of an address; of one that is none, nothing."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    except ValueError:
        return ("", "", 0)
    return (parts.scheme, (parts.hostname or "").lower(), port)


#: Kinds of errors, the narrower first: what is said, and the step to take.
_KINDS: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    ((TimeoutError,), "no answer of {where} within {step:g} s", _REACH_HINT),
    (
        (ssl.SSLCertVerificationError,),
        "the certificate of {where} is not trusted",
        "check the clock and the proxy; SSL_CERT_FILE names further certificates",
    ),
    ((ssl.SSLError,), "no TLS connection with {where}", "check that the address speaks https"),
    ((socket.gaierror,), "{where} is not found (DNS)", _REACH_HINT),
    (
        (http.client.RemoteDisconnected, http.client.IncompleteRead, ConnectionResetError, BrokenPipeError),
        "{where} cut the answer off",
        "try again",
    ),
    ((ConnectionRefusedError,), "{where} refuses the connection", _REACH_HINT),
    ((http.client.HTTPException,), "{where} does not answer in HTTP", _REACH_HINT),
    ((OSError,), "{where} can't be reached", _REACH_HINT),
)


def explain(error: Exception, url: str, proxy: str | None, step_s: float) -> TransferError:
    """Tell apart what a socket, TLS or HTTP error means.

    Args:
        url: the address that was asked.
        proxy: the proxy in between, or None.
        step_s: how long each step was waited for.
    """
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    where = address_of(url)
    if proxy is not None:
        where = f"{where} through the proxy {address_of(proxy)}"
        if isinstance(cause, str) or (type(cause) is OSError and cause.errno is None):
            return TransferError(f"{where} is not opened by the proxy", _PROXY_HINT)
    for kinds, reason, hint in _KINDS:
        if isinstance(cause, kinds):
            return TransferError(reason.format(where=where, step=step_s), hint)
    return TransferError(f"no request can be made of {where}", "check the address and the token")
