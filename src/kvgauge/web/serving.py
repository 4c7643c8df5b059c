"""Run a server until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from uvicorn import Config, Server

from kvgauge.errors import InvalidRequestError
from kvgauge.web.app import create_app

if TYPE_CHECKING:
    from kvgauge.web.settings import WebSettings

_BACKLOG = 512
_REASONS = {errno.EADDRINUSE: "something else listens there", errno.EACCES: "that is not allowed"}
#: Seconds that running answers have when the server stops.
_GRACE_S = 5
#: Connections at once, idle ones too.
_MAX_CONNECTIONS = 512
_HEADER_BYTES = 32 << 10


class _Server(Server):
    """A server that says when it can be asked, and ends quietly: how it was told to is in ``stopped_by``."""

    def __init__(self, config: Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.stopped_by, self._say_started = 0, started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so: a signal from now on is heard."""
        await super().startup(sockets)
        self._say_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop for SIGINT and SIGTERM; the handlers before are put back, and nothing is raised again."""

        def stop(number: int, frame: object) -> None:
            del frame
            self.force_exit = self.should_exit  # the second time it is meant
            self.should_exit, self.stopped_by = True, number

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        InvalidRequestError: no such address, or something else listens there.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError):
        raise _no_address(host) from None
    try:
        if sys.platform != "win32":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_address(host) from None
        reason = _REASONS.get(error.errno or 0) or str(error.strerror).lower()
        raise InvalidRequestError(
            f"can't listen on {host[:80]} port {port}: {reason}",
            hint="--port 0 takes any that is free",
            field="port",
        ) from None
    opened.setblocking(False)
    return opened


def _no_address(host: str) -> InvalidRequestError:
    text = f"{host[:80]} is no address of this machine"
    return InvalidRequestError(text, hint="for example --host 127.0.0.1", field="host")


def serve(settings: WebSettings, listening: socket.socket, started: Callable[[], None]) -> int:
    """Answer requests until a signal ends it; returns the signal's number.

    Args:
        started: called once requests and signals are heard.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    config = Config(
        create_app(settings), loop="asyncio", http="h11", ws="none", lifespan="off", log_config=None,
        access_log=False, server_header=False, date_header=True, proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS, backlog=_BACKLOG, timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_S, h11_max_incomplete_event_size=_HEADER_BYTES,
    )  # fmt: skip
    server = _Server(config, started)
    asyncio.run(server.serve(sockets=[listening]))
    return server.stopped_by
