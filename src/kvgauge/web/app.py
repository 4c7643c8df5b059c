"""The application: addresses behind the guard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.applications import Starlette

from kvgauge.web.asking import speech_of
from kvgauge.web.assets import Assets
from kvgauge.web.desk import Desk
from kvgauge.web.failures import MethodError, WebError
from kvgauge.web.guard import HEADERS, App, Guard, Message, Receive, Scope, Send
from kvgauge.web.routes import Routes, error_response
from kvgauge.web.settings import WebSettings

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def create_app(settings: WebSettings | None = None, desk: Desk | None = None) -> App:
    """Return the ASGI application of a server."""
    settings = settings or WebSettings()
    speech = speech_of({}, settings)

    async def refuse(error: WebError, scope: Scope, receive: Receive, send: Send) -> None:
        await error_response(error, speech)(scope, receive, send)

    async def wrong_method(request: Request, error: Exception) -> Response:
        allowed = getattr(error, "headers", None) or {}
        known = MethodError(f"{request.method[:20]} is not taken here", hint=_takes(allowed))
        response = error_response(known, speech)
        response.headers.update(allowed)
        return response

    routes = Routes(desk or Desk.of(settings), Assets())

    async def elsewhere(request: Request, error: Exception) -> Response:
        del error
        return await routes.elsewhere(request)

    inner = Starlette(routes=routes.all(), exception_handlers={405: wrong_method, 404: elsewhere})
    return Guard(inner, settings, refuse)


class Served:
    """The application as a server runs it, with what it answers where no request reaches it.

    Attributes:
        full: answers every request that there are too many connections, and closes its own.
        no_http: status, headers and body for what is no HTTP.
    """

    def __init__(self, settings: WebSettings, desk: Desk) -> None:
        self._app = create_app(settings, desk)
        none = replace(settings, limits=replace(settings.limits, num_waiting=0))
        self._refusing = create_app(none, desk)
        error = WebError("this is no HTTP request", hint="its first line is like GET / HTTP/1.1")
        answer = error_response(error, speech_of({}, settings))
        self.no_http = answer.status_code, [*answer.raw_headers, *HEADERS], bytes(answer.body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await self._app(scope, receive, send)

    async def full(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer that there are too many, and close the connection."""

        async def last(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        await self._refusing(scope, receive, last)


def _takes(headers: dict[str, str]) -> str:
    allowed = headers.get("Allow", "")
    return f"use {allowed}" if allowed else ""
