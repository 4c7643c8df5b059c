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

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from kvgauge.errors import InvalidRequestError
from kvgauge.web.answers import warm
from kvgauge.web.app import Served
from kvgauge.web.desk import Desk

if TYPE_CHECKING:
    from kvgauge.web.settings import WebSettings

_BACKLOG = 512
#: Seconds until the head of a request has arrived.
_HEAD_S = 15.0
#: Seconds until another thread has its turn: an answer that takes long is not to hold up the others.
_TURN_S = 0.001
_REASONS = {errno.EADDRINUSE: "something else listens there", errno.EACCES: "that is not allowed"}
#: Seconds that running answers have when the server stops.
_GRACE_S = 5
#: Connections at once, idle ones too.
_MAX_CONNECTIONS = 512
_HEADER_BYTES = 32 << 10


class _Protocol(H11Protocol):
    """A connection that is closed where the head of a request does not arrive in time.

    Uvicorn itself waits for ever for a first request, and for the rest of a head that has begun; and it has
    texts of its own, not the API's errors, for too many connections and for what is no HTTP.
    """

    _waits: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request, not for ever; one connection too many is told so."""
        super().connection_made(transport)
        self._waits = self.loop.call_later(_HEAD_S, self._give_up)
        if len(self.connections) > _MAX_CONNECTIONS:
            self.app = self.config.loaded_app.full

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, where an answer can still begin, and close."""
        del msg
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status, headers, body = self.config.loaded_app.no_http
            ended = (b"content-length", str(len(body)).encode()), (b"connection", b"close")
            start = h11.Response(status_code=status, headers=[*headers, *ended])
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what arrived, and wait on where it is not a whole head."""
        super().data_received(data)
        if self._is_answering():
            if self._waits is not None:
                self._waits.cancel()
                self._waits = None
        elif self._waits is None:
            self._waits = self.loop.call_later(_HEAD_S, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._waits is not None:
            self._waits.cancel()
        super().connection_lost(exc)

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _give_up(self) -> None:
        self._waits = None
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()


class _Server(Server):
    """A server that says when it can be asked, and ends quietly: how it was told to is in ``stopped_by``."""

    def __init__(self, config: Config, started: Callable[[], None], desk: Desk) -> None:
        super().__init__(config)
        self.stopped_by, self._say_started, self._desk = 0, started, desk
        self._warming: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so: a signal from now on is heard."""
        await super().startup(sockets)
        self._say_started()
        self._warming = asyncio.create_task(warm(self._desk))

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
    desk = Desk.of(settings)
    config = Config(
        Served(settings, desk), loop="asyncio", http=_Protocol, ws="none", lifespan="off",
        log_config=None, access_log=False, server_header=False, date_header=True, proxy_headers=False,
        backlog=_BACKLOG, timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_S, h11_max_incomplete_event_size=_HEADER_BYTES,
    )  # fmt: skip
    server = _Server(config, started, desk)
    sys.setswitchinterval(_TURN_S)
    asyncio.run(server.serve(sockets=[listening]))
    return server.stopped_by
