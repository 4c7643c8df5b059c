"""``serve``: the page and the JSON API on this machine."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from typing import Any

from kvgauge.cli.output import Settings, write, write_json, write_note
from kvgauge.errors import InvalidRequestError, MissingExtraError

EXIT_INTERRUPTED = 130
_MAX_PORT = 65535


def run_serve(settings: Settings, values: dict[str, Any]) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtraError(
            "serve needs the extra web", hint="install it: pip install 'kvgauge[web]'", field="serve"
        )
    from kvgauge.web.guard import is_loopback  # noqa: PLC0415 - needs the extra
    from kvgauge.web.serving import open_socket, serve  # noqa: PLC0415
    from kvgauge.web.settings import DEFAULT_HOST, DEFAULT_PORT, WebSettings  # noqa: PLC0415

    host = values["host"] or DEFAULT_HOST
    port = DEFAULT_PORT if values["port"] is None else values["port"]
    if not 0 <= port <= _MAX_PORT:
        raise InvalidRequestError(
            f"--port {port} is no port", hint=f"0 to {_MAX_PORT}; 0 takes any that is free", field="port"
        )
    listening = open_socket(host, port)
    address = listening.getsockname()
    url = f"http://{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}/"

    def started() -> None:
        if settings.json:
            write_json({"schema": "kvgauge.serve/1", "url": url}, is_line=True)
        else:
            write(settings.texts("serve_at", url=url) + "\n")
        if not is_loopback(host):
            write_note(settings.texts("serve_open"))

    web = WebSettings(host, offline=bool(values["offline"]), lang=settings.lang)
    stopped_by = serve(web, listening, started)
    return EXIT_INTERRUPTED if stopped_by == signal.SIGINT else 0
