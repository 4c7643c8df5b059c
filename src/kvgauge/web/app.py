"""The application: addresses behind the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette

from kvgauge.web.asking import speech_of
from kvgauge.web.assets import Assets
from kvgauge.web.desk import Desk
from kvgauge.web.failures import MethodError, WebError
from kvgauge.web.guard import App, Guard, Receive, Scope, Send
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


def _takes(headers: dict[str, str]) -> str:
    allowed = headers.get("Allow", "")
    return f"use {allowed}" if allowed else ""
